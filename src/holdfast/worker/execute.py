"""Runs one attempt: checks the input, calls the handler and returns the outcome as a value."""

from __future__ import annotations

import asyncio
import json
import traceback
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import psycopg
from psycopg.errors import ReadOnlySqlTransaction
from pydantic import ValidationError

from holdfast import masking, tracing
from holdfast.durations import wait
from holdfast.errors import (
    BadInput,
    CommitUnknown,
    HoldfastError,
    LeaseLost,
    NotMigrated,
    RateLimited,
    ReadOnly,
    Rejected,
    SecretMissing,
    TooManyConnections,
    Unavailable,
    Unreachable,
)
from holdfast.handlers.signature import TRACE, ResultRefused, validation_text
from holdfast.handlers.transaction import ResultTooLarge
from holdfast.kernel import finite
from holdfast.kernel.call import problem
from holdfast.kernel.outcomes import check_retry, check_snooze
from holdfast.log import working_on
from holdfast.models import Continue, Done, Fail, Json, Outcome, Release, Retry, Snooze, Unreadable
from holdfast.worker.attempt import Attempt, LeaseRanOut
from holdfast.worker.forks import leave_if_forked

TRACE_LINES = 50  # the last lines of a traceback, which matter most
LONGEST_TEXT = 8000
SECRET_AFTER = timedelta(seconds=30)  # until then another worker may come that has the secret
_ESCAPES = dict.fromkeys([0, *range(0xD800, 0xE000)], "\ufffd")  # characters that PostgreSQL or UTF-8 cannot store


class Interrupted(BaseException):
    """Raised inside a handler that has to stop; `except Exception` does not catch it."""


class Unfit(Exception):
    """The step's input or cursor does not fit its handler; a person has to decide what to do."""


def run_handler(attempt: Attempt) -> Outcome | None:
    """Run the handler once, in this thread, and return its outcome; None if it is settled or the lease is lost."""
    try:
        arguments = _arguments(attempt)
        attempt.begin()
        try:
            if attempt.claim.is_traced:
                with _traced(attempt):
                    result = _called(attempt, arguments)
            else:
                result = _called(attempt, arguments)
            outcome = outcome_from(attempt, result)
        except Continue as page:
            outcome = _checked(attempt, page)
        transaction = attempt.ctx.transaction_open
        if transaction is None or not transaction.is_open:
            return outcome
        if not isinstance(outcome, (Done, Continue)):  # no progress, so its writes would be repeated
            transaction.abandon()
            return outcome
        attempt.settled = transaction.settle(attempt.settlement(outcome))
    except BaseException as error:  # noqa: BLE001 - handlers may raise anything; this is the one catch-all
        if attempt.ctx.transaction_open is not None:
            attempt.ctx.transaction_open.abandon()
        return outcome_of(attempt, error)
    finally:
        attempt.ctx.release_secrets()
    return None


async def arun_handler(attempt: Attempt) -> Outcome | None:
    """Run the handler once, on the loop of async handlers, as `run_handler` does."""
    try:
        arguments = _arguments(attempt)
        attempt.begin()
        try:
            if attempt.claim.is_traced:
                with _traced(attempt):
                    result = await _acalled(attempt, arguments)
            else:
                result = await _acalled(attempt, arguments)
            outcome = outcome_from(attempt, result)
        except Continue as page:
            outcome = _checked(attempt, page)
        transaction = attempt.ctx.transaction_open
        if transaction is None or not transaction.is_open:
            return outcome
        if not isinstance(outcome, (Done, Continue)):
            await transaction.aabandon()
            return outcome
        attempt.settled = await transaction.asettle(attempt.settlement(outcome))
    except BaseException as error:  # noqa: BLE001 - as above
        if attempt.ctx.transaction_open is not None:
            await attempt.ctx.transaction_open.aabandon()
        return outcome_of(attempt, error)
    finally:
        attempt.ctx.release_secrets()
    return None


def _called(attempt: Attempt, arguments: dict[str, Any]) -> Any:
    mark = working_on.set(attempt.step)  # for the handler's log lines
    try:
        return attempt.handler.function(**arguments)
    finally:
        working_on.reset(mark)
        leave_if_forked(attempt.claim.pid)


async def _acalled(attempt: Attempt, arguments: dict[str, Any]) -> Any:
    working_on.set(attempt.step)  # each async handler has its own context
    try:
        return await attempt.handler.function(**arguments)
    finally:
        leave_if_forked(attempt.claim.pid)


def _arguments(attempt: Attempt) -> dict[str, Any]:
    signature = attempt.handler.signature
    if isinstance(attempt.step.cursor, Unreadable):
        raise Unfit(f"the cursor cannot be read: {attempt.step.cursor.reason}")
    try:
        arguments = cast("dict[str, Any]", signature.read(attempt.step.input))
    except ValidationError as error:
        raise Unfit(f"the input does not fit {attempt.step.kind}: {validation_text(error)}") from None
    if TRACE in arguments:
        carrier = arguments.pop(TRACE)
        attempt.ctx.trace = carrier if isinstance(carrier, dict) else None
    if signature.ctx_name is not None:
        arguments[signature.ctx_name] = attempt.ctx
    for secret in signature.secrets:
        arguments[secret.name] = secret.read()
    return arguments


def _traced(attempt: Attempt) -> AbstractContextManager[Any]:
    step = attempt.step
    return tracing.span(f"process {step.kind}", attempt.ctx.trace, {"step_id": step.step_id, "attempt": step.attempt})


def outcome_from(attempt: Attempt, result: Any) -> Outcome:
    """Return the outcome of a step whose handler returned a result or an outcome."""
    if isinstance(result, (Retry, Fail, Snooze, Continue)):
        return _checked(attempt, result)
    text = attempt.handler.signature.write_result(result)
    masked = masking.known.json(text)
    return Done(text if masked is text else Json(masked))


def outcome_of(attempt: Attempt, error: BaseException) -> Outcome | None:
    """Turn a handler's exception into an outcome; the step's policy, in SQL, decides whether and when it retries."""
    match error:
        case Retry() | Fail() | Snooze() | Continue():
            return _checked(attempt, error)
        case LeaseLost() | Interrupted() | asyncio.CancelledError() if attempt.is_timed_out and not attempt.is_lost:
            return _failure(
                attempt, TimeoutError(f"the handler ran longer than its timeout of {attempt.handler.timeout}")
            )
        case (
            LeaseLost() | LeaseRanOut()
        ):  # not begun, so it is released, unless another worker has it: the database decides
            return None if attempt.is_lost or isinstance(error, LeaseLost) else Release()
        case Interrupted() | asyncio.CancelledError() if attempt.ctx.cancelled:
            return None  # its lease is lost, or the worker is stopping and releases it
        case _ if isinstance(error, SecretMissing) or _is_of_the_database(attempt, error):
            return Retry(described(error), SECRET_AFTER if isinstance(error, SecretMissing) else None)
        case Unfit():
            then = f"fix the input or the handler's types, then: holdfast dlq retry {attempt.step.step_id}"
            return Fail({"type": "InputRefused", "message": clean(str(error)), "next": then})
        case ResultRefused() | ResultTooLarge():
            kind = "ResultRefused" if isinstance(error, ResultRefused) else "TooLarge"
            return Fail({"type": kind, "message": clean(str(error))})
        case _:
            return _failure(attempt, error)


def _is_of_the_database(attempt: Attempt, error: BaseException) -> bool:
    """Return whether the database failed, not the handler. That uses one try, as a lost worker does, and nothing more.

    If a commit's answer was lost and the commit did happen, the lease fences the retry.
    """
    match error:
        case CommitUnknown() | Unreachable() | TooManyConnections() | ReadOnly() | ReadOnlySqlTransaction():
            return True
        case NotMigrated():  # this release is ahead of the database's functions until its migration ends
            return True
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return attempt.ctx.transaction_open is not None and attempt.ctx.transaction_open.is_broken
    return False


def _failure(attempt: Attempt, error: BaseException) -> Outcome:
    """Return Retry if the task has its own policy or the error asks for one, else Fail: most exceptions are bugs."""
    match error:
        case RateLimited() | Unavailable():
            return _told_when(error)
        case Rejected():
            return Fail(described(error))
    return Fail(described(error)) if attempt.handler.retry is None else Retry(described(error))


def _checked(attempt: Attempt, outcome: Retry | Fail | Snooze | Continue) -> Outcome:
    try:
        match outcome:
            case Retry(error, after, pause):
                waits = None if after is None else wait(after, "after")
                check_retry(outcome)
                return replace(outcome, error=_error(error, "Retry"), after=waits, pause=_limit(pause))
            case Fail(error):
                return Fail(_error(error, "Fail"))
            case Snooze(after, pause):
                check_snooze(outcome)
                return replace(outcome, after=wait(after, "after"), pause=_limit(pause))
            case Continue(cursor):
                return Continue(masking.known.value(_checked_json(cursor)), attempt.step.cursor)
    except (BadInput, TypeError, ValueError, OverflowError, RecursionError) as error:
        return _outcome_refused(outcome, error)


def _told_when(error: RateLimited | Unavailable) -> Outcome:
    try:
        after = None if error.retry_after is None else wait(error.retry_after, "retry_after")
    except BadInput as refused:
        return _outcome_refused(error, refused)
    return Retry(described(error), after)


def _limit(pause: str | None) -> str | None:
    """Raise for a limit that the database would reject together with its whole batch."""
    if pause is not None and (problem("pause", pause) or "*" in pause):
        raise ValueError(f"pause must name one limit, got {pause!r}")
    return pause


def _outcome_refused(outcome: Exception, error: Exception) -> Fail:
    message = f"{type(outcome).__name__} cannot be stored: {error}"
    return Fail({"type": "OutcomeRefused", "message": clean(message)})


def _error(given: Any, kind: str) -> Any:
    match given:
        case None:
            return {"type": kind, "message": "the handler named no reason"}
        case BaseException():
            return described(given)
        case str():
            return {"type": kind, "message": clean(given)}
        case _:
            return masking.known.shown(_checked_json(given))


def _checked_json(given: Any) -> Any:
    """Raise for a value that is not JSON here, where it fails only its own step."""
    try:
        json.dumps(given, allow_nan=False).encode()
    except ValueError as error:
        complaint = finite.complaint_of_json(given, "it")
        raise ValueError(complaint or error) from None
    return given


def described(error: BaseException) -> dict[str, Any]:
    """Return an exception as type, message and trace, without the values of variables, which may be secrets."""
    lines = masking.known.shown("".join(traceback.format_exception(error))).splitlines()
    kept = lines if len(lines) <= TRACE_LINES else ["…", *lines[-TRACE_LINES:]]
    fields = {"type": type(error).__name__, "message": clean(_message(error)), "trace": clean("\n".join(kept))}
    metadata = masking.known.shown(getattr(error, "metadata", None) if isinstance(error, HoldfastError) else None)
    return fields if metadata is None else {**fields, "metadata": metadata}


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:  # noqa: BLE001 - a handler's exception may fail to format
        return f"its text cannot be read: {type(other).__name__}"


def clean(text: str) -> str:
    """Mask secrets, remove characters that cannot be stored, and shorten long text."""
    masked: str = masking.known.shown(text)  # first: a secret that is cut would not be found
    return masked.translate(_ESCAPES)[:LONGEST_TEXT]
