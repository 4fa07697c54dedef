"""The handle of a flow's task: waits for it, reads it and acts on it."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from typing import Any, TypeVar, overload
from uuid import UUID

from holdfast.errors import NotFound, RunCancelled, RunFailed
from holdfast.flow import calls, events
from holdfast.flow.calls import StepOutcome, StepReadiness, TaskContext
from holdfast.flow.events import FlowExecutor
from holdfast.flow.step import Step
from holdfast.kernel import calls as kernel
from holdfast.kernel.call import pauses
from holdfast.models import RunResult, Span, error_line

R = TypeVar("R")
Row = TypeVar("Row")
ReadResult = Callable[[str, Any, str], Any]
MOST_NAMED = 5  # steps in an error's message


class FlowRun:
    """A task that was started.

    Each method has an async twin with an `a` before its name. That of `wait` is `await_over`, because `await` is a
    keyword.
    """

    def __init__(self, task_id: UUID, executor: FlowExecutor, read_result: ReadResult) -> None:
        self.id = task_id
        self._executor = executor
        self._read_result = read_result

    def __repr__(self) -> str:
        return f"<task {self.id}>"

    def status(self) -> RunResult:
        """Read its state."""
        result: RunResult = self._first(self._executor.make(kernel.run_results([self.id])))
        return result

    async def astatus(self) -> RunResult:
        """Read its state."""
        result: RunResult = self._first(await self._executor.amake(kernel.run_results([self.id])))
        return result

    def result(self, timeout: Span | None = None) -> dict[str, Any]:
        """Wait until it ends, and return the results of its steps by name.

        Raise RunFailed, RunCancelled, ResultMismatch or WaitTimedOut.
        """
        for pause in pauses(timeout, f"task {self.id}"):
            if (result := self.status()).outcome is not None:
                return self._ended(result, self.steps())
            time.sleep(pause)
        raise AssertionError("not reached")

    async def aresult(self, timeout: Span | None = None) -> dict[str, Any]:
        """Wait as `result` does."""
        for pause in pauses(timeout, f"task {self.id}"):
            if (result := await self.astatus()).outcome is not None:
                return self._ended(result, await self.asteps())
            await asyncio.sleep(pause)
        raise AssertionError("not reached")

    def steps(self) -> list[StepOutcome]:
        """Read the states of its steps, in the order of the plan."""
        return self._executor.make(calls.step_outcomes(self.id))

    async def asteps(self) -> list[StepOutcome]:
        """Read the states of its steps, in the order of the plan."""
        return await self._executor.amake(calls.step_outcomes(self.id))

    @overload
    def result_of(self, step: Step[R]) -> R: ...
    @overload
    def result_of(self, step: str) -> Any: ...
    def result_of(self, step: Step[Any] | str) -> Any:
        """Return the result of a step in the type of its function; None while the step has not ended."""
        return self._result(step, self._executor.make(calls.step_outcomes(self.id, [_name(step)])))

    @overload
    async def aresult_of(self, step: Step[R]) -> R: ...
    @overload
    async def aresult_of(self, step: str) -> Any: ...
    async def aresult_of(self, step: Step[Any] | str) -> Any:
        """Return the result of a step, as `result_of` does."""
        return self._result(step, await self._executor.amake(calls.step_outcomes(self.id, [_name(step)])))

    def context(self) -> TaskContext:
        """Read its execution context: the counts of its steps, its status and the recommended action."""
        context: TaskContext = self._first(self._executor.make(calls.task_context(self.id)))
        return context

    async def acontext(self) -> TaskContext:
        """Read its execution context, as `context` does."""
        context: TaskContext = self._first(await self._executor.amake(calls.task_context(self.id)))
        return context

    def readiness(self) -> list[StepReadiness]:
        """Read which of its steps are ready, and what the others wait for."""
        return self._executor.make(calls.step_readiness(self.id))

    async def areadiness(self) -> list[StepReadiness]:
        """Read which of its steps are ready, as `readiness` does."""
        return await self._executor.amake(calls.step_readiness(self.id))

    def cancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; running handlers are asked to stop."""
        self._executor.make(kernel.cancel(self._target(step), reason))
        events.cancelled(self._executor, self.id, reason, None if step is None else _name(step))

    async def acancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; running handlers are asked to stop."""
        await self._executor.amake(kernel.cancel(await self._atarget(step), reason))
        events.cancelled(self._executor, self.id, reason, None if step is None else _name(step))

    def retry(self, reason: str | None = None, *, step: Any = None) -> None:
        """Retry its failed steps, or one of them, with a fresh budget."""
        self._executor.make(kernel.retry(self._target(step), reason))
        events.retried(self._executor, self.id, reason)

    async def aretry(self, reason: str | None = None, *, step: Any = None) -> None:
        """Retry its failed steps, or one of them, with a fresh budget."""
        await self._executor.amake(kernel.retry(await self._atarget(step), reason))
        events.retried(self._executor, self.id, reason)

    def resolve(self, step: Any, reason: str | None = None, result: Any = None) -> None:
        """Mark a step as resolved by hand, with the result that it passes on."""
        step_id = self._target(step)
        self._executor.make(kernel.resolve(step_id, reason, result))
        events.resolved(self._executor, self.id, int(step_id), _name(step), reason)

    async def aresolve(self, step: Any, reason: str | None = None, result: Any = None) -> None:
        """Mark a step as resolved by hand, as `resolve` does."""
        step_id = await self._atarget(step)
        await self._executor.amake(kernel.resolve(step_id, reason, result))
        events.resolved(self._executor, self.id, int(step_id), _name(step), reason)

    def retry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Repeat a step of a finished task, and all that wait for it, in a new task; return that one's handle."""
        (task_id,) = self._executor.make(calls.retry_from(int(self._target(step)), reason))
        return self._again(task_id)

    async def aretry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Repeat a step, as `retry_from` does."""
        (task_id,) = await self._executor.amake(calls.retry_from(int(await self._atarget(step)), reason))
        return self._again(task_id)

    def _again(self, task_id: UUID) -> FlowRun:
        events.done_again(self._executor, task_id, self.id)
        return FlowRun(task_id, self._executor, self._read_result)

    def _target(self, step: Any) -> str:
        """Return the id to act on: the task's, or the number of one of its steps."""
        if step is None:
            return str(self.id)
        return str(self._step(step, self._executor.make(calls.step_outcomes(self.id, [_name(step)]))).step_id)

    async def _atarget(self, step: Any) -> str:
        if step is None:
            return str(self.id)
        return str(self._step(step, await self._executor.amake(calls.step_outcomes(self.id, [_name(step)]))).step_id)

    def _result(self, step: Any, rows: list[StepOutcome]) -> Any:
        row = self._step(step, rows)
        return None if row.outcome is None else self._typed(row)

    def _typed(self, step: StepOutcome) -> Any:
        return self._read_result(step.name, step.result, f"step {step.name} of task {self.id}")

    def _step(self, step: Any, rows: list[StepOutcome]) -> StepOutcome:
        if not rows:
            raise NotFound(
                f"task {self.id} has no step {_name(step)}",
                where=_name(step),
                next=f"its steps: holdfast flow show {self.id}",
            )
        return rows[0]

    def _first(self, rows: list[Row]) -> Row:
        if not rows:
            raise NotFound(
                f"there is no task {self.id}", where=str(self.id), next="it was pruned, or is another tenant's"
            )
        return rows[0]

    def _ended(self, result: RunResult, steps: list[StepOutcome]) -> dict[str, Any]:
        match result.outcome:
            case "succeeded":
                return {step.name: self._typed(step) for step in steps}
            case "cancelled":
                raise RunCancelled(
                    f"task {self.id} was cancelled", where=str(self.id), next=f"see why: holdfast flow show {self.id}"
                )
            case _:
                raise RunFailed(f"task {self.id} failed: {_causes(steps)}", where=str(self.id), next=self._next(steps))

    def _next(self, steps: list[StepOutcome]) -> str:
        """Return the next step for the user: a cancelled step is final, and is repeated in a new task."""
        cancelled = [step.name for step in steps if step.outcome == "cancelled"]
        if not cancelled or any(step.outcome == "failed" for step in steps):
            return f"see its story: holdfast flow show {self.id}"
        return f"do it again in a new task: holdfast flow retry {self.id} --from {shlex.quote(cancelled[0])}"


def _name(step: Any) -> str:
    return step if isinstance(step, str) else str(step.name)


def _causes(steps: list[StepOutcome]) -> str:
    """List the steps that ended a task, the failed first."""
    causes = [f"step {step.name}: {error_line(step.error)}" for step in steps if step.outcome == "failed"]
    causes += [f"step {step.name} was cancelled" for step in steps if step.outcome == "cancelled"]
    more = f"; and {len(causes) - MOST_NAMED} more" if len(causes) > MOST_NAMED else ""
    return "; ".join(causes[:MOST_NAMED]) + more


def by_id(executor: FlowExecutor, task_id: str) -> FlowRun:
    """Return the handle of a task by its id; results are returned as they are stored."""
    return FlowRun(UUID(task_id), executor, lambda _step, stored, _place: stored)
