"""What a caller holds of a task of a flow: its id, and ways to wait for it, read it and steer it."""

from __future__ import annotations

import asyncio
import shlex
import time
from collections.abc import Callable
from typing import Any, TypeVar
from uuid import UUID

from holdfast.errors import NotFound, RunCancelled, RunFailed
from holdfast.flow import calls, manual_events
from holdfast.flow.calls import StepOutcome, StepReadiness, TaskContext
from holdfast.flow.executor import FlowExecutor
from holdfast.kernel import calls as kernel
from holdfast.kernel.call import pauses
from holdfast.models import RunResult, Span

Row = TypeVar("Row")
ReadResult = Callable[[str, Any, str], Any]
MOST_NAMED = 5  # steps in an error's message


class FlowRun:
    """A task that was started. Each way to use it has an async twin with an `a` before its name; that of `wait`, whose
    name would be a keyword, is `await_over`.
    """

    def __init__(self, task_id: UUID, executor: FlowExecutor, read_result: ReadResult) -> None:
        self.id = task_id
        self._executor = executor
        self._read_result = read_result

    def __repr__(self) -> str:
        return f"<task {self.id}>"

    def look(self) -> RunResult:
        """See how it stands now."""
        found: RunResult = self._there(self._executor.make(kernel.run_results([self.id])))
        return found

    async def alook(self) -> RunResult:
        """See how it stands now."""
        found: RunResult = self._there(await self._executor.amake(kernel.run_results([self.id])))
        return found

    def wait(self, timeout: Span | None = None) -> dict[str, Any]:
        """Wait until it is over, and give what its steps gave.

        Raises RunFailed, RunCancelled, ResultMismatch or WaitTimedOut.
        """
        for pause in pauses(timeout, f"task {self.id}"):
            if (found := self.look()).outcome is not None:
                return self._ended(found, self.steps())
            time.sleep(pause)
        raise AssertionError("not reached")

    async def await_over(self, timeout: Span | None = None) -> dict[str, Any]:
        """Wait as `wait` does."""
        for pause in pauses(timeout, f"task {self.id}"):
            if (found := await self.alook()).outcome is not None:
                return self._ended(found, await self.asteps())
            await asyncio.sleep(pause)
        raise AssertionError("not reached")

    def steps(self) -> list[StepOutcome]:
        """See how its steps stand, in the order of the plan."""
        return self._executor.make(calls.step_outcomes(self.id))

    async def asteps(self) -> list[StepOutcome]:
        """See how its steps stand, in the order of the plan."""
        return await self._executor.amake(calls.step_outcomes(self.id))

    def result(self, step: Any) -> Any:
        """Give what one of its steps gave, as its function types it; None while that is not over."""
        return self._result(step, self._executor.make(calls.step_outcomes(self.id, [_name(step)])))

    async def aresult(self, step: Any) -> Any:
        """Give what one of its steps gave, as `result` does."""
        return self._result(step, await self._executor.amake(calls.step_outcomes(self.id, [_name(step)])))

    def context(self) -> TaskContext:
        """See where it stands: its steps counted, what that comes to and what is to be done."""
        found: TaskContext = self._there(self._executor.make(calls.task_context(self.id)))
        return found

    async def acontext(self) -> TaskContext:
        """See where it stands, as `context` does."""
        found: TaskContext = self._there(await self._executor.amake(calls.task_context(self.id)))
        return found

    def readiness(self) -> list[StepReadiness]:
        """See which of its steps are ready, and what the others wait for, as the database says."""
        return self._executor.make(calls.step_readiness(self.id))

    async def areadiness(self) -> list[StepReadiness]:
        """See which of its steps are ready, as `readiness` does."""
        return await self._executor.amake(calls.step_readiness(self.id))

    def cancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; handlers that run are told."""
        self._executor.make(kernel.cancel(self._target(step), reason))
        manual_events.cancelled(self._executor, self.id, reason, None if step is None else _name(step))

    async def acancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; handlers that run are told."""
        await self._executor.amake(kernel.cancel(await self._atarget(step), reason))
        manual_events.cancelled(self._executor, self.id, reason, None if step is None else _name(step))

    def retry(self, reason: str | None = None, *, step: Any = None) -> None:
        """Try its failed steps again, or one of them, with a fresh budget."""
        self._executor.make(kernel.retry(self._target(step), reason))
        manual_events.retried(self._executor, self.id, reason)

    async def aretry(self, reason: str | None = None, *, step: Any = None) -> None:
        """Try its failed steps again, or one of them, with a fresh budget."""
        await self._executor.amake(kernel.retry(await self._atarget(step), reason))
        manual_events.retried(self._executor, self.id, reason)

    def resolve(self, step: Any, reason: str | None = None, result: Any = None) -> None:
        """Say that a person has dealt with one of its steps, and what that is to have given."""
        step_id = self._target(step)
        self._executor.make(kernel.resolve(step_id, reason, result))
        manual_events.resolved(self._executor, self.id, int(step_id), _name(step), reason)

    async def aresolve(self, step: Any, reason: str | None = None, result: Any = None) -> None:
        """Say that a person has dealt with one of its steps, as `resolve` does."""
        step_id = await self._atarget(step)
        await self._executor.amake(kernel.resolve(step_id, reason, result))
        manual_events.resolved(self._executor, self.id, int(step_id), _name(step), reason)

    def retry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Do a step again, now that the task is over, and all that waits for it: in a new task, which this gives."""
        (task_id,) = self._executor.make(calls.retry_from(int(self._target(step)), reason))
        return self._again(task_id)

    async def aretry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Do a step again, as `retry_from` does."""
        (task_id,) = await self._executor.amake(calls.retry_from(int(await self._atarget(step)), reason))
        return self._again(task_id)

    def _again(self, task_id: UUID) -> FlowRun:
        manual_events.done_again(self._executor, task_id, self.id)
        return FlowRun(task_id, self._executor, self._read_result)

    def _target(self, step: Any) -> str:
        """Name what is wished for: the task, or one of its steps by number."""
        if step is None:
            return str(self.id)
        return str(self._step(step, self._executor.make(calls.step_outcomes(self.id, [_name(step)]))).step_id)

    async def _atarget(self, step: Any) -> str:
        if step is None:
            return str(self.id)
        return str(self._step(step, await self._executor.amake(calls.step_outcomes(self.id, [_name(step)]))).step_id)

    def _result(self, step: Any, found: list[StepOutcome]) -> Any:
        one = self._step(step, found)
        return None if one.outcome is None else self._typed(one)

    def _typed(self, step: StepOutcome) -> Any:
        return self._read_result(step.name, step.result, f"step {step.name} of task {self.id}")

    def _step(self, step: Any, found: list[StepOutcome]) -> StepOutcome:
        if not found:
            raise NotFound(
                f"task {self.id} has no step {_name(step)}",
                where=_name(step),
                next=f"its steps: holdfast flow show {self.id}",
            )
        return found[0]

    def _there(self, rows: list[Row]) -> Row:
        if not rows:
            raise NotFound(
                f"there is no task {self.id}", where=str(self.id), next="it was pruned, or is another tenant's"
            )
        return rows[0]

    def _ended(self, found: RunResult, steps: list[StepOutcome]) -> dict[str, Any]:
        match found.outcome:
            case "succeeded":
                return {step.name: self._typed(step) for step in steps}
            case "cancelled":
                raise RunCancelled(
                    f"task {self.id} was cancelled", where=str(self.id), next=f"see why: holdfast flow show {self.id}"
                )
            case _:
                raise RunFailed(f"task {self.id} failed: {_causes(steps)}", where=str(self.id), next=self._next(steps))

    def _next(self, steps: list[StepOutcome]) -> str:
        """Say what to do about it: a cancelled step is final, and is done again in a new task."""
        cancelled = [step.name for step in steps if step.outcome == "cancelled"]
        if not cancelled or any(step.outcome == "failed" for step in steps):
            return f"see its story: holdfast flow show {self.id}"
        return f"do it again in a new task: holdfast flow retry {self.id} --from {shlex.quote(cancelled[0])}"


def _name(step: Any) -> str:
    return step if isinstance(step, str) else str(step.name)


def _causes(steps: list[StepOutcome]) -> str:
    """Name the steps that ended a task, the failed first."""
    causes = [f"step {step.name}: {_error_text(step.error)}" for step in steps if step.outcome == "failed"]
    causes += [f"step {step.name} was cancelled" for step in steps if step.outcome == "cancelled"]
    more = f"; and {len(causes) - MOST_NAMED} more" if len(causes) > MOST_NAMED else ""
    return "; ".join(causes[:MOST_NAMED]) + more


def _error_text(error: Any) -> str:
    known = error if isinstance(error, dict) else {}
    return f"{known.get('type', 'error')}: {known.get('message', '')}"


def found(executor: FlowExecutor, task_id: str) -> FlowRun:
    """Take hold of a run by its id; results are given as they are stored."""
    return FlowRun(UUID(task_id), executor, lambda _step, stored, _place: stored)
