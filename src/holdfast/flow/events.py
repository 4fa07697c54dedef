"""The events of flows: their catalogue, and those of what people do to tasks through Python.

docs/reference/events.md is written from the catalogue. Events of manual actions are published in the process where
they happen, and only to subscribers. What has to be looked up for them is looked up in a thread, so the caller does
not wait.
"""

from __future__ import annotations

from collections.abc import Mapping
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
    "resolved",
    "retried",
    "title_of",
]

_TITLE: Fields = {"flow": str, "namespace": str, "version": str}
_WHY: Fields = {"reason": str | None}
_STEP: Fields = {"step": str, "kind": str, "attempt": int}
_STATUS: Fields = {"execution_status": str}

CATALOGUE: dict[str, Entry] = {
    "task.initialized": Entry(
        "A task was started: it and its steps are stored.",
        {**_TITLE, "total_steps": int, "retry_of": UUID | None},
    ),
    "task.started": Entry("A worker claimed the first of its steps.", _TITLE),
    "task.completed": Entry("It ended: all its steps are done.", {**_TITLE, "completed_steps": int}),
    "task.failed": Entry("It ended: the steps that are left wait for failed ones.", {**_TITLE, "failed_steps": int}),
    "task.retry_requested": Entry("A person retried its failed steps.", _WHY),
    "task.cancelled": Entry("A person cancelled it.", _WHY),
    "step.execution_requested": Entry("A worker claimed it and will execute it.", _STEP),
    "step.before_handle": Entry("Its handler is about to be called.", _STEP),
    "step.completed": Entry("It is done.", {**_STEP, "execution_duration": timedelta | None}),
    "step.failed": Entry(
        "An execution failed; `will_retry` tells whether another follows.",
        {**_STEP, "execution_duration": timedelta | None, "error": dict | None, "will_retry": bool},
    ),
    "step.retry_requested": Entry(
        "It will be executed again: `attempts` of its `retry_limit` are used up.",
        {**_STEP, "attempts": int, "retry_limit": int | None},
    ),
    "step.backoff": Entry(
        "It waits for the next execution until `next_retry_at`, which is `delay` after its failure.",
        {**_STEP, "next_retry_at": datetime, "delay": timedelta},
    ),
    "step.max_retries_reached": Entry(
        "It failed, and no execution is left.", {**_STEP, "attempts": int, "retry_limit": int | None}
    ),
    "step.cancelled": Entry("It was cancelled with its task.", {"step": str, **_WHY}),
    "step.resolved_manually": Entry("A person marked it as resolved.", {"step": str, **_WHY}),
    "workflow.viable_steps_discovered": Entry(
        "A claim found steps of the task that are ready, and took them.", {"steps": list}
    ),
    "workflow.no_viable_steps": Entry("After a settle no step is ready and none is running.", _STATUS),
    "workflow.task_finalization_started": Entry(
        "Steps were settled, and the task is decided on. `context` has the columns of flow.get_task_execution_context.",
        {"context": dict},
    ),
    "workflow.task_finalization_completed": Entry(
        "The decision: `action` is `complete`, `fail`, `reenqueue` or `none`.",
        {**_STATUS, "action": str, "delay": timedelta | None, "reason": str},
    ),
    "workflow.task_reenqueue_started": Entry("The task goes on; the strategy is about to be called.", _STATUS),
    "workflow.task_reenqueue_requested": Entry("The strategy was called: the task goes on at once.", _STATUS),
    "workflow.task_reenqueue_delayed": Entry(
        "The strategy was called: the task goes on after `delay`.", {**_STATUS, "delay": timedelta}
    ),
    "workflow.task_reenqueue_failed": Entry(
        "The strategy raised. The task goes on nevertheless: its rows have their due times.", {**_STATUS, "error": str}
    ),
}


class FlowExecutor(Executor, Protocol):
    """The app, as flows see it: it runs their calls, serves their steps and delivers their events."""

    registry: Registry
    subscribers: Subscribers


def title_of(task: Any) -> Mapping[str, str]:
    """Name a task's flow, as payloads do."""
    return {"flow": task.name, "namespace": task.namespace, "version": task.version}


def initialized(executor: FlowExecutor, task_id: UUID, title: Title, total_steps: int) -> None:
    """Publish that a task was started."""
    payload = {**title_of(title), "total_steps": total_steps, "retry_of": None}
    executor.subscribers.publish_now("task.initialized", task_id, **payload)


def done_again(executor: FlowExecutor, task_id: UUID, retry_of: UUID) -> None:
    """Publish that a task was started which repeats steps of another."""

    def publish() -> None:
        for task in executor.make(calls.task_context(task_id)):
            payload = {**title_of(task), "total_steps": task.total_steps, "retry_of": retry_of}
            executor.subscribers.publish_now("task.initialized", task_id, **payload)

    executor.subscribers.call_later(publish)


def retried(executor: FlowExecutor, task_id: UUID, reason: str | None) -> None:
    """Publish that a person retried a task."""
    executor.subscribers.publish_now("task.retry_requested", task_id, reason=reason)


def cancelled(executor: FlowExecutor, task_id: UUID, reason: str | None, step: str | None = None) -> None:
    """Publish that a task and its steps were cancelled, or only one of its steps."""

    def publish() -> None:
        if step is None:
            executor.subscribers.publish_now("task.cancelled", task_id, reason=reason)
        for row in executor.make(calls.step_outcomes(task_id, None if step is None else [step])):
            if row.state == "cancelled":
                executor.subscribers.publish_now("step.cancelled", task_id, row.step_id, step=row.name, reason=reason)

    executor.subscribers.call_later(publish)


def resolved(executor: FlowExecutor, task_id: UUID, step_id: int, step: str, reason: str | None) -> None:
    """Publish that a person resolved a step, and that the task is complete if that was the last one."""

    def publish() -> None:
        executor.subscribers.publish_now("step.resolved_manually", task_id, step_id, step=step, reason=reason)
        for task in executor.make(calls.task_context(task_id)):
            if task.state == "complete":
                payload = {**title_of(task), "completed_steps": task.completed_steps}
                executor.subscribers.publish_now("task.completed", task_id, **payload)

    executor.subscribers.call_later(publish)
