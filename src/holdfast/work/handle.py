"""The handle of a task that was started: its number, and ways to wait for it, read it and control it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from holdfast.errors import NotFound, RunCancelled, RunFailed
from holdfast.kernel import calls
from holdfast.kernel.call import Executor, pauses
from holdfast.models import Span, StepResult, error_line

R = TypeVar("R")


class Handle(Generic[R]):
    """A task that was started. Each way to use it has an async twin with an `a` before its name; that of `wait`, whose
    name would be a keyword, is `await_over`.
    """

    def __init__(self, step_id: int, read_result: Callable[[Any, str], R], executor: Executor) -> None:
        self.id = step_id
        self._read_result = read_result
        self._executor = executor

    def __repr__(self) -> str:
        return f"<started {self.id}>"

    def status(self) -> StepResult:
        """See how it stands now."""
        return self._found(self._executor.make(calls.step_results([self.id])))

    async def astatus(self) -> StepResult:
        """See how it stands now."""
        return self._found(await self._executor.amake(calls.step_results([self.id])))

    def result(self, timeout: Span | None = None) -> R:
        """Wait until it is over, and give its result.

        Raises RunFailed, RunCancelled, ResultMismatch or WaitTimedOut.
        """
        for pause in pauses(timeout, f"step {self.id}"):
            result = self.status()
            if result.outcome is not None:
                return self._result(result)
            time.sleep(pause)
        raise AssertionError("not reached")

    async def aresult(self, timeout: Span | None = None) -> R:
        """Wait as `result` does."""
        for pause in pauses(timeout, f"step {self.id}"):
            result = await self.astatus()
            if result.outcome is not None:
                return self._result(result)
            await asyncio.sleep(pause)
        raise AssertionError("not reached")

    def cancel(self, reason: str | None = None) -> None:
        """Cancel it; a running handler is told to stop."""
        self._executor.make(calls.cancel(str(self.id), reason))

    async def acancel(self, reason: str | None = None) -> None:
        """Cancel it; a running handler is told to stop."""
        await self._executor.amake(calls.cancel(str(self.id), reason))

    def retry(self, reason: str | None = None) -> None:
        """Try it again, now that it failed."""
        self._executor.make(calls.retry(str(self.id), reason))

    async def aretry(self, reason: str | None = None) -> None:
        """Try it again, now that it failed."""
        await self._executor.amake(calls.retry(str(self.id), reason))

    def _found(self, rows: list[StepResult]) -> StepResult:
        if not rows:
            raise NotFound(
                f"there is no step {self.id}", where=str(self.id), next="it was pruned, or is another tenant's"
            )
        return rows[0]

    def _result(self, result: StepResult) -> R:
        match result.outcome:
            case "succeeded":
                return self._read_result(result.result, f"step {self.id}")
            case "cancelled":
                raise RunCancelled(
                    f"step {self.id} was cancelled", where=str(self.id), next=f"see why: holdfast runs show {self.id}"
                )
            case _:
                raise RunFailed(
                    f"step {self.id} failed: {error_line(result.error)}",
                    where=str(self.id),
                    next=f"see its story: holdfast runs show {self.id}",
                )


def found(executor: Executor, step_id: str) -> Handle[Any]:
    """Take hold of a task by its number."""
    return Handle(int(step_id), lambda result, _place: result, executor)
