"""Runs a Call, sync or async, in the caller's transaction or one of its own; turns the database's errors into ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncConnection, AsyncCursor, Connection, Cursor, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader

from holdfast import errors
from holdfast.failpoints import failpoint
from holdfast.kernel import sqlstates
from holdfast.kernel.call import Call
from holdfast.kernel.sqlstates import ServerError
from holdfast.models import Unreadable

Row = TypeVar("Row")
AnyCursor = TypeVar("AnyCursor", Cursor[Any], AsyncCursor[Any])

_INT = 2**31 - 1
TRIES = 5  # of a call that met a deadlock, in a transaction of its own
DEADLOCK = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
BREAKS = (psycopg.OperationalError, psycopg.InterfaceError, errors.Unreachable)  # what a lost connection raises
# The server ends the connection with these. The driver may notice the end only when it uses it again.
_ENDINGS = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"})
_CONNECTION = "08"  # the class of SQLSTATEs; poolers use it for all that they refuse
_BULK_STARTS = frozenset({"start_tasks", "take_staged"})


def run(connection: Connection[Any], call: Call[Row]) -> list[Row]:
    """Make the call: in the transaction that is open on the connection, else in one of its own."""
    for last in range(1 - TRIES, 1):
        status = connection.pgconn.transaction_status
        try:
            with translated(call), connection.cursor(row_factory=_rows(call)) as cursor:
                failpoint(f"before_{call.function}")
                rows = _ready(cursor, call).execute(_statement(call), _arguments(call)).fetchall()
                failpoint(f"after_{call.function}")
                return rows
        except DEADLOCK:
            if last == 0 or not _is_alone(connection):
                raise
        except BREAKS as error:
            translated_error = _broken(connection, call, status, error)
            if translated_error is None:
                raise
            raise translated_error from error
    raise AssertionError("not reached")


async def arun(connection: AsyncConnection[Any], call: Call[Row]) -> list[Row]:
    """Make the call, as `run` does."""
    for last in range(1 - TRIES, 1):
        status = connection.pgconn.transaction_status
        try:
            with translated(call):
                async with connection.cursor(row_factory=_rows(call)) as cursor:
                    failpoint(f"before_{call.function}")
                    await _ready(cursor, call).execute(_statement(call), _arguments(call))
                    rows = await cursor.fetchall()
                    failpoint(f"after_{call.function}")
                    return rows
        except DEADLOCK:
            if last == 0 or not _is_alone(connection):
                raise
        except BREAKS as error:
            translated_error = _broken(connection, call, status, error)
            if translated_error is None:
                raise
            raise translated_error from error
    raise AssertionError("not reached")


def _is_alone(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Whether the call was its own transaction: then it was undone whole and may be made again."""
    return connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


def _broken(
    connection: Connection[Any] | AsyncConnection[Any], call: Call[Any], status: int, error: BaseException
) -> errors.DatabaseError | None:
    """Name what a lost connection means for a call; None inside a transaction, whose owner knows what it means."""
    if not connection.autocommit or not is_lost(connection, error):
        return None
    if status == TransactionStatus.UNKNOWN:  # it was closed before: nothing was sent
        return gone(error)
    return unanswered(call, error) if status == TransactionStatus.IDLE else None


def is_lost(connection: Connection[Any] | AsyncConnection[Any], error: BaseException) -> bool:
    """Whether an error came with the end of the connection, noticed by the driver or not."""
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    return connection.closed or connection.broken or state in _ENDINGS or state.startswith(_CONNECTION)


def unanswered(call: Call[Any], error: BaseException) -> errors.DatabaseError:
    """Say that a call was sent on a connection that then broke: of a write nobody knows here whether it was done."""
    place = f"{call.schema}.{call.function}"
    if call.is_read:
        return gone(error, f"{place} was not answered")
    return unknown(error, place, _repeat(call))


def gone(error: BaseException, what: str = "the database went away") -> errors.Unreachable:
    """Say that a connection is gone and nothing was done by it."""
    return errors.Unreachable(f"{what}: {_line(error)}", next="see that the server runs, and try again")


def unknown(error: BaseException, place: str, then: str) -> errors.CommitUnknown:
    """Say that the answer to a write was lost, and how to go on."""
    return errors.CommitUnknown(f"{place} was not answered, so it may have been done or not: {_line(error)}", next=then)


def gave_up(error: psycopg.Error) -> errors.DatabaseError:
    """Describe an error that the server gave for no fault of the call."""
    return errors.DatabaseError(f"the database gave up: {_message(error)}", next="try again when it has less to do")


def _repeat(call: Call[Any]) -> str:
    """Say how to repeat a call whose answer was lost; one that takes a key is done once per key, in every face."""
    if (key := call.arguments.get("key")) is not None:
        return f"repeat it with the same key, {key!r}: it is not done twice"
    if "key" in call.arguments or call.function in _BULK_STARTS:
        return "look for it before you repeat it, or pass a key, which makes a repeat safe"
    return "check its state, or repeat the call"


def _line(error: BaseException) -> str:
    message = error.what if isinstance(error, errors.HoldfastError) else str(error)
    return " ".join(message.split())


def _statement(call: Call[Any]) -> bytes:
    statement = _compose(call.schema, call.function, tuple(call.arguments))
    return statement if call.then_within is None else statement + _then_within(call.then_within)


@cache
def _compose(schema: LiteralString, function: LiteralString, names: tuple[str, ...]) -> bytes:
    arguments = sql.SQL(", ").join(
        sql.SQL("{} => {}").format(sql.Identifier(name), sql.Placeholder(name)) for name in names
    )
    place = sql.SQL(schema + "." + function)  # our own words, unquoted: a self-test finds them by the schema's name
    return sql.SQL("select f.* from {}({}) as f").format(place, arguments).as_bytes(None)


@cache
def _then_within(span: timedelta) -> bytes:
    """Let the same statement set how long the transaction may be idle after it: by one of its own it costs a trip."""
    milliseconds = max(1, round(span.total_seconds() * 1000))
    setting = sql.SQL(", pg_catalog.set_config('idle_in_transaction_session_timeout', {}, true) as set")
    return setting.format(sql.Literal(str(milliseconds))).as_bytes(None)


def _arguments(call: Call[Any]) -> dict[str, Any]:
    """Leave the type of a large number to the function: by its size the driver would look for another one."""
    return {name: str(a) if type(a) is int and abs(a) > _INT else a for name, a in call.arguments.items()}


def _ready(cursor: AnyCursor, call: Call[Any]) -> AnyCursor:
    """Let a cursor read any JSON: one input that Python cannot read must not cost the others of its batch."""
    if call.keeps_json:
        cursor.adapters.register_loader("jsonb", TextLoader)
    else:
        set_json_loads(_read_json, cursor)
    return cursor


def _read_json(text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except (RecursionError, ValueError) as error:
        return Unreadable(str(error))


def _rows(call: Call[Row]) -> Any:
    if issubclass(call.row, tuple):
        return _named_tuple_row(call.row)
    return class_row(call.row) if is_dataclass(call.row) else scalar_row


def _named_tuple_row(row: Any) -> Any:
    """Make rows by position: a SQL function's columns and its named tuple's fields are the same, as a test sees to."""
    make = partial(tuple.__new__, row)
    return lambda _cursor: make


@contextmanager
def translated(call: Call[Any] | None = None) -> Iterator[None]:
    """Raise our own error for each that has one, by its SQLSTATE."""
    try:
        yield
    except psycopg.Error as error:
        translated_error = refusal(report(error), call)
        if translated_error is None:
            raise
        raise translated_error from error
    except RecursionError as error:
        raise errors.BadInput("the JSON is nested too deep", next="flatten it, or keep it elsewhere") from error
    except UnicodeEncodeError as error:  # a lone surrogate: it has no UTF-8
        raise errors.BadInput(f"the text cannot be stored: {error.reason}", next="leave lone surrogates out") from error


def report(error: psycopg.Error) -> ServerError:
    """Read the fields of psycopg's error; a value that the driver itself refuses has no SQLSTATE."""
    state = error.sqlstate or (sqlstates.DATA_EXCEPTION if isinstance(error, psycopg.DataError) else "")
    fields = error.diag
    return ServerError(state, _message(error), fields.column_name, fields.constraint_name, fields.message_hint)


def refusal(error: ServerError, call: Call[Any] | None) -> errors.HoldfastError | None:
    """Find our error for the server's answer to a call; an argument of the wrong type is named."""
    misfit = call.misfit() if call is not None and error.may_be_a_misfit else None
    return sqlstates.translate(error) if misfit is None else errors.BadInput(misfit[1], where=misfit[0])


def translate(error: psycopg.Error) -> errors.HoldfastError | None:
    """Find our error for one of psycopg's; None where it has none and speaks for itself."""
    return sqlstates.translate(report(error))


def _message(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error)
