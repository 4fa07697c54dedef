"""asyncpg: writes a call in its parameter style, and a bulk start as COPY.

JSON is sent as text and cast by the server, because an app may have set its own codec for jsonb, which would encode the
text a second time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any, LiteralString, TypeVar
from uuid import UUID

import asyncpg
from psycopg.types.json import Jsonb

from holdfast import errors
from holdfast.connections.caller.types import AsyncpgDriver
from holdfast.kernel import calls, copy_text, db, sqlstates
from holdfast.kernel.bulk import COLUMNS, STAGED, Start
from holdfast.kernel.call import Call
from holdfast.kernel.sqlstates import ServerError
from holdfast.models import Json

Row = TypeVar("Row")
_ERRORS = (asyncpg.PostgresError, asyncpg.InterfaceError)
_BREAKS = (*_ERRORS, OSError)  # what a lost connection raises


async def run(connection: AsyncpgDriver, call: Call[Row]) -> list[Row]:
    """Make a call that returns one column, in the transaction that is open on the connection, else in its own."""
    is_alone, was_closed = not connection.is_in_transaction(), connection.is_closed()
    arguments = list(call.arguments.values())
    places = tuple(place for place, value in enumerate(arguments) if isinstance(value, (Json, Jsonb)))
    statement = _compose(call.schema, call.function, tuple(call.arguments), places, call.is_delayed)
    for place in places:
        arguments[place] = _written(arguments[place])
    for last in range(1 - db.TRIES, 1):
        try:
            rows = await connection.fetch(statement, *arguments)
        except (*_BREAKS, UnicodeEncodeError) as error:
            if ours := _translated(error, call):
                raise ours from error
            if is_alone and connection.is_closed():
                raise (db.gone(error) if was_closed else db.unanswered(call, error)) from error
            if not is_alone or last == 0 or getattr(error, "sqlstate", None) not in sqlstates.DEADLOCKS:
                raise
        else:
            return [_read(call.row, row[0]) for row in rows]
    raise AssertionError("not reached")


async def start_tasks(connection: AsyncpgDriver, tasks: Iterable[Start], *, tenant: str) -> int:
    """Start many tasks, all or none, and return their number."""
    async with _all_or_none(connection):
        await run(connection, calls.stage_steps())
        schema, _, table = STAGED.partition(".")
        try:
            await connection.copy_to_table(table, source=_pieces(tasks), columns=COLUMNS, schema_name=schema)
        except (*_ERRORS, UnicodeEncodeError) as error:
            if ours := _translated(error):
                raise ours from error
            raise
        (taken,) = await run(connection, calls.take_staged("work.task", tenant=tenant))
    return taken


@asynccontextmanager
async def _all_or_none(connection: AsyncpgDriver) -> AsyncIterator[None]:
    """Open a transaction, or a savepoint inside the caller's, so that a failure undoes only the start."""
    if not connection.is_in_transaction():
        async with connection.transaction():
            yield
        return
    # With statements, because asyncpg's own savepoints reject a transaction that a statement began.
    await connection.execute("savepoint holdfast_start")
    try:
        yield
    except BaseException:
        if not connection.is_closed():
            await connection.execute("rollback to savepoint holdfast_start; release savepoint holdfast_start")
        raise
    await connection.execute("release savepoint holdfast_start")


async def _pieces(tasks: Iterable[Start]) -> AsyncIterator[bytes]:
    for piece in copy_text.pieces(tasks):
        yield piece.encode()


@cache
def _compose(
    schema: LiteralString, function: LiteralString, names: tuple[str, ...], json_at: tuple[int, ...], is_delayed: bool
) -> str:
    starts = [db.FROM_NOW if is_delayed and name == "due_at" else "" for name in names]
    casts = ["::text::jsonb" if place in json_at else "" for place in range(len(names))]
    places = enumerate(zip(names, starts, casts, strict=True), start=1)
    written = ", ".join(f'"{name}" => {start}${place}{cast}' for place, (name, start, cast) in places)
    return f"select {schema}.{function}({written})"


def _written(value: Json | Jsonb) -> str:
    return value if isinstance(value, str) else str((value.dumps or json.dumps)(value.obj))


def _read(row: type[Row], value: Any) -> Any:
    """Convert a value to its type: asyncpg has its own UUID, and an app's codec may return text."""
    return UUID(str(value)) if row is UUID else value


def _translated(error: BaseException, call: Call[Any] | None = None) -> errors.HoldfastError | None:
    """Find our error for one of the driver's, by its SQLSTATE."""
    if isinstance(error, UnicodeEncodeError):  # a lone surrogate has no UTF-8
        return errors.BadInput(f"the text cannot be stored: {error.reason}", next="leave lone surrogates out")
    return db.refusal(_report(error), call) if isinstance(error, _ERRORS) else None


def _report(error: Any) -> ServerError:
    """Read the fields of an error; a value that the driver itself rejects is an InterfaceError and a ValueError."""
    if not isinstance(error, asyncpg.PostgresError):
        return ServerError(sqlstates.DATA_EXCEPTION if isinstance(error, ValueError) else "", str(error))
    return ServerError(
        error.sqlstate or "",
        str(error.args[0]) if error.args else str(error),
        getattr(error, "column_name", None),
        getattr(error, "constraint_name", None),
        getattr(error, "hint", None),
    )
