"""One step, from claimed to outcome: the input checked, the handler called, and what came of it said as a value."""

from __future__ import annotations

import asyncio
import json
import traceback
from contextlib import AbstractContextManager
from datetime import timedelta
from typing import Any, cast

import psycopg
from psycopg.errors import ReadOnlySqlTransaction
from pydantic import ValidationError

from holdfast import tracing
from holdfast.errors import (
    CommitUnknown,
    LeaseLost,
    RateLimited,
    ReadOnly,
    Rejected,
    TooManyConnections,
    Unavailable,
    Unreachable,
)
from holdfast.handlers.signature import TRACE, ResultRefused, validation_text
from holdfast.handlers.transaction import ResultTooLarge
from holdfast.kernel import finite
from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, Snooze, Unreadable, span
from holdfast.worker.attempt import Attempt, LeaseRanOut
from holdfast.worker.forks import leave_if_forked

TRACE_LINES = 50  # of a traceback; what matters stands at its end
LONGEST_TEXT = 8000
_ESCAPES = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")  # what PostgreSQL and UTF-8 cannot keep


class Interrupted(BaseException):
    """Raised inside a handler that has to stop; no `except Exception` holds it up."""


class Unfit(Exception):
    """The step's own input or cursor is not what its handler takes; what to do about it is for a person to say."""


def attempt(one: Attempt) -> Outcome | None:
    """Try a step once, in this thread. None: it is settled already, or not ours to settle."""
    try:
        arguments = _arguments(one)
        one.begin()
        try:
            if one.batch.is_traced:
                with _traced(one):
                    result = _called(one, arguments)
            else:
                result = _called(one, arguments)
            outcome = _outcome(one, result)
        except Continue as page:
            outcome = _said(one, page)
        transaction = one.ctx.transaction_open
        if transaction is None or not transaction.is_open:
            return outcome
        if not isinstance(outcome, (Done, Continue)):  # no progress: what it wrote would be written again
            transaction.abandon()
            return outcome
        one.settled = transaction.settle(one.settlement(outcome))
    except BaseException as error:  # noqa: BLE001 - handlers may raise anything; only here is all of it caught
        if one.ctx.transaction_open is not None:
            one.ctx.transaction_open.abandon()
        return outcome_of(one, error)
    return None


async def aattempt(one: Attempt) -> Outcome | None:
    """Try a step once, on the loop of async handlers, as `attempt` does."""
    try:
        arguments = _arguments(one)
        one.begin()
        try:
            if one.batch.is_traced:
                with _traced(one):
                    result = await _acalled(one, arguments)
            else:
                result = await _acalled(one, arguments)
            outcome = _outcome(one, result)
        except Continue as page:
            outcome = _said(one, page)
        transaction = one.ctx.transaction_open
        if transaction is None or not transaction.is_open:
            return outcome
        if not isinstance(outcome, (Done, Continue)):
            await transaction.aabandon()
            return outcome
        one.settled = await transaction.asettle(one.settlement(outcome))
    except BaseException as error:  # noqa: BLE001 - as above
        if one.ctx.transaction_open is not None:
            await one.ctx.transaction_open.aabandon()
        return outcome_of(one, error)
    return None


def _called(one: Attempt, arguments: dict[str, Any]) -> Any:
    try:
        return one.handler.function(**arguments)
    finally:
        leave_if_forked(one.batch.pid)


async def _acalled(one: Attempt, arguments: dict[str, Any]) -> Any:
    try:
        return await one.handler.function(**arguments)
    finally:
        leave_if_forked(one.batch.pid)


def _arguments(one: Attempt) -> dict[str, Any]:
    signature = one.handler.signature
    if isinstance(one.step.cursor, Unreadable):
        raise Unfit(f"the cursor cannot be read: {one.step.cursor.reason}")
    try:
        arguments = cast("dict[str, Any]", signature.read(one.step.input))
    except ValidationError as error:
        raise Unfit(f"the input is not what {one.step.kind} takes: {validation_text(error)}") from None
    if TRACE in arguments:
        came_with = arguments.pop(TRACE)
        one.ctx.trace = came_with if isinstance(came_with, dict) else None
    if signature.ctx_name is not None:
        arguments[signature.ctx_name] = one.ctx
    return arguments


def _traced(one: Attempt) -> AbstractContextManager[Any]:
    step = one.step
    return tracing.span(f"process {step.kind}", one.ctx.trace, {"step_id": step.step_id, "attempt": step.attempt})


def _outcome(one: Attempt, result: Any) -> Outcome:
    if isinstance(result, (Retry, Fail, Snooze, Continue)):
        return _said(one, result)
    return Done(one.handler.signature.write_result(result))


def outcome_of(one: Attempt, error: BaseException) -> Outcome | None:
    """Turn what a handler raised into an outcome; the step's policy, in SQL, says when it is tried again, if at all."""
    match error:
        case Retry() | Fail() | Snooze() | Continue():
            return _said(one, error)
        case LeaseLost() | Interrupted() | asyncio.CancelledError() if one.is_timed_out and not one.is_lost:
            return _failure(one, TimeoutError(f"it took longer than {one.handler.timeout}"))
        case LeaseLost() | LeaseRanOut():  # not begun, it is given back, if nobody has it by now: the database knows
            return None if one.is_lost or isinstance(error, LeaseLost) else Release()
        case Interrupted() | asyncio.CancelledError() if one.ctx.cancelled:
            return None  # its lease is lost, or the worker goes down and releases what it held
        case _ if _is_of_the_database(one, error):
            return Retry(described(error))
        case Unfit():
            then = f"mend the input or the handler's types, then: holdfast dlq retry {one.step.step_id}"
            return Fail({"type": "InputRefused", "message": clean(str(error)), "next": then})
        case ResultRefused() | ResultTooLarge():
            kind = "ResultRefused" if isinstance(error, ResultRefused) else "TooLarge"
            return Fail({"type": kind, "message": clean(str(error))})
        case _:
            return _failure(one, error)


def _is_of_the_database(one: Attempt, error: BaseException) -> bool:
    """Whether it is the database that failed and not the handler: it costs a try, as a lost worker does, and no more.

    After a commit whose answer was lost it is refused by its lease, if the commit did happen.
    """
    match error:
        case CommitUnknown() | Unreachable() | TooManyConnections() | ReadOnly() | ReadOnlySqlTransaction():
            return True
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return one.ctx.transaction_open is not None and one.ctx.transaction_open.is_broken
    return False


def _failure(one: Attempt, error: BaseException) -> Outcome:
    """An exception is final unless the task has a policy of its own, or an outside system's answer says what to do."""
    match error:
        case RateLimited():
            return _said(one, Retry(error, error.retry_after))
        case Unavailable():
            return Retry(described(error))
        case Rejected():
            return Fail(described(error))
    return Fail(described(error)) if one.handler.retry is None else Retry(described(error))


def _said(one: Attempt, outcome: Retry | Fail | Snooze | Continue) -> Outcome:
    try:
        match outcome:
            case Retry(error, after):
                return Retry(_error(error, "Retry"), None if after is None else _not_negative(after))
            case Fail(error):
                return Fail(_error(error, "Fail"))
            case Snooze(after):
                return Snooze(_not_negative(after))
            case Continue(cursor):
                return Continue(_kept(cursor), one.step.cursor)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        sort = type(outcome).__name__
        return Fail({"type": "OutcomeRefused", "message": clean(f"what {sort} was given makes no sense: {error}")})


def _not_negative(after: timedelta | float) -> timedelta:
    return max(timedelta(0), span(after))


def _error(given: Any, kind: str) -> Any:
    match given:
        case None:
            return {"type": kind, "message": "the handler said so"}
        case BaseException():
            return described(given)
        case str():
            return {"type": kind, "message": clean(given)}
        case _:
            return _kept(given)


def _kept(given: Any) -> Any:
    """Refuse what is no JSON here, where it costs its own step and no other."""
    try:
        json.dumps(given, allow_nan=False).encode()
    except ValueError as error:
        said = finite.complaint_of_json(given, "it")
        raise ValueError(said or error) from None
    return given


def described(error: BaseException) -> dict[str, Any]:
    """Write an exception down: type, message and trace, without the values of variables, which may be secrets."""
    lines = "".join(traceback.format_exception(error)).splitlines()
    kept = lines if len(lines) <= TRACE_LINES else ["…", *lines[-TRACE_LINES:]]
    return {"type": type(error).__name__, "message": clean(_message(error)), "trace": clean("\n".join(kept))}


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001 - an exception of a handler's own may have no words
        return f"it cannot be put into words: {type(other).__name__}"


def clean(text: str) -> str:
    """Leave out what cannot be stored, and what is too long to read."""
    return text.translate(_ESCAPES)[:LONGEST_TEXT]
