"""Reads for people: a question is a value, and its answer rows as frozen dataclasses."""

from __future__ import annotations

from dataclasses import asdict, dataclass, is_dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, LiteralString, TypeVar

from psycopg import Connection
from psycopg.rows import class_row, scalar_row

from holdfast.kernel.db import translated

Row = TypeVar("Row")
# Whatever the statistics say: what people look at is few rows of many. For this transaction only, as poolers want it.
# Without jit: before 18 a disabled plan type adds 1e10 to a plan's cost, and the server would compile each read.
BY_INDEX: LiteralString = """
select pg_catalog.set_config(s.name, 'off', true) from unnest('{enable_seqscan,enable_bitmapscan,jit}'::text[]) s (name)
"""


@dataclass(frozen=True, slots=True)
class JsonText:
    """JSON as the database wrote it: no number in it has been through a float."""

    text: str


JSON_COLUMNS = frozenset({"input", "cursor", "result", "error", "payload", "about", "context"})


def as_mapping(row: Any) -> dict[str, Any]:
    """Give a row as a mapping that becomes JSON: its columns of JSON are marked, and so stay as they are."""
    columns = asdict(row)
    return {k: JsonText(v) if k in JSON_COLUMNS and v is not None else v for k, v in columns.items()}


@dataclass(frozen=True, slots=True)
class Question(Generic[Row]):
    """A read, not yet made; `row` is what each row of the answer becomes."""

    text: LiteralString
    row: type[Row]
    arguments: dict[str, Any]


def ask(connection: Connection[Any], question: Question[Row]) -> list[Row]:
    """Ask, in the transaction that is open on the connection, else in one of its own."""
    factory: Any = class_row(question.row) if is_dataclass(question.row) else scalar_row
    with translated(), connection.transaction(), connection.cursor(row_factory=factory) as cursor:
        cursor.execute(BY_INDEX)
        rows: list[Row] = cursor.execute(question.text, question.arguments).fetchall()
        return rows


def ask_one(connection: Connection[Any], question: Question[Row]) -> Row | None:
    """Ask for a row that is there or not."""
    return next(iter(ask(connection, question)), None)


def moment_ago(connection: Connection[Any], span: timedelta) -> datetime:
    """Give the moment a span ago, by the database's clock."""
    (moment,) = ask(connection, Question("select holdfast.clock() - %(span)s", datetime, {"span": span}))
    return moment
