"""The handle of a flow's run: waits for it, reads it and acts on it and on its steps."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any, TypeVar, overload
from uuid import UUID

from holdfast.errors import BadInput, NotFound
from holdfast.flow import calls, events
from holdfast.flow.calls import RunContext, StepOutcome, StepReadiness
from holdfast.flow.events import FlowExecutor
from holdfast.flow.step import Step
from holdfast.kernel import calls as kernel
from holdfast.kernel.handle import Plan, afollow, checked_reason, follow
from holdfast.kernel.run_handle import RunHandle
from holdfast.models import Status, error_line

R = TypeVar("R")
ReadResult = Callable[[str, Any, str], Any]
MOST_NAMED = 5  # steps in an error's message


class FlowRun(RunHandle[dict[str, Any]]):
    """A run of a flow. `result` returns the results of its steps by name.

    A step is named by its function or by its name. `cancel`, `retry` and `resolve` act on the run, or on one `step`.
    """

    _label = "run"
    _shown_by = "holdfast flow show"

    def __init__(self, run_id: UUID, executor: FlowExecutor, read_result: ReadResult) -> None:
        self._id = run_id
        self._executor: FlowExecutor = executor
        self._read_result = read_result

    @property
    def id(self) -> UUID:
        """The run's id."""
        return self._id

    def steps(self) -> list[StepOutcome]:
        """Read the states of its steps, in the order of the plan."""
        return follow(self._executor, self._steps())

    async def asteps(self) -> list[StepOutcome]:
        """Read the states of its steps, in the order of the plan."""
        return await afollow(self._executor, self._steps())

    @overload
    def result_of(self, step: Step[R]) -> R: ...
    @overload
    def result_of(self, step: str) -> Any: ...
    def result_of(self, step: Step[Any] | str) -> Any:
        """Return the result of a step in the type of its function; None while the step has not ended."""
        return follow(self._executor, self._result_of(step))

    @overload
    async def aresult_of(self, step: Step[R]) -> R: ...
    @overload
    async def aresult_of(self, step: str) -> Any: ...
    async def aresult_of(self, step: Step[Any] | str) -> Any:
        """Return the result of a step, as `result_of` does."""
        return await afollow(self._executor, self._result_of(step))

    def context(self) -> RunContext:
        """Read its execution context: the counts of its steps, its status and the recommended action."""
        return follow(self._executor, self._context())

    async def acontext(self) -> RunContext:
        """Read its execution context, as `context` does."""
        return await afollow(self._executor, self._context())

    def readiness(self) -> list[StepReadiness]:
        """Read which of its steps are ready, and what the others wait for."""
        return self._executor.make(calls.step_readiness(self.id))

    async def areadiness(self) -> list[StepReadiness]:
        """Read which of its steps are ready, as `readiness` does."""
        return await self._executor.amake(calls.step_readiness(self.id))

    def cancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; running handlers are asked to stop."""
        follow(self._executor, self._cancel(reason, step))

    async def acancel(self, reason: str | None = None, *, step: Any = None) -> None:
        """Cancel it and all its steps, or one of them; running handlers are asked to stop."""
        await afollow(self._executor, self._cancel(reason, step))

    def retry(self, reason: str | None = None, *, step: Any = None) -> FlowRun:
        """Retry its failed steps, or one of them, with a fresh budget; the run itself continues."""
        return follow(self._executor, self._retry(reason, step))

    async def aretry(self, reason: str | None = None, *, step: Any = None) -> FlowRun:
        """Retry its failed steps, or one of them, as `retry` does."""
        return await afollow(self._executor, self._retry(reason, step))

    def resolve(self, reason: str | None = None, *, step: Any = None, result: Any = None) -> None:
        """Mark one of its steps as resolved by hand, with the result that it passes on; without a step the run."""
        follow(self._executor, self._resolve(reason, result, step))

    async def aresolve(self, reason: str | None = None, *, step: Any = None, result: Any = None) -> None:
        """Mark a step or the run as resolved by hand, as `resolve` does."""
        await afollow(self._executor, self._resolve(reason, result, step))

    def retry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Repeat a step of a finished run, and all that wait for it, in a new run; return that one's handle."""
        return follow(self._executor, self._retry_from(step, reason))

    async def aretry_from(self, step: Any, reason: str | None = None) -> FlowRun:
        """Repeat a step, as `retry_from` does."""
        return await afollow(self._executor, self._retry_from(step, reason))

    def _steps(self) -> Plan[list[StepOutcome]]:
        steps: list[StepOutcome] = yield calls.step_outcomes(self.id)
        yield from self._first(steps)  # raises if it is not there: retention may remove it while it is read
        return steps

    def _value(self, _stored: Any) -> Plan[dict[str, Any]]:
        steps = yield from self._steps()
        return {step.name: self._typed(step) for step in steps}

    def _result_of(self, step: Any) -> Plan[Any]:
        outcome = yield from self._step(step)
        return None if outcome.outcome is None else self._typed(outcome)

    def _context(self) -> Plan[RunContext]:
        rows: list[RunContext] = yield calls.run_context(self.id)
        return (yield from self._first(rows))

    def _cancel(self, reason: str | None, step: Any = None) -> Plan[None]:
        yield kernel.cancel((yield from self._target(step)), checked_reason(reason))
        events.cancelled(self._executor, self.id, reason, None if step is None else _name(step))

    def _retry(self, reason: str | None, step: Any = None) -> Plan[FlowRun]:
        yield kernel.retry((yield from self._target(step)), checked_reason(reason))
        events.retried(self._executor, self.id, reason)
        return self

    def _resolve(self, reason: str | None, result: Any, step: Any = None) -> Plan[None]:
        target = yield from self._target(step)
        yield kernel.resolve(target, checked_reason(reason), result)
        events.resolved(self._executor, self.id, reason, None if step is None else (int(target), _name(step)))

    def _retry_from(self, step: Any, reason: str | None) -> Plan[FlowRun]:
        outcome = yield from self._step(step)
        (run_id,) = yield calls.retry_from(outcome.step_id, checked_reason(reason))
        events.done_again(self._executor, run_id, self.id)
        return FlowRun(run_id, self._executor, self._read_result)

    def _target(self, step: Any) -> Plan[str]:
        """Return the id to act on: the run's, or the number of one of its steps."""
        return str(self.id) if step is None else str((yield from self._step(step)).step_id)

    def _step(self, step: Any) -> Plan[StepOutcome]:
        name = _name(step)
        rows: list[StepOutcome] = yield calls.step_outcomes(self.id, [name])
        if not rows:
            yield from self._status()  # raises if the run is not there
            raise NotFound(
                f"run {self.id} has no step {name}",
                where=name,
                next=f"list its steps with `holdfast flow show {self.id}`",
            )
        return rows[0]

    def _typed(self, step: StepOutcome) -> Any:
        return self._read_result(step.name, step.result, f"step {step.name} of run {self.id}")

    def _causes(self, status: Status) -> Plan[str]:  # noqa: ARG002 - it reads all its steps
        return _causes((yield from self._steps()))

    def _next(self, status: Status) -> str:
        """Return what the user can do next: a cancelled step is final, and can only be repeated in a new run."""
        if status.outcome != "failed" or status.failed or status.step is None:
            return super()._next(status)
        return f"repeat it in a new run: holdfast flow retry {self.id} --from {shlex.quote(status.step)}"


def _name(step: Any) -> str:
    return step if isinstance(step, str) else str(step.name)


def _causes(steps: list[StepOutcome]) -> str:
    """List the steps that ended a run, the failed first."""
    causes = [f"step {step.name}: {error_line(step.error)}" for step in steps if step.outcome == "failed"]
    causes += [f"step {step.name} was cancelled" for step in steps if step.outcome == "cancelled"]
    more = f"; and {len(causes) - MOST_NAMED} more" if len(causes) > MOST_NAMED else ""
    return "; ".join(causes[:MOST_NAMED]) + more


def by_id(executor: FlowExecutor, run_id: str) -> FlowRun:
    """Return the handle of a run by its id; results are returned as they are stored."""
    return FlowRun(UUID(run_id), executor, lambda _step, stored, _place: stored)


def read_run_id(given: Any) -> UUID:
    """Parse the id of a run."""
    try:
        return UUID(str(given))
    except ValueError:
        raise BadInput(
            f"the id of a run must be a UUID, got {given!r}",
            where="id",
            next="use the id of the handle of its start",
        ) from None
