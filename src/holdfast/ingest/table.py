"""A table of another PostgreSQL database as a source: pages by `(updated_at, key)`, each a short statement."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import psycopg
from psycopg import sql

from holdfast.env import Env
from holdfast.errors import BadDefinition, Rejected, Unavailable
from holdfast.ingest.settings import check_page_size, check_timezone
from holdfast.ingest.source import Page, Part, Window
from holdfast.ingest.source_connections import SourceConnections
from holdfast.ingest.table_sql import BOUND, COLUMNS, INDEXED, MAY_READ, SEES_OTHERS, SIZE, UNIQUE, TableRow

SAMPLED_FROM = 2_000_000  # rows of a window: above, a sample of the table gives the bounds of partitions
SAMPLE = 200_000
WHOLE = 100.0
NULLS = "null"  # the part of rows without a time or a key, which are quarantined


class Table:
    """A table of a PostgreSQL database: `Table(Env("SHOP_DSN"), "orders", key="id", updated_at="changed_at")`.

    `key` is its unique key, `updated_at` the time of a row's last change, and `deleted` a column that is true, or not
    null, in a row that counts as deleted. A `timestamp` column needs its `timezone`. An index on
    `(updated_at, key)` makes pages cheap.
    """

    paging = "key"
    needs_updated_at = True

    def __init__(
        self,
        dsn: Env | str,
        table: str,
        *,
        key: str,
        updated_at: str,
        deleted: str | None = None,
        timezone: str | None = None,
        page_size: int = 1000,
        name: str | None = None,
    ) -> None:
        check_page_size(page_size)
        check_timezone(timezone)
        parts = table.split(".")
        if len(parts) > 2 or not all(parts):
            raise BadDefinition(f"table must be name or schema.name, got {table!r}", where="table", next='use "orders"')
        self.table, self.page_size, self.name, self.timezone = table, page_size, name, timezone
        self._key, self._updated_at, self._deleted = key, updated_at, deleted
        self._types: dict[str, str] | None = None
        self._pages: dict[tuple[Any, ...], bytes] = {}  # statements, by the bounds that they have
        self._table = sql.Identifier(*parts)
        self._table_name = self._table.as_string()
        self._connections = SourceConnections(dsn)

    def key(self, record: TableRow) -> str | None:
        """Return the key of a row."""
        return record.key

    def updated_at(self, record: TableRow) -> datetime | None:
        """Return when a row changed."""
        return record.updated_at

    def deleted(self, record: TableRow) -> bool:
        """Return whether a row is a tombstone."""
        return record.is_deleted

    def render(self, record: TableRow) -> str:
        """Return a row as the JSON that the source rendered, in which numbers keep every digit."""
        return record.text

    def check(self) -> None:
        """Raise BadDefinition for a table that cannot be read, lacks a column, or has a key that is not unique."""
        types = self._known()
        for column in filter(None, [self._key, self._updated_at, self._deleted]):
            if column not in types:
                raise BadDefinition(
                    f"the source table {self.table} has no column {column}", where=column, next="check its name"
                )
        if types[self._updated_at].startswith("timestamp without") and self.timezone is None:
            raise BadDefinition(
                f"{self.table}.{self._updated_at} is a timestamp without time zone",
                where="timezone",
                next='name its time zone, as in timezone="UTC"',
            )
        if not types[self._updated_at].startswith("timestamp"):
            raise BadDefinition(
                f"{self.table}.{self._updated_at} must be a timestamp, got {types[self._updated_at]}",
                where="updated_at",
                next="name the column with the time of the last change",
            )
        (may_read, login), *_ = self._asked(MAY_READ)
        if not may_read:
            grant = f"grant select on {self._table_name} to {login}"
            raise BadDefinition(f"the source's login may not read {self.table}", where=self.table, next=grant)
        if not self._asked(UNIQUE)[0][0]:
            raise BadDefinition(
                f"{self.table}.{self._key} is not unique", where=self._key, next="name a column with a unique index"
            )
        if self._asked("select pg_catalog.pg_is_in_recovery()")[0][0]:
            raise BadDefinition(
                "the source is a standby, which does not show the transactions of its primary",
                where="dsn",
                next="read from the primary",
            )

    def warnings(self) -> list[str]:
        """List warnings for a plan: a missing index, and whether only the overlap protects against late commits."""
        found = []
        if not self._asked(INDEXED)[0][0]:
            found.append(
                f"no index on ({self._updated_at}, {self._key}): create index concurrently on "
                f"{self.table} ({self._updated_at}, {self._key})"
            )
        if not self._asked(SEES_OTHERS)[0][0]:
            hidden = "the login does not see the transactions of others"
            found.append(f"{hidden}, so only the overlap protects against late commits: grant pg_read_all_stats to it")
        return found

    def close(self) -> None:
        """Close the idle connections; the source may be used again."""
        self._connections.close()

    def now(self) -> datetime:
        """Return a bound before the start of the oldest open transaction, so that a late commit is newer."""
        at: datetime = self._asked(BOUND)[0][0]
        return at

    def page(self, window: Window, part: Part, cursor: Any, limit: int) -> Page:
        """Return the next rows by time and key."""
        values = self._values(window, part, cursor)
        shape = (part.low == NULLS, *values)
        if shape not in self._pages:  # composed once, not per page
            self._pages[shape] = sql.SQL(
                "select t.{key}::text, pg_catalog.row_to_json(t)::text, {at}, {deleted}, t.{updated}::text "
                "from {table} t where {where} order by {order} limit %(limit)s"
            ).format(
                key=sql.Identifier(self._key), at=self._time(), deleted=self._tombstone(),
                updated=sql.Identifier(self._updated_at), table=self._table,
                where=self._where(part, values),
                order=sql.SQL("t.{}").format(sql.Identifier(self._key)) if part.low == NULLS
                else sql.SQL("t.{}, t.{}").format(sql.Identifier(self._updated_at), sql.Identifier(self._key)),
            ).as_bytes()  # fmt: skip
        rows = self._asked(self._pages[shape], {**values, "limit": limit})
        records = list(map(TableRow._make, rows))
        last = [records[-1].position, records[-1].key] if records else None
        return Page(records, last)

    def count(self, window: Window, part: Part) -> int:
        """Count the rows of a part."""
        values = self._values(window, part)
        where = self._where(part, values)
        rows = self._asked(sql.SQL("select count(*) from {} t where {}").format(self._table, where), values)
        return int(rows[0][0])

    def lookup(self, keys: list[str]) -> list[str]:
        """Return those of the keys that the table still has, without tombstones."""
        rows = self._asked(
            sql.SQL("select t.{0}::text from {1} t where t.{0} = any (%(keys)s::{2}[]) and not {3}").format(
                sql.Identifier(self._key), self._table, self._type(self._key),
                self._tombstone(),
            ),
            {"keys": keys},
        )  # fmt: skip
        return [key for (key,) in rows]

    def partitions(self, window: Window, most: int, least: int) -> list[Part]:
        """Divide the window by one read of the index; rows of the same time are divided by key."""
        values = self._values(window, Part())
        where = self._where(Part(), values)
        share = self._share(where, values)
        found = self._asked(
            sql.SQL(
                "with n as (select t.{updated}::text as at, t.{key}::text as key, "
                "row_number() over (order by t.{updated}, t.{key}) - 1 as no, count(*) over () as total "
                "from {table} t {sample} where {where}) "
                "select n.at, n.key, n.total from n "
                "where n.no %% greatest(1, ceil(n.total / %(most)s::numeric), "
                "ceil(%(least)s * {share} / 100))::bigint = 0 order by n.no"
            ).format(
                updated=sql.Identifier(self._updated_at), key=sql.Identifier(self._key), where=where,
                table=self._table, share=sql.Literal(share),
                sample=sql.SQL("") if share == WHOLE else sql.SQL("tablesample system ({})").format(sql.Literal(share)),
            ),
            {**values, "most": most - 1 if most > 1 else 1, "least": least},
        )  # fmt: skip
        edges = [[at, key] for at, key, _ in found][1:]
        total = int(found[0][2] * 100 / share) if found else 0
        bounds = zip([None, *edges], [*edges, None], strict=True)
        parts = [Part(low, high, -(-total // (len(edges) + 1))) for low, high in bounds]
        if not found:  # a sample that has no row does not say that there is none
            parts = [] if share == WHOLE else [Part()]
        nulls = self.count(window, Part(NULLS))
        return [*parts, Part(NULLS, None, nulls)] if nulls else parts

    def _share(self, where: sql.Composable, values: dict[str, Any]) -> float:
        """Return which percentage of the table to read for the bounds: all of it unless the window is large.

        The statistics tell only the size of the table. A sample of a large table may have no row of a small window.
        """
        size = float(self._asked(SIZE)[0][0])
        if size < SAMPLED_FROM:
            return WHOLE
        some = sql.SQL("select count(*) from (select from {} t where {} limit {}) w").format(
            self._table, where, sql.Literal(SAMPLED_FROM)
        )
        return WHOLE if self._asked(some, values)[0][0] < SAMPLED_FROM else min(WHOLE, 100.0 * SAMPLE / size)

    def _values(self, window: Window, part: Part, cursor: Any = None) -> dict[str, Any]:
        """Return the bounds of a part of the window, or of what is left of it after a cursor.

        A cursor replaces the lower bound. With both, the index is read from the lower bound on for each page.
        """
        is_nulls = part.low == NULLS
        times = {} if is_nulls else {"until": window.until, "since": window.since}
        values: dict[str, Any] = {name: time for name, time in times.items() if time is not None}
        low = None if is_nulls or cursor is not None else part.low
        for name, bound in (("low", low), ("high", part.high), ("cursor", cursor)):
            values |= {} if bound is None else {name: bound[0], f"{name}_key": bound[1]}
        return values

    def _where(self, part: Part, values: dict[str, Any]) -> sql.Composable:
        """Return the condition for the bounds that are given."""
        column, key = (sql.SQL("t.{}").format(sql.Identifier(name)) for name in (self._updated_at, self._key))
        conditions = [
            sql.SQL("{} {} {}").format(column, sql.SQL(operator), self._moment(name))
            for name, operator in (("until", "<="), ("since", ">")) if name in values
        ] + [
            sql.SQL("{} {} {}").format(self._place(part), sql.SQL(operator), self._bound(part, name))
            for name, operator in (("low", ">="), ("high", "<"), ("cursor", ">")) if name in values
        ]  # fmt: skip
        if part.low == NULLS:
            conditions.append(sql.SQL("({} is null or {} is null)").format(column, key))
        return sql.SQL(" and ").join(conditions)

    def _place(self, part: Part) -> sql.Composable:
        """Return the columns by which rows are ordered."""
        key = sql.SQL("t.{}").format(sql.Identifier(self._key))
        return key if part.low == NULLS else sql.SQL("(t.{}, {})").format(sql.Identifier(self._updated_at), key)

    def _bound(self, part: Part, name: str) -> sql.Composable:
        key = sql.SQL("{}::{}").format(sql.Placeholder(f"{name}_key"), self._type(self._key))
        if part.low == NULLS:
            return key
        return sql.SQL("({}::{}, {})").format(sql.Placeholder(name), self._type(self._updated_at), key)

    def _moment(self, name: str) -> sql.Composable:
        """Return a time of the window as the column has it."""
        moment = sql.SQL("{}::timestamptz").format(sql.Placeholder(name))
        if self._is_zoned():
            return moment
        return sql.SQL("({} at time zone {})").format(moment, sql.Literal(self.timezone))

    def _time(self) -> sql.Composable:
        """Return the time of a row, and null for one that Python has no value for: -infinity, or before year 1."""
        column = sql.SQL("t.{}").format(sql.Identifier(self._updated_at))
        zone = sql.SQL("") if self._is_zoned() else sql.SQL(" at time zone {}").format(sql.Literal(self.timezone))
        return sql.SQL("case when {0} >= '0001-01-02' then {0}{1} end").format(column, zone)

    def _tombstone(self) -> sql.Composable:
        if self._deleted is None:
            return sql.SQL("false")
        column = sql.Identifier(self._deleted)
        if self._known()[self._deleted] == "boolean":
            return sql.SQL("coalesce(t.{}, false)").format(column)
        return sql.SQL("(t.{} is not null)").format(column)

    def _is_zoned(self) -> bool:
        return not self._known()[self._updated_at].startswith("timestamp without")

    def _type(self, column: str) -> sql.SQL:
        return sql.SQL(self._known()[column])

    def _known(self) -> dict[str, str]:
        if self._types is None:
            types = dict(self._asked(COLUMNS))
            if not types:
                raise BadDefinition(
                    f"there is no source table {self.table}, or the login may not see it", where=self.table,
                    next="check the name and the search_path, or grant usage on its schema",
                )  # fmt: skip
            self._types = types
        return self._types

    def _asked(self, statement: Any, values: dict[str, Any] | None = None) -> Sequence[Any]:
        """Run one read-only statement, after which no transaction and no snapshot is open."""
        given = {"table": self._table_name, "key": self._key, "updated_at": self._updated_at, **(values or {})}
        try:
            with self._connections.lent() as connection:
                return connection.execute(statement, given).fetchall()
        except psycopg.errors.InsufficientPrivilege as error:
            raise Rejected(f"the source refused: {error.diag.message_primary}", where=self.table) from error
        except psycopg.OperationalError as error:
            raise Unavailable(f"the source database does not respond: {type(error).__name__}") from error
