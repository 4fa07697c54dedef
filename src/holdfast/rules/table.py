"""A PostgreSQL table as a channel: one row per item. A batch is compared and written with one UPDATE."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import Any, Protocol
from uuid import UUID

import psycopg
from psycopg import Connection, errors
from psycopg.pq import TransactionStatus

from holdfast.connections.deadline import within
from holdfast.connections.pool import PoolExecutor
from holdfast.env import Env
from holdfast.errors import BadDefinition, DatabaseError, LoginRefused, OutsideError, Rejected, Unavailable, Unreachable
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.rules.language.currencies import complaint
from holdfast.rules.language.evaluate import Refusal
from holdfast.rules.language.items import Item, ItemRefused, amount
from holdfast.rules.language.money import Price, decimal
from holdfast.rules.table_sql import Columns, Statements, check_columns, check_table

PAGE = 5_000  # items per statement
_PART = re.compile(r"[^.]{1,63}")
_DIGITS = re.compile(r"-?[0-9]{1,18}")
_SPLITS = (errors.IntegrityError, errors.DataError, errors.RaiseException)  # one row can be the cause
_WRITTEN = Wrote("written")
_NOT_FOUND = Wrote("not_found", error_class="NOT_FOUND", message="the table has no such item")


class Lends(Protocol):
    """Lends connections to a database."""

    def connection(self) -> AbstractContextManager[Connection[Any]]:
        """Lend one, in autocommit."""


class Table:
    """A table whose rows are items: `Table("shop.products", key="sku", price="price", currency="EUR")`.

    `key` is a unique column of text, whole numbers or UUIDs that is not null; an id must be written as the key is.
    Amounts are numeric, or with `minor_units=True` whole minor units. `currency` is a code, or `currency_column` names
    the column that has it. `compare_at`, `cost` and `tags` (text[]) name columns as well; `fields` lists columns that
    rules may select by. `dsn` names another database, best as `Env("SHOP_DSN")`. Without it the table is in Holdfast's
    own, and a price changes in the transaction that stores its outcome: exactly once.
    """

    kind = "table"
    compares = True

    def __init__(
        self,
        table: str,
        *,
        key: str,
        price: str,
        currency: str | None = None,
        currency_column: str | None = None,
        compare_at: str | None = None,
        cost: str | None = None,
        sku: str | None = None,
        tags: str | None = None,
        fields: Sequence[str] = (),
        minor_units: bool = False,
        dsn: str | Env | None = None,
    ) -> None:
        parts = str(table).split(".")
        if not 1 <= len(parts) <= 2 or not all(_PART.fullmatch(part) for part in parts):
            raise BadDefinition(
                f"table must be a name such as shop.products, got {table!r:.80}",
                where="table",
                next="write schema.table, or the table's name alone",
            )
        if (currency is None) == (currency_column is None):
            raise BadDefinition("a table has a currency or a currency_column, and not both", where="currency",
                                next='write currency="EUR"')  # fmt: skip
        if currency is not None and (problem := complaint(currency)):
            raise BadDefinition(problem[0], where="currency", next=problem[1])
        own = {"key": key, "price": price, "compare_at": compare_at, "cost": cost, "sku": sku, "tags": tags}
        check_columns(own | {"currency_column": currency_column}, fields)
        self.table = table
        self._currency = currency
        self._minor_units = minor_units
        self._dsn = dsn
        self._columns = Columns(tuple(parts), key, price, currency_column, compare_at, cost, sku, tags, tuple(fields))
        self._lends: Lends | None = None if dsn is None else PoolExecutor(self._address)
        self._statements: Statements | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether the table is in Holdfast's own database."""
        return self._dsn is None

    def use(self, lends: Lends) -> None:
        """Use the app's connections, if the table is in Holdfast's own database."""
        if self._dsn is None:
            self._lends = lends

    def about(self) -> Mapping[str, Any]:
        """Return its columns, without its DSN."""
        where = "own database" if self._dsn is None else repr(self._dsn) if isinstance(self._dsn, Env) else "a DSN"
        return {"table": self.table, "key": self._columns.key, "price": self._columns.price, "database": where}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:
        """List all rows, page by page, so that no snapshot is held while the caller works."""
        last: Any = None
        while True:
            with self._connection(call) as connection:
                rows = self._checked(connection).page(connection, last, PAGE)
            for row in rows:
                yield self._item(row)
            if len(rows) < PAGE:
                return
            last = rows[-1][0]

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:
        """Read the prices of items."""
        found: dict[str, Price | Refusal] = {}
        with self._connection(call) as connection:
            statements = self._checked(connection)
            keys = {item_id: _key(item_id, statements.key_type) for item_id in ids}
            rows = statements.read(connection, [item_id for item_id, key in keys.items() if item_id == key])
        for item_id, key in keys.items():
            if key not in {None, item_id}:  # an item has one id, or two targets could be the same row
                found[item_id] = Refusal(item_id, "item_invalid", f"write the key as the table does: {key}")
        for item_id, price, compare_at, currency in rows:
            try:
                found[item_id] = self._price(item_id, price, compare_at, currency)
            except ItemRefused as error:
                found[item_id] = Refusal(item_id, error.reason, error.what)
        return found

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        """Compare and set: one UPDATE for all. If the table rejects a row, halves are tried until that row is alone."""
        if any(write.writes_compare_at for write in writes) and self._columns.compare_at is None:
            raise Rejected(f"table {self.table} has no column for compare-at", where="compare_at",
                           next="name it: compare_at=…")  # fmt: skip
        with self._connection(call) as connection:
            return self._halved(connection, self._checked(connection), writes)

    def health(self) -> Health:
        """Look whether the table is there and has its columns."""
        try:
            with self._connection(ChannelCall(timeout=timedelta(seconds=10))) as connection:
                check_table(connection, self._columns, is_minor=self._minor_units)
        except (BadDefinition, Rejected, Unavailable) as error:
            return Health(ok=False, detail=str(error))
        return Health(ok=True, detail=f"table {self.table}")

    def check(self) -> None:
        """Raise BadDefinition unless the table has its columns, with types that fit."""
        with self._connection(ChannelCall()) as connection:
            check_table(connection, self._columns, is_minor=self._minor_units)

    def _halved(self, connection: Connection[Any], statements: Statements, writes: Sequence[Write]) -> list[Wrote]:
        # In the batch's transaction a savepoint keeps what was written before; the first UPDATE needs none. In another
        # database each UPDATE is a transaction of its own: a worker that vanishes between two statements would leave
        # its locks to a server that waits for it.
        is_first = connection.info.transaction_status == TransactionStatus.IDLE
        try:
            with nullcontext() if is_first else connection.transaction():
                return self._written(connection, statements, writes)
        except _SPLITS as error:
            if is_first and not connection.autocommit:
                connection.rollback()
            if len(writes) == 1:
                message = (error.diag.message_primary or str(error)).strip()
                return [Wrote("failed", error_class="VALIDATION", message=f"the table rejected it: {message}")]
        middle = len(writes) // 2
        first = self._halved(connection, statements, writes[:middle])
        return first + self._halved(connection, statements, writes[middle:])

    def _written(self, connection: Connection[Any], statements: Statements, writes: Sequence[Write]) -> list[Wrote]:
        key_type = statements.key_type
        found = [_NOT_FOUND] * len(writes)
        places = [place for place, write in enumerate(writes) if _key(write.item_id, key_type) == write.item_id]
        if statements.may_round:
            rounded = {place: sentence for place in places if (sentence := statements.rounded(writes[place]))}
            places = [place for place in places if place not in rounded]
            for place, sentence in rounded.items():
                found[place] = Wrote("failed", error_class="VALIDATION", message=sentence)
        due = writes if len(places) == len(writes) else [writes[place] for place in places]
        written, others = statements.write(connection, due)
        for number in written:
            found[places[number - 1]] = _WRITTEN
        for number, *shown in others:
            place = places[number - 1]
            found[place] = self._unwritten(writes[place], shown)
        return found

    def _unwritten(self, write: Write, shown: Sequence[Any]) -> Wrote:
        price, compare_at, currency = shown
        try:
            found = self._price(write.item_id, price, compare_at, currency)
        except ItemRefused:
            found = None
        if found is not None and write.shows(found, write.after):
            return Wrote("found")
        parts = self._shown(price, compare_at, currency)
        return Wrote("stale", parts, "VALIDATION", "the item has changed since the preview")

    def _shown(self, price: Any, compare_at: Any, currency: str | None) -> dict[str, Any]:
        code = self._currency or currency or ""
        return {"price": self._text(price, code), "compareAt": self._text(compare_at, code), "currency": code}

    def _text(self, value: Any, currency: str) -> str | None:
        if value is None:
            return None
        if self._minor_units and complaint(currency) is None:
            return format(decimal(value, currency), "f")
        return format(value, "f") if isinstance(value, Decimal) else str(value)

    def _item(self, row: Sequence[Any]) -> Item | Refusal:
        key, price, compare_at, currency, cost, sku, tags, *fields = row
        item_id = str(key)
        try:
            shown = self._price(item_id, price, compare_at, currency)
            exact_cost = None if cost is None else self._units(cost, shown.currency, "cost", item_id)
        except ItemRefused as error:
            return Refusal(item_id, error.reason, error.what)
        values = dict(zip(self._columns.fields, map(_field, fields), strict=True)) if fields else {}
        own = item_id if sku is None else str(sku)
        return Item(item_id, shown.unit_amount, shown.currency, shown.compare_at, exact_cost, own, tuple(tags or ()),
                    values)  # fmt: skip

    def _price(self, item_id: str, price: Any, compare_at: Any, currency: str | None) -> Price:
        code = self._currency if self._currency is not None else (currency or "").strip()
        if problem := complaint(code):
            raise ItemRefused(problem[0], reason="currency_unknown", item_id=item_id)
        return Price(
            None if price is None else self._units(price, code, "price", item_id),
            None if compare_at is None else self._units(compare_at, code, "compareAt", item_id),
            code,
        )

    def _units(self, value: Any, currency: str, what: str, item_id: str) -> int:
        if self._minor_units:
            return amount(decimal(value, currency), currency, what, item_id)
        return amount(value, currency, what, item_id)

    def _address(self) -> str:
        return self._dsn.read() if isinstance(self._dsn, Env) else str(self._dsn)

    def _checked(self, connection: Connection[Any]) -> Statements:
        if self._statements is None:
            fitting = check_table(connection, self._columns, is_minor=self._minor_units)
            self._statements = Statements(self._columns, fitting, currency=self._currency, is_minor=self._minor_units)
        return self._statements

    def _lend(self) -> AbstractContextManager[Connection[Any]]:
        if self._lends is None:
            raise BadDefinition(f"table {self.table} is not registered with an app", where="channel",
                                next="register it with hf.rules.channel")  # fmt: skip
        return self._lends.connection()

    @contextmanager
    def _connection(self, call: ChannelCall) -> Iterator[Connection[Any]]:
        try:
            lent = nullcontext(call.connection) if call.connection is not None else self._lend()
            with lent as connection, within(connection, call.timeout):
                yield connection
        except (psycopg.Error, DatabaseError) as error:
            if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
                self._statements = None  # somebody changed the table: look again next time
            raise _translated(error, self.table) from error


def _key(item_id: str, key_type: str) -> str | None:
    """Return an id as PostgreSQL writes a key of that type; None if it cannot be one, so that the table has no such."""
    with suppress(ValueError):
        if key_type == "uuid":
            return str(UUID(item_id))
        return item_id if key_type == "text" else str(int(item_id)) if _DIGITS.fullmatch(item_id) else None
    return None


def _field(value: Any) -> Any:
    if isinstance(value, float):
        return Decimal(repr(value))
    return value.isoformat() if isinstance(value, date) else value


def _translated(error: psycopg.Error | DatabaseError, table: str) -> OutsideError:
    """Return the error that decides whether the targets of a call are retried."""
    text = (error.what if isinstance(error, DatabaseError) else str(error)).strip().partition("\n")[0]
    match error:
        case errors.InsufficientPrivilege() | LoginRefused():
            return Rejected(f"the login may not use table {table}: {text}", where=table, code="AUTHORIZATION")
        case errors.QueryCanceled() | errors.LockNotAvailable() | Unreachable():
            return Unavailable(f"table {table} did not answer in time: {text}", where=table, code="TIMEOUT")
        case psycopg.OperationalError() | psycopg.InterfaceError() | DatabaseError():
            return Unavailable(f"table {table} could not be reached: {text}", where=table, code="NETWORK")
        case _:
            code = error.sqlstate or "VALIDATION"
            return Rejected(f"table {table} rejected the call: {text}", where=table, code=code)
