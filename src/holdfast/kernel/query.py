"""Reads for people: a query is a value, and its rows are frozen dataclasses."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, LiteralString, TypeVar

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from holdfast.kernel.db import translated

Row = TypeVar("Row")
# People read few rows of many, whatever the statistics say. For this transaction only, because of poolers.
# jit off: before PostgreSQL 18 a disabled plan type adds 1e10 to the cost, so the server would compile each read.
BY_INDEX: LiteralString = """
select pg_catalog.set_config(s.name, 'off', true) from unnest('{enable_seqscan,enable_bitmapscan,jit}'::text[]) s (name)
"""


@dataclass(frozen=True, slots=True)
class JsonText:
    """JSON as the database wrote it, so that no number has passed through a float."""

    text: str


JSON_COLUMNS = frozenset({"input", "cursor", "result", "error", "payload", "about", "context", "metadata"})


def as_mapping(row: Any) -> dict[str, Any]:
    """Return a row as a mapping for JSON output; its JSON columns are marked so that they stay unchanged."""
    columns = asdict(row)
    return {k: JsonText(v) if k in JSON_COLUMNS and v is not None else v for k, v in columns.items()}


@dataclass(frozen=True, slots=True)
class Query(Generic[Row]):
    """A read that is not yet made; `row` is the type of each row."""

    text: LiteralString
    row: type[Row]
    arguments: dict[str, Any]


def query(connection: Connection[Any], read: Query[Row]) -> list[Row]:
    """Return the rows of a read, in the transaction that is open on the connection, else in its own."""
    factory: Any = class_row(read.row) if is_dataclass(read.row) else scalar_row
    with translated(), connection.transaction(), connection.cursor(row_factory=factory) as cursor:
        cursor.execute(BY_INDEX)
        rows: list[Row] = cursor.execute(read.text, read.arguments).fetchall()
        return rows


def query_one(connection: Connection[Any], read: Query[Row]) -> Row | None:
    """Return the first row, or None."""
    return next(iter(query(connection, read)), None)


def limit_time(connection: Connection[Any], span: timedelta) -> None:
    """Let the server cancel each statement of this connection after `span`."""
    milliseconds = str(round(span.total_seconds() * 1000))
    connection.execute("select pg_catalog.set_config('statement_timeout', %s, false)", [milliseconds])


def moment_ago(connection: Connection[Any], span: timedelta) -> datetime:
    """Return the time `span` ago, by the database's clock."""
    (moment,) = query(connection, Query("select holdfast.clock() - %(span)s", datetime, {"span": span}))
    return moment


def clock(connection: Connection[Any]) -> datetime:
    """Read the database's clock, which ages are computed from."""
    return moment_ago(connection, timedelta(0))
