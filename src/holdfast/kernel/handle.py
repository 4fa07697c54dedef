"""The handle of something that was started: one protocol for all faces, written once for sync and async callers.

Each action of a handle is a plan: a generator that yields calls, reads and pauses, and receives the rows of each.
`follow` carries out a plan on the caller's thread, `afollow` on the running loop.
"""

from __future__ import annotations

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar, Generic, TypeVar
from uuid import UUID

from holdfast.durations import Duration
from holdfast.errors import BadInput, HoldfastError, NotFound, RunCancelled, RunFailed, RunPartial
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.call import Call, Executor, pauses
from holdfast.kernel.query import Query, query
from holdfast.models import HistoryEvent, RunResult, Status, StepResult, error_line, error_text

T = TypeVar("T")
R_co = TypeVar("R_co", covariant=True)
Plan = Generator[Call[Any] | Query[Any] | float, Any, T]
Ended = StepResult | RunResult


def follow(executor: Executor, plan: Plan[T]) -> T:
    """Carry out a plan: make its calls and reads, and sleep where it pauses."""
    rows: Any = None
    while True:
        try:
            request = plan.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result
        match request:
            case Call():
                rows = executor.make(request)
            case Query():
                rows = _read(executor, request)
            case _:
                time.sleep(request)
                rows = None


async def afollow(executor: Executor, plan: Plan[T]) -> T:
    """Carry out a plan, as `follow` does."""
    rows: Any = None
    while True:
        try:
            request = plan.send(rows)
        except StopIteration as end:
            result: T = end.value
            return result
        match request:
            case Call():
                rows = await executor.amake(request)
            case Query():
                rows = await asyncio.to_thread(_read, executor, request)
            case _:
                await asyncio.sleep(request)
                rows = None


def _read(executor: Executor, read: Query[T]) -> list[T]:
    with executor.connection() as connection:
        return query(connection, read)


class Handle(ABC, Generic[R_co]):
    """A started task or run: its id, and methods to wait for it, read it and act on it.

    Each method has an async twin with an `a` before its name. `await handle` waits as `await handle.aresult()` does.
    """

    _label: ClassVar[str]  # the word for it: "task" or "run"
    _shown_by: ClassVar[str] = "holdfast runs show"
    _executor: Executor

    def __repr__(self) -> str:
        return f"<{self._label} {self.id}>"

    def __await__(self) -> Generator[Any, None, R_co]:
        return self.aresult().__await__()

    @property
    @abstractmethod
    def id(self) -> int | UUID | str:
        """The id, for `hf.handle(id)`."""

    def status(self) -> Status:
        """Read its state."""
        return follow(self._executor, self._status())

    async def astatus(self) -> Status:
        """Read its state."""
        return await afollow(self._executor, self._status())

    def result(self, timeout: Duration | None = None) -> R_co:
        """Wait until it ends, and return its result.

        Raise RunFailed, RunPartial, RunCancelled, ResultMismatch, WaitTimedOut or Pruned.
        """
        return follow(self._executor, self._result(timeout))

    async def aresult(self, timeout: Duration | None = None) -> R_co:
        """Wait as `result` does."""
        return await afollow(self._executor, self._result(timeout))

    def cancel(self, reason: str | None = None) -> None:
        """Cancel it; running handlers are asked to stop."""
        follow(self._executor, self._cancel(reason))

    async def acancel(self, reason: str | None = None) -> None:
        """Cancel it; running handlers are asked to stop."""
        await afollow(self._executor, self._cancel(reason))

    def retry(self, reason: str | None = None) -> Handle[R_co]:
        """Retry what failed with a fresh budget of tries; return the handle of the run that continues."""
        return follow(self._executor, self._retry(reason))

    async def aretry(self, reason: str | None = None) -> Handle[R_co]:
        """Retry what failed, as `retry` does."""
        return await afollow(self._executor, self._retry(reason))

    def resolve(self, reason: str | None = None, *, result: Any = None) -> None:
        """Mark it as resolved by hand, with the result that it passes on."""
        follow(self._executor, self._resolve(reason, result))

    async def aresolve(self, reason: str | None = None, *, result: Any = None) -> None:
        """Mark it as resolved by hand, as `resolve` does."""
        await afollow(self._executor, self._resolve(reason, result))

    def events(self) -> list[HistoryEvent]:
        """List its moves and notes, of a run also those of its steps, in the order in which they happened.

        What retention removed has them as long as the journal; `step` is then a step's number, for its name is gone.
        """
        return follow(self._executor, self._events())

    async def aevents(self) -> list[HistoryEvent]:
        """List its moves and notes, as `events` does."""
        return await afollow(self._executor, self._events())

    @abstractmethod
    def _value(self, stored: Any) -> Plan[R_co]:
        """Return the result in its declared type; `stored` is a task's result, None for a run."""

    def _subject(self) -> Plan[int | UUID]:
        """Return the number of its step, or the UUID of its run, by which the kernel knows it."""
        yield from ()
        if isinstance(self.id, str):
            raise NotImplementedError(f"{type(self).__name__} has ids of its own")
        return self.id

    def _status(self) -> Plan[Status]:
        id = yield from self._subject()  # noqa: A001 - the word is the handle's own
        rows: list[Status] = yield calls.step_status([id]) if isinstance(id, int) else calls.run_status([id])
        return (yield from self._first(rows))

    def _events(self) -> Plan[list[HistoryEvent]]:
        id = yield from self._subject()  # noqa: A001
        rows: list[HistoryEvent] = yield calls.step_events(id) if isinstance(id, int) else calls.run_events(id)
        if not rows:
            yield from self._first(rows)  # raises NotFound; events alone would be an empty list
        return rows

    def _result(self, timeout: Duration | None) -> Plan[R_co]:
        id = yield from self._subject()  # noqa: A001
        standing = calls.step_results([id]) if isinstance(id, int) else calls.run_results([id])
        for pause in pauses(timeout, f"{self._label} {self.id}"):
            ended: Ended = yield from self._first((yield standing))
            if ended.outcome == "succeeded":
                return (yield from self._value(ended.result if isinstance(ended, StepResult) else None))
            if ended.outcome is not None:
                raise (yield from self._failure(ended))
            yield pause
        raise AssertionError("not reached")

    def _cancel(self, reason: str | None) -> Plan[None]:
        yield calls.cancel(str(self.id), checked_reason(reason))

    def _retry(self, reason: str | None) -> Plan[Handle[R_co]]:
        yield calls.retry(str(self.id), checked_reason(reason))
        return self

    def _resolve(self, reason: str | None, result: Any) -> Plan[None]:
        yield calls.resolve(str(self.id), checked_reason(reason), result)

    def _failure(self, ended: Ended) -> Plan[HoldfastError]:
        """Return the error for a task or run that did not succeed."""
        status = yield from self._status()
        what, where, then = f"{self._label} {self.id}", str(self.id), self._next(status)
        match ended.outcome:
            case "cancelled":
                why = f": {status.reason}" if status.reason else ""
                return RunCancelled(
                    f"{what} was cancelled{why}", where=where, next=then, run_id=self.id, reason=status.reason
                )
            case "partial":
                counts = f"{status.succeeded} of {status.total} steps succeeded, {status.failed} failed"
                return RunPartial(
                    f"{what} ended partly: {counts}",
                    where=where,
                    next=then,
                    run_id=self.id,
                    total=status.total,
                    succeeded=status.succeeded,
                    failed=status.failed,
                )
            case _:
                causes = yield from self._causes(status)
                return _failed(f"{what} failed: {causes}", status, then)

    def _causes(self, status: Status) -> Plan[str]:
        """Return the causes of the failure."""
        yield from ()
        step = "" if status.step is None else f"step {status.step}: "
        return f"{step}{error_line(status.error)}"

    def _next(self, status: Status) -> str:
        """Return the next step for the user."""
        return f"see its history: {self._shown_by} {status.id}"

    def _journaled_id(self) -> str:
        """Return the id under which the journal knows it."""
        return str(self.id)

    def _first(self, rows: list[T]) -> Plan[T]:
        """Return the first row; without one, raise Pruned if retention removed it, else NotFound."""
        if rows:
            return rows[0]
        removals: list[retention_calls.Removal] = yield retention_calls.pruned(self._journaled_id())
        for removal in removals:
            raise removal.error(str(self.id))
        raise NotFound(
            f"there is no {self._label} {self.id}",
            where=str(self.id),
            next="check the id; what retention removed is known until the journal of that time is dropped, "
            "and another tenant's is never shown",
        )


def checked_reason(reason: Any) -> str | None:
    """Raise BadInput unless the reason is text; a step was perhaps meant for `step=`."""
    if reason is not None and not isinstance(reason, str):
        raise BadInput(
            f"reason must be text, got {reason!r}", where="reason", next="pass a step as step=, a result as result="
        )
    return reason


def _failed(what: str, status: Status, then: str) -> RunFailed:
    error = status.error if isinstance(status.error, dict) else {}
    return RunFailed(
        what,
        where=str(status.id),
        next=then,
        run_id=status.id,
        step=status.step,
        error_type=error.get("type"),
        message=None if status.error is None else error_text(status.error),
        attempts=status.attempts,
        traceback=error.get("trace"),
    )
