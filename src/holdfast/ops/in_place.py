"""Executes the handler of a run, and repeats a failed execution in place, under the same lease.

Document 002 gives a run three executions, 5 and 10 seconds apart. The database decides, by a policy that is a row.
"""

from __future__ import annotations

import asyncio
import functools
import json
import time
from collections.abc import Callable, Generator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NoReturn, TypeVar

import psycopg
from pydantic import TypeAdapter

from holdfast import masking
from holdfast.durations import wait
from holdfast.errors import BadDefinition, DatabaseError, HoldfastError, LeaseLost, Rejected
from holdfast.handlers.signature import Signature
from holdfast.models import Continue, Fail, Json, Retry, Snooze, error_text
from holdfast.ops import calls
from holdfast.ops.context import OpsCtx
from holdfast.ops.output import storable
from holdfast.ops.run import OpsRun

LOOK_EACH = 0.2  # seconds between checks, during a wait, whether the run has to stop
ASK_EACH = 1.0  # seconds until a database that could not be reached is asked again
LONGEST_ERROR = 1000  # characters in the event about a retry
EXCEEDED = "Max retries exceeded"
T = TypeVar("T")
_RUN = TypeAdapter(OpsRun)


class ExecutionsUsedUp(HoldfastError):
    """All executions of a run failed; `metadata` is merged into the run's."""

    def __init__(self, what: str, metadata: dict[str, Any]) -> None:
        super().__init__(what)
        self.metadata = metadata


class RunStopped(HoldfastError):
    """A run ended at once, because its handler said so or its time was up; `metadata` is merged into the run's."""

    def __init__(self, what: str, metadata: dict[str, Any]) -> None:
        super().__init__(what)
        self.metadata = metadata


@dataclass(frozen=True, slots=True)
class Reported:
    """A handler's result, with the metadata that its programs wrote."""

    result: Any
    metadata: dict[str, Any]


class OpsSignature(Signature):
    """The signature of an ops handler: its context, the run, and secrets. A step's input is the run."""

    def __init__(self, function: Callable[..., Any], kind: str) -> None:
        super().__init__(function)
        hints = self._hints(function)
        self._kind = kind
        runs = [name for name in self.names() if hints.get(name) is OpsRun]
        if self.ctx_name is None or hints[self.ctx_name] is not OpsCtx or self.names() != runs or len(runs) != 1:
            raise BadDefinition(
                f"{self._name} must take a context and a run, got ({', '.join(self._signature.parameters)})",
                where=kind,
                next=f"write def {function.__name__}(ctx: OpsCtx, run: OpsRun), with both from holdfast.ops",
            )
        self.run_name = runs[0]
        self.read = self._read_run

    def _read_run(self, text: str | bytes, /) -> dict[str, Any]:
        fields = json.loads(text)
        return {self.run_name: _RUN.validate_python({**fields, "kind": self._kind})}

    def write_result(self, result: Any) -> Json:
        """Return the metadata of a successful run as JSON: the handler's result, checked, and what programs wrote."""
        metadata = result.metadata if isinstance(result, Reported) else {}
        written = json.loads(super().write_result(result.result if isinstance(result, Reported) else result))
        own = written if isinstance(written, dict) else {} if written is None else {"result": written}
        return Json(json.dumps({**metadata, **own}))


def in_place(function: Callable[..., Any], signature: OpsSignature, *, is_async: bool) -> Callable[..., Any]:
    """Return the function that a worker calls: it executes the handler until it succeeds or is final."""
    return _async(function, signature) if is_async else _sync(function, signature)


def _sync(function: Callable[..., Any], signature: OpsSignature) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(**arguments: Any) -> Reported:
        executions = _begun(signature, arguments)
        while True:
            try:
                return executions.succeeded(function(**arguments))
            except BaseException as error:  # noqa: BLE001 - `failed` raises again what is not retried
                delay = executions.failed(error)
            for pause in executions.pauses(delay):
                time.sleep(pause)

    return call


def _async(function: Callable[..., Any], signature: OpsSignature) -> Callable[..., Any]:
    @functools.wraps(function)
    async def call(**arguments: Any) -> Reported:
        executions = await asyncio.to_thread(_begun, signature, arguments)
        while True:
            try:
                return executions.succeeded(await function(**arguments))
            except asyncio.CancelledError as error:
                executions.check_time(error)
                raise
            except BaseException as error:  # noqa: BLE001
                delay = await asyncio.to_thread(executions.failed, error)
            for pause in executions.pauses(delay):
                await asyncio.sleep(pause)

    return call


def _begun(signature: OpsSignature, arguments: dict[str, Any]) -> Executions:
    ctx: OpsCtx = arguments[signature.ctx_name or ""]
    executions = Executions(ctx)
    executions.insist(lambda: ctx.begin(arguments[signature.run_name]))
    return executions


class Executions:
    """The executions of one run."""

    def __init__(self, ctx: OpsCtx) -> None:
        self._ctx = ctx

    def succeeded(self, result: Any) -> Reported:
        """Return a result with the run's metadata; an outcome that a handler returns counts as raised."""
        if isinstance(result, (Retry, Fail, Snooze, Continue)):
            raise result
        return Reported(result, {"retry_count": self._ctx.execution - 1, **self._ctx.metadata()})

    def failed(self, error: BaseException) -> timedelta:
        """Return how long to wait before the next execution; raise if there is none."""
        self.check_time(error)
        if not isinstance(error, Exception) or (isinstance(error, LeaseLost) and self._ctx.cancelled):
            raise error
        match error:
            case Fail(reason):
                self._end(_text(reason), error)
            case Rejected():
                self._end(_text(error), error)
            case Snooze() | Continue():
                self._end(f"an ops run cannot {type(error).__name__.lower()}: it runs to its end", error)
        message = masking.known.shown(_text(error.error if isinstance(error, Retry) else error))
        call = calls.retry_in_place(self._ctx.step_id, self._ctx.lease_id, self._ctx.execution, message[:LONGEST_ERROR])
        delay: timedelta | None = self.insist(lambda: self._ctx.ask(call))[0]
        if delay is None:
            metadata = {"error": EXCEEDED, "last_error": message, "retry_count": self._ctx.execution}
            raise ExecutionsUsedUp(EXCEEDED, {**self._ctx.failure_metadata(error), **metadata}) from error
        self._ctx.execution += 1
        asked = error.after if isinstance(error, Retry) else None
        return delay if asked is None else wait(asked, "after")

    def check_time(self, error: BaseException) -> None:
        """Raise RunStopped with the run's metadata if its time is up."""
        left = self._ctx.time_left()
        if self._ctx.cancelled and left is not None and not left:
            what = "the handler ran longer than its timeout"
            metadata = {**self._ctx.failure_metadata(error), "error": what, "retry_count": self._ctx.execution}
            raise RunStopped(what, metadata) from error

    def pauses(self, delay: timedelta) -> Generator[float, None, None]:
        """Yield short pauses until a delay is over; raise if the run has to stop. The worker keeps the lease."""
        until = time.monotonic() + delay.total_seconds()
        while (left := until - time.monotonic()) > 0:
            if self._ctx.cancelled:
                self._ctx.stop_now()
            yield min(left, LOOK_EACH)

    def insist(self, make: Callable[[], T]) -> T:
        """Make a call; repeat it while the database cannot be reached and the run is ours."""
        while True:
            try:
                return make()
            except (DatabaseError, psycopg.OperationalError, psycopg.InterfaceError):
                for pause in self.pauses(timedelta(seconds=ASK_EACH)):
                    time.sleep(pause)

    def _end(self, what: str, error: Exception) -> NoReturn:
        metadata = {"error": masking.known.shown(what), "retry_count": self._ctx.execution - 1}
        cause = error.error if isinstance(error, Fail) and isinstance(error.error, BaseException) else error
        raise RunStopped(what, {**self._ctx.failure_metadata(cause), **metadata}) from error


def _text(error: Any) -> str:
    match error:
        case HoldfastError():
            return storable(error.what)
        case BaseException():
            return storable(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
        case None:
            return "the handler named no reason"
        case _:
            return storable(error_text(error))
