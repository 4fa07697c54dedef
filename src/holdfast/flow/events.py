"""The events of flows: their catalogue, and those of what people do to runs through Python.

docs/reference/events.md is written from the catalogue. Events of manual actions are published in the process where
they happen, and only to subscribers. What has to be looked up for them is looked up in a thread, so the caller does
not wait.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol
from uuid import UUID

from holdfast.flow import calls
from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Executor
from holdfast.notify import Entry, Event, Fields, Subscribers

if TYPE_CHECKING:
    from holdfast.flow.step import Title

__all__ = [
    "CATALOGUE",
    "Event",
    "FlowExecutor",
    "cancelled",
    "done_again",
    "initialized",
    "is_new",
    "resolved",
    "retried",
    "title_of",
]

_TIME_BITS = 80  # of a version 7 UUID, below its milliseconds
_TITLE: Fields = {"flow": str, "namespace": str, "version": str}
_WHY: Fields = {"reason": str | None}
_STEP: Fields = {"step": str, "kind": str, "attempt": int}
_EXECUTION: Fields = {"execution_duration": timedelta | None, "trace_id": str | None}
_STATUS: Fields = {"execution_status": str}

CATALOGUE: dict[str, Entry] = {
    "flow.run.initialized": Entry(
        "A run was started: it and its steps are stored.",
        {**_TITLE, "total_steps": int, "retry_of": UUID | None},
        "task.initialized",
    ),
    "flow.run.started": Entry("A worker claimed the first of its steps.", _TITLE, "task.started"),
    "flow.run.completed": Entry(
        "It ended: all its steps are done.", {**_TITLE, "completed_steps": int}, "task.completed"
    ),
    "flow.run.failed": Entry(
        "It ended: the steps that are left wait for failed ones.", {**_TITLE, "failed_steps": int}, "task.failed"
    ),
    "flow.run.retry_requested": Entry("A person retried its failed steps.", _WHY, "task.retry_requested"),
    "flow.run.cancelled": Entry("A person cancelled it.", _WHY, "task.cancelled"),
    "flow.step.execution_requested": Entry(
        "A worker claimed it and will execute it.", _STEP, "step.execution_requested"
    ),
    "flow.step.before_handle": Entry("Its handler is about to be called.", _STEP, "step.before_handle"),
    "flow.step.completed": Entry("It is done.", {**_STEP, **_EXECUTION}, "step.completed"),
    "flow.step.failed": Entry(
        "An execution failed; `will_retry` tells whether another follows.",
        {**_STEP, **_EXECUTION, "error": dict | None, "will_retry": bool},
        "step.failed",
    ),
    "flow.step.retry_requested": Entry(
        "It will be executed again: `attempts` of its `retry_limit` are used up.",
        {**_STEP, "attempts": int, "retry_limit": int | None},
        "step.retry_requested",
    ),
    "flow.step.backoff": Entry(
        "It waits for the next execution until `next_retry_at`, which is `delay` after its failure.",
        {**_STEP, "next_retry_at": datetime, "delay": timedelta},
        "step.backoff",
    ),
    "flow.step.max_retries_reached": Entry(
        "It failed, and no execution is left.",
        {**_STEP, "attempts": int, "retry_limit": int | None},
        "step.max_retries_reached",
    ),
    "flow.step.cancelled": Entry(
        "A person cancelled it, or the run that it is a step of.", {"step": str, **_WHY}, "step.cancelled"
    ),
    "flow.step.resolved_manually": Entry(
        "A person marked it as resolved.", {"step": str, **_WHY}, "step.resolved_manually"
    ),
    "flow.workflow.viable_steps_discovered": Entry(
        "A claim found steps of the run that are ready, and took them.",
        {"steps": list},
        "workflow.viable_steps_discovered",
    ),
    "flow.workflow.no_viable_steps": Entry(
        "After a settle no step is ready and none is running.", _STATUS, "workflow.no_viable_steps"
    ),
    "flow.workflow.finalization_started": Entry(
        "Steps were settled, and the run is decided on. `context` has the columns of flow.get_task_execution_context.",
        {"context": dict},
        "workflow.task_finalization_started",
    ),
    "flow.workflow.finalization_completed": Entry(
        "The decision: `action` is `complete`, `fail`, `reenqueue` or `none`.",
        {**_STATUS, "action": str, "delay": timedelta | None, "reason": str},
        "workflow.task_finalization_completed",
    ),
    "flow.workflow.reenqueue_started": Entry(
        "The run goes on; the strategy is about to be called.", _STATUS, "workflow.task_reenqueue_started"
    ),
    "flow.workflow.reenqueue_requested": Entry(
        "The strategy was called: the run goes on at once.", _STATUS, "workflow.task_reenqueue_requested"
    ),
    "flow.workflow.reenqueue_delayed": Entry(
        "The strategy was called: the run goes on after `delay`.",
        {**_STATUS, "delay": timedelta},
        "workflow.task_reenqueue_delayed",
    ),
    "flow.workflow.reenqueue_failed": Entry(
        "The strategy raised. The run goes on nevertheless: its rows have their due times.",
        {**_STATUS, "error": str},
        "workflow.task_reenqueue_failed",
    ),
}


class FlowExecutor(Executor, Protocol):
    """The app, as flows see it: it runs their calls, serves their steps and delivers their events."""

    registry: Registry
    subscribers: Subscribers


def title_of(run: Any) -> Mapping[str, str]:
    """Name a run's flow, as payloads do."""
    return {"flow": run.name, "namespace": run.namespace, "version": run.version}


def is_new(run_id: UUID, asked_at: Sequence[datetime]) -> bool:
    """Whether a start made the run; under a key it may have found one that is older than `asked_at`."""
    return all(run_id.int >> _TIME_BITS >= int(time.timestamp() * 1000) for time in asked_at)


def initialized(executor: FlowExecutor, run_id: UUID, title: Title, total_steps: int) -> None:
    """Publish that a run was started."""
    payload = {**title_of(title), "total_steps": total_steps, "retry_of": None}
    executor.subscribers.publish_now("flow.run.initialized", run_id, **payload)


def done_again(executor: FlowExecutor, run_id: UUID, retry_of: UUID) -> None:
    """Publish that a run was started which repeats steps of another."""

    def publish() -> None:
        for run in executor.make(calls.run_context(run_id)):
            payload = {**title_of(run), "total_steps": run.total_steps, "retry_of": retry_of}
            executor.subscribers.publish_now("flow.run.initialized", run_id, **payload)

    executor.subscribers.call_later(publish)


def retried(executor: FlowExecutor, run_id: UUID, reason: str | None) -> None:
    """Publish that a person retried a run."""
    executor.subscribers.publish_now("flow.run.retry_requested", run_id, reason=reason)


def cancelled(executor: FlowExecutor, run_id: UUID, reason: str | None, step: str | None = None) -> None:
    """Publish that a run and its steps were cancelled, or only one of its steps."""

    def publish() -> None:
        if step is None:
            executor.subscribers.publish_now("flow.run.cancelled", run_id, reason=reason)
        for row in executor.make(calls.step_outcomes(run_id, None if step is None else [step])):
            if row.state == "cancelled":
                executor.subscribers.publish_now(
                    "flow.step.cancelled", run_id, row.step_id, step=row.name, reason=reason
                )

    executor.subscribers.call_later(publish)


def resolved(executor: FlowExecutor, run_id: UUID, reason: str | None, step: tuple[int, str] | None) -> None:
    """Publish that a person resolved a step, and that the run is complete if that was the last one."""

    def publish() -> None:
        if step is not None:
            step_id, name = step
            executor.subscribers.publish_now("flow.step.resolved_manually", run_id, step_id, step=name, reason=reason)
        for run in executor.make(calls.run_context(run_id)):
            if run.state == "complete":
                payload = {**title_of(run), "completed_steps": run.completed_steps}
                executor.subscribers.publish_now("flow.run.completed", run_id, **payload)

    executor.subscribers.call_later(publish)
