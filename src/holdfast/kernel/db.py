"""Runs a Call, sync or async, in the caller's transaction or its own; turns the database's errors into ours."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from datetime import timedelta
from functools import cache, partial
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import AsyncClientCursor, AsyncConnection, AsyncCursor, ClientCursor, Connection, Cursor, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import class_row, scalar_row
from psycopg.types.json import set_json_loads
from psycopg.types.string import TextLoader

from holdfast import errors
from holdfast.failpoints import failpoint
from holdfast.kernel import self_test_schema, sqlstates
from holdfast.kernel.call import Call
from holdfast.kernel.sqlstates import ServerError
from holdfast.models import Unreadable

Row = TypeVar("Row")
AnyCursor = TypeVar("AnyCursor", Cursor[Any], AsyncCursor[Any])

_INT = 2**31 - 1
TRIES = 5  # of a call that hit a deadlock in its own transaction
DEADLOCK = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
BREAKS = (psycopg.OperationalError, psycopg.InterfaceError, errors.Unreachable)  # what a lost connection raises
# The server closes the connection with these; the driver may notice that only at the next use.
_ENDINGS = frozenset({"57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04"})
_CONNECTION = "08"  # a class of SQLSTATEs, which poolers use for everything that they reject
FROM_NOW = "holdfast.clock() + "
WRITTEN_OUT = 8192  # characters of a call that is sent with its values in the text, which a server may log
_BULK_STARTS = frozenset({"start_tasks", "take_staged"})


def run(connection: Connection[Any], call: Call[Row]) -> list[Row]:
    """Make the call, in the transaction that is open on the connection, else in its own."""
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


def run_and_commit(connection: Connection[Any], call: Call[Row], then_within: timedelta) -> list[Row]:
    """Make the last call of the connection's transaction, and commit unless it raises.

    Call and commit are one message, which arrives whole or not at all. So the server never waits for the commit while
    it holds what the call has locked. A large call is sent alone, and the server waits for the commit `then_within`.
    """
    with translated(call), ClientCursor(connection, row_factory=_rows(call)) as cursor:
        if (message := _with_commit(cursor, call)) is not None:
            return _ready(cursor, call).execute(message).fetchall()
    rows = run(connection, replace(call, then_within=then_within))
    connection.commit()
    return rows


async def arun_and_commit(connection: AsyncConnection[Any], call: Call[Row], then_within: timedelta) -> list[Row]:
    """Make the last call of a transaction and commit it, as `run_and_commit` does."""
    with translated(call):
        async with AsyncClientCursor(connection, row_factory=_rows(call)) as cursor:
            if (message := _with_commit(cursor, call)) is not None:
                await _ready(cursor, call).execute(message)
                return await cursor.fetchall()
    rows = await arun(connection, replace(call, then_within=then_within))
    await connection.commit()
    return rows


def _with_commit(cursor: ClientCursor[Any] | AsyncClientCursor[Any], call: Call[Any]) -> bytes | None:
    """Write a call and a commit as one simple query; None if the call is large."""
    statement = self_test_schema.reworded(_statement(call) + b"; commit")
    text = cursor.mogrify(statement, _arguments(call))
    return text.encode(cursor.connection.info.encoding) if len(text) <= WRITTEN_OUT else None


def _is_alone(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """Return whether the call ran in its own transaction, which is then rolled back and can be repeated."""
    return connection.autocommit and connection.info.transaction_status == TransactionStatus.IDLE


def _broken(
    connection: Connection[Any] | AsyncConnection[Any], call: Call[Any], status: int, error: BaseException
) -> errors.DatabaseError | None:
    """Return our error for a call whose connection was lost; None inside the caller's transaction."""
    if not connection.autocommit or not is_lost(connection, error):
        return None
    if status == TransactionStatus.UNKNOWN:  # it was closed before, so nothing was sent
        return gone(error)
    return unanswered(call, error) if status == TransactionStatus.IDLE else None


def is_lost(connection: Connection[Any] | AsyncConnection[Any], error: BaseException) -> bool:
    """Return whether an error ended the connection, even if the driver has not noticed."""
    state = error.sqlstate or "" if isinstance(error, psycopg.Error) else ""
    return connection.closed or connection.broken or state in _ENDINGS or state.startswith(_CONNECTION)


def unanswered(call: Call[Any], error: BaseException) -> errors.DatabaseError:
    """Return the error for a call whose connection broke after it was sent; a write may or may not be stored."""
    place = f"{call.schema}.{call.function}"
    if call.is_read:
        return gone(error, f"{place} was not answered")
    return unknown(error, place, _repeat(call))


def gone(error: BaseException, what: str = "the connection to the database was lost") -> errors.Unreachable:
    """Return the error for a connection that was lost before anything was changed."""
    return errors.Unreachable(f"{what}: {_line(error)}", next="check that the server runs, then retry")


def unknown(error: BaseException, place: str, then: str) -> errors.CommitUnknown:
    """Return the error for a write whose answer was lost, with what to do next."""
    return errors.CommitUnknown(
        f"{place} was not answered, so the change may or may not be stored: {_line(error)}", next=then
    )


def gave_up(error: psycopg.Error) -> errors.DatabaseError:
    """Return the error for a call that failed through no fault of its own."""
    return errors.DatabaseError(f"the database gave up: {_message(error)}", next="retry when the server is less busy")


def _repeat(call: Call[Any]) -> str:
    """Return how to repeat a call whose answer was lost; a call with a key takes effect once per key."""
    if (key := call.arguments.get("key", call.arguments.get("p_idempotency_key"))) is not None:
        return f"repeat it with the same key, {key!r}, which has no second effect"
    if not call.arguments.keys().isdisjoint({"key", "p_idempotency_key"}) or call.function in _BULK_STARTS:
        return "check whether it exists before you repeat it, or pass a key, which makes a repeat safe"
    return "check its state, or repeat the call"


def _line(error: BaseException) -> str:
    message = error.what if isinstance(error, errors.HoldfastError) else str(error)
    return " ".join(message.split())


def _statement(call: Call[Any]) -> bytes:
    statement = _compose(call.schema, call.function, tuple(call.arguments), call.is_delayed)
    return statement if call.then_within is None else statement + _then_within(call.then_within)


@cache
def _compose(schema: LiteralString, function: LiteralString, names: tuple[str, ...], is_delayed: bool) -> bytes:
    arguments = sql.SQL(", ").join(
        sql.SQL("{} => {}{}").format(
            sql.Identifier(name), sql.SQL(FROM_NOW if is_delayed and name == "due_at" else ""), sql.Placeholder(name)
        )
        for name in names
    )
    place = sql.SQL(schema + "." + function)  # our own names, unquoted: a self-test finds them by the schema's name
    return sql.SQL("select f.* from {}({}) as f").format(place, arguments).as_bytes(None)


@cache
def _then_within(span: timedelta) -> bytes:
    """Set the transaction's idle timeout in the same statement, which saves a round trip."""
    milliseconds = max(1, round(span.total_seconds() * 1000))
    setting = sql.SQL(", pg_catalog.set_config('idle_in_transaction_session_timeout', {}, true) as set")
    return setting.format(sql.Literal(str(milliseconds))).as_bytes(None)


def _arguments(call: Call[Any]) -> dict[str, Any]:
    """Leave the type of a large number to the function; the driver would choose another type by its size."""
    return {name: str(a) if type(a) is int and abs(a) > _INT else a for name, a in call.arguments.items()}


def _ready(cursor: AnyCursor, call: Call[Any]) -> AnyCursor:
    """Let a cursor read any JSON: one input that Python cannot parse must not fail the rest of its batch."""
    if call.keeps_json:
        cursor.adapters.register_loader("jsonb", TextLoader)
        cursor.adapters.register_loader("json", TextLoader)
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
    """Build rows by position; a test checks that a SQL function's columns equal its named tuple's fields."""
    make = partial(tuple.__new__, row)
    return lambda _cursor: make


@contextmanager
def translated(call: Call[Any] | None = None) -> Iterator[None]:
    """Raise our error for each of the driver's that has one, by its SQLSTATE."""
    try:
        yield
    except psycopg.Error as error:
        translated_error = refusal(report(error), call)
        if translated_error is None:
            raise
        raise translated_error from error
    except RecursionError as error:
        raise errors.BadInput("the JSON is nested too deep", next="flatten it, or keep it elsewhere") from error
    except UnicodeEncodeError as error:  # a lone surrogate has no UTF-8
        raise errors.BadInput(f"the text cannot be stored: {error.reason}", next="leave lone surrogates out") from error


def report(error: psycopg.Error) -> ServerError:
    """Read the fields of psycopg's error; a value that the driver itself rejects has no SQLSTATE."""
    state = error.sqlstate or (sqlstates.DATA_EXCEPTION if isinstance(error, psycopg.DataError) else "")
    fields = error.diag
    return ServerError(state, _message(error), fields.column_name, fields.constraint_name, fields.message_hint)


def refusal(error: ServerError, call: Call[Any] | None) -> errors.HoldfastError | None:
    """Find our error for the server's answer to a call; an argument of the wrong type is named."""
    misfit = call.misfit() if call is not None and error.may_be_a_misfit else None
    return sqlstates.translate(error) if misfit is None else errors.BadInput(misfit[1], where=misfit[0])


def translate(error: psycopg.Error) -> errors.HoldfastError | None:
    """Find our error for one of psycopg's; None if there is none."""
    return sqlstates.translate(report(error))


def _message(error: psycopg.Error) -> str:
    return error.diag.message_primary or str(error)
