"""The SQL of a table as a channel: it checks the table's columns, pages through it, reads and writes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, LiteralString, NamedTuple

from psycopg import Connection, sql

from holdfast.errors import BadDefinition
from holdfast.kernel.arrays import Texts
from holdfast.rules.channel import Write
from holdfast.rules.language.currencies import EXPONENTS
from holdfast.rules.language.money import decimal
from holdfast.spelling import did_you_mean

_KEYS: Final[dict[str, str]] = {  # types of keys, and how an id is cast to them
    "text": "text", "character varying": "text", "bigint": "bigint", "integer": "bigint", "smallint": "bigint",
    "uuid": "uuid",
}  # fmt: skip
_WHOLE: Final = ("bigint", "integer")
_TEXT: Final = ("text", "character varying", "character")
_SCALED: Final = re.compile(r"numeric\([0-9]+,(-?[0-9]+)\)")
_SUFFIXES: Final[dict[str, str]] = {  # which make a number of major units of one of minor units
    currency: f"e-{places}" if places else "" for currency, places in EXPONENTS.items()
}
_FOUND: LiteralString = """
select a.attname::text, format_type(a.atttypid, null), format_type(a.atttypid, a.atttypmod),
       exists (select from pg_index i
                where i.indrelid = a.attrelid and i.indisunique and i.indisvalid and i.indpred is null
                  and i.indnkeyatts = 1 and i.indkey[0] = a.attnum),
       a.attnotnull
  from pg_attribute a
 where a.attrelid = to_regclass(%s) and a.attnum > 0 and not a.attisdropped
"""


class Columns(NamedTuple):
    """The names of a table and of its columns."""

    table: tuple[str, ...]
    key: str
    price: str
    currency: str | None
    compare_at: str | None
    cost: str | None
    sku: str | None
    tags: str | None
    fields: tuple[str, ...]

    @property
    def named(self) -> str:
        """The table's name as SQL writes it."""
        return sql.Identifier(*self.table).as_string(None)


def check_columns(own: Mapping[str, Any], fields: Any) -> None:
    """Raise BadDefinition for what cannot be the name of a column."""
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        raise BadDefinition(f"fields must be a list of columns, got {fields!r:.60}", where="fields",
                            next=f"use [{fields!r:.60}]")  # fmt: skip
    given = [(what, name) for what, name in own.items() if name is not None or what in {"key", "price"}]
    for what, name in [*given, *(("fields", field) for field in fields)]:
        if not isinstance(name, str) or not name:
            raise BadDefinition(f"{what} must name a column, got {name!r:.60}", where=what,
                                next=f'use such as {what}="{what}"')  # fmt: skip


class Fitting(NamedTuple):
    """What a table with all of its columns is like."""

    key_type: str  # the type that ids are cast to
    decimals: Mapping[str, int]  # how many the columns of amounts have, by name; those with any number are left out


def check_table(connection: Connection[Any], columns: Columns, *, is_minor: bool) -> Fitting:
    """Look at the table; raise BadDefinition unless it has its columns, of fitting types."""
    rows = connection.execute(_FOUND, [columns.named]).fetchall()
    columns_of = {name: (kind, is_unique) for name, kind, _, is_unique, _ in rows}
    if not columns_of:
        raise BadDefinition(
            f"there is no table {columns.named}", where="table", next="check its name and the search_path"
        )
    kind, is_unique = _column(columns_of, columns.key, "key")
    if kind not in _KEYS:
        raise BadDefinition(
            f"the key {columns.key} is {kind}", where="key", next="use a column of text, bigint or uuid"
        )
    if not is_unique:
        raise BadDefinition(f"the key {columns.key} is not unique", where="key", next="add a unique index on it alone")
    if not all(is_not_null for name, *_, is_not_null in rows if name == columns.key):
        raise BadDefinition(f"the key {columns.key} may be null", where="key",
                            next=f"alter table {columns.named} alter column {columns.key} set not null")  # fmt: skip
    amounts = _WHOLE if is_minor else ("numeric", *_WHOLE)
    for what, name, kinds in (
        ("price", columns.price, amounts),
        ("compare_at", columns.compare_at, amounts),
        ("cost", columns.cost, amounts),
        ("currency_column", columns.currency, _TEXT),
        ("sku", columns.sku, (*_TEXT, *_KEYS)),
        ("tags", columns.tags, ("text[]", "character varying[]")),
    ):
        if name is not None and (has := _column(columns_of, name, what)[0]) not in kinds:
            raise BadDefinition(
                f"the {what} column {name} is {has}", where=what, next=f"it must be {' or '.join(kinds)}"
            )
    for name in columns.fields:
        _column(columns_of, name, "fields")
    full = {name: full_kind for name, _, full_kind, *_ in rows}
    amount_columns = [] if is_minor else [name for name in (columns.price, columns.compare_at) if name is not None]
    decimals = {name: places for name in amount_columns if (places := _decimals(full[name])) is not None}
    return Fitting(_KEYS[kind], decimals)


def _decimals(kind: str) -> int | None:
    """Return how many decimals a type of amounts has; None: any number."""
    if kind in _WHOLE:
        return 0
    scaled = _SCALED.fullmatch(kind)
    return None if scaled is None else int(scaled[1])


def _column(found: dict[str, tuple[str, bool]], name: str, what: str) -> tuple[str, bool]:
    if name not in found:
        raise BadDefinition(f"the table has no column {name}", where=what, next=did_you_mean(name, found))
    return found[name]


class Statements:
    """The statements of one table, written once."""

    def __init__(self, columns: Columns, fitting: Fitting, *, currency: str | None, is_minor: bool) -> None:
        self.key_type = fitting.key_type
        most = max(EXPONENTS.values()) if currency is None else EXPONENTS[currency]
        self._decimals = {name: places for name, places in fitting.decimals.items() if places < most}
        self.may_round = bool(self._decimals)
        self._amounts = sql.SQL("%s::bigint[]" if is_minor else "%s::numeric[]")
        self._suffixes = dict.fromkeys(EXPONENTS, "") if is_minor else _SUFFIXES
        self._columns = columns
        self._page = self._page_sql()
        self._read = self._read_sql()
        self._write = {each: self._write_sql(with_compare_at=each) for each in (False, True)}

    def page(self, connection: Connection[Any], after: Any, most: int) -> list[Any]:
        """Return the next rows by key: key, price, compare-at, currency, cost, sku, tags and fields."""
        first, more = self._page
        if after is None:
            return connection.execute(first, [most]).fetchall()
        return connection.execute(more, [after, most]).fetchall()

    def read(self, connection: Connection[Any], ids: Sequence[str]) -> list[Any]:
        """Return id, price, compare-at and currency of those that exist."""
        return connection.execute(self._read, [list(ids)]).fetchall()

    def rounded(self, write: Write) -> str | None:
        """Return which amount the table would round, as a sentence: it would store another price than the plan has."""
        columns, after = self._columns, write.after
        for name, units, is_written in (
            (columns.price, after.unit_amount, write.writes_price),
            (columns.compare_at, after.compare_at, write.writes_compare_at),
        ):
            places = EXPONENTS[after.currency] - self._decimals.get(name or "", EXPONENTS[after.currency])
            if is_written and units is not None and places > 0 and units % 10**places:
                return f"the column {name} has too few decimals for {decimal(units, after.currency)}"
        return None

    def write(self, connection: Connection[Any], writes: Sequence[Write]) -> tuple[Sequence[int], list[Any]]:
        """Compare and set; return the places that were written, and of others that exist the place and what is there.

        Places begin with 1. Arrays are written in one go, because the driver would inspect each item in turn. If all
        were written the statement returns no row, because reading one per item took as long as writing the arrays.
        """
        if not writes:
            return [], []
        suffixes = self._suffixes
        price_of = [(write, suffixes[write.after.currency]) for write in writes]
        given: list[Any] = [
            Texts(write.item_id for write in writes),
            _array(_amount(write.before.unit_amount, end) if write.writes_price else "null" for write, end in price_of),
            _array(_amount(write.after.unit_amount, end) if write.writes_price else "null" for write, end in price_of),
        ]
        if self._columns.currency is not None:
            given.append(Texts(write.after.currency for write in writes))
        with_compare_at = any(write.writes_compare_at for write in writes)
        if with_compare_at:
            given += [
                _array("t" if write.writes_compare_at else "f" for write in writes),
                _array(_amount(write.before.compare_at, end) for write, end in price_of),
                _array(_amount(write.after.compare_at, end) for write, end in price_of),
            ]
        # Not prepared: a plan for any number of items joins them by a loop over both, and took twice as long.
        rows = connection.execute(self._write[with_compare_at], given, prepare=False).fetchall()
        if not rows:
            return range(1, len(writes) + 1), []
        return rows[0][0] or [], [row[1:] for row in rows[1:]]

    def _column(self, name: str | None) -> sql.Composable:
        return sql.SQL("null") if name is None else sql.Identifier("t", name)

    def _page_sql(self) -> tuple[bytes, bytes]:
        columns = self._columns
        own = [columns.price, columns.compare_at, columns.currency, columns.cost, columns.sku, columns.tags]
        chosen = sql.SQL(", ").join([self._column(name) for name in [*own, *columns.fields]])
        parts = {"key": sql.Identifier("t", columns.key), "chosen": chosen, "table": sql.Identifier(*columns.table)}
        first = sql.SQL("select {key}, {chosen} from {table} t order by {key} limit %s").format(**parts)
        more = sql.SQL("select {key}, {chosen} from {table} t where {key} > %s order by {key} limit %s").format(**parts)
        return first.as_bytes(None), more.as_bytes(None)

    def _read_sql(self) -> bytes:
        columns = self._columns
        return (
            sql.SQL(
                "select u.id, {price}, {compare_at}, {currency} from unnest(%s::text[]) u (id) "
                "join {table} t on {key} = u.id::{key_type}"
            )
            .format(
                price=self._column(columns.price),
                compare_at=self._column(columns.compare_at),
                currency=self._column(columns.currency),
                table=sql.Identifier(*columns.table),
                key=sql.Identifier("t", columns.key),
                key_type=sql.SQL(
                    "text" if self.key_type == "text" else "bigint" if self.key_type == "bigint" else "uuid"
                ),
            )
            .as_bytes(None)
        )

    def _write_sql(self, *, with_compare_at: bool) -> bytes:
        """Lock the rows in the order of their keys, and update those that show what the preview saw.

        The comparison stands in the UPDATE itself, so it holds for the newest version of each row.
        """
        columns = self._columns
        compare = columns.compare_at if with_compare_at else None
        price = sql.Identifier(columns.price)
        names = ["id", "price_before", "price_after"]
        arrays = [sql.SQL("%s::text[]"), self._amounts, self._amounts]
        sets = [sql.SQL("{0} = coalesce(w.price_after, t.{0})").format(price)]  # null: the price is kept
        tests = [sql.SQL("(w.price_after is null or t.{0} is not distinct from w.price_before)").format(price)]
        if columns.currency is not None:
            names.append("currency")
            arrays.append(sql.SQL("%s::text[]"))
            tests.append(sql.SQL("t.{0} = w.currency").format(sql.Identifier(columns.currency)))
        if with_compare_at:
            names += ["sets_compare_at", "compare_before", "compare_after"]
            arrays += [sql.SQL("%s::boolean[]"), self._amounts, self._amounts]
        if compare is not None:
            own = sql.Identifier(compare)
            sets.append(sql.SQL("{0} = case when w.sets_compare_at then w.compare_after else t.{0} end").format(own))
            tests.append(sql.SQL("(not w.sets_compare_at or t.{0} is not distinct from w.compare_before)").format(own))
        return (
            sql.SQL(
                "with wanted as (select u.*, u.id::{key_type} as key from unnest({arrays}) with ordinality "
                "u ({names}, place)), "
                "shown as (select w.place, {price} as price, {compare_at} as compare_at, {currency} as currency "
                "from wanted w join {table} t on {key} = w.key order by {key} for update of t), "
                "written as (update {table} t set {sets} from wanted w "
                "where {key} = w.key and w.place in (select s.place from shown s) and {tests} "  # after the locks
                "returning w.place) "
                "select array_agg(x.place), null, null, null, null from written x "
                "having count(*) < (select count(*) from wanted) "
                "union all select null, s.place, s.price, s.compare_at, s.currency "
                "from shown s where s.place not in (select x.place from written x)"
            )
            .format(
                key_type=sql.SQL(
                    "text" if self.key_type == "text" else "bigint" if self.key_type == "bigint" else "uuid"
                ),
                arrays=sql.SQL(", ").join(arrays),
                names=sql.SQL(", ").join(map(sql.Identifier, names)),
                price=self._column(columns.price),
                compare_at=self._column(columns.compare_at),
                currency=self._column(columns.currency),
                table=sql.Identifier(*columns.table),
                key=sql.Identifier("t", columns.key),
                sets=sql.SQL(", ").join(sets),
                tests=sql.SQL(" and ").join(tests),
            )
            .as_bytes(None)
        )


def _array(items: Iterable[str]) -> str:
    """Return an array as PostgreSQL reads it, of items that need no quotes."""
    return f"{{{','.join(items)}}}"


def _amount(units: int | None, suffix: str) -> str:
    """Return an amount as PostgreSQL reads it: 4990e-2 is 49.90."""
    return "null" if units is None else f"{units}{suffix}"
