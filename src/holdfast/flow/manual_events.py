"""Tells of what people do to tasks through Python, in the process where they do it; without a subscriber, of nothing.

What has to be looked up for it is looked up aside: the caller does not wait for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.pq import TransactionStatus

from holdfast.flow import calls
from holdfast.flow.executor import FlowExecutor
from holdfast.flow.options import Title
from holdfast.flow.subscribers import title_of

_TIME_BITS = 80  # of a version 7 UUID, below its milliseconds


def initialized(executor: FlowExecutor, task_id: UUID, title: Title, total_steps: int) -> None:
    """Tell that a task was started."""
    said = {**title_of(title), "total_steps": total_steps, "retry_of": None}
    executor.subscribers.tell("task.initialized", task_id, **said)


def done_again(executor: FlowExecutor, task_id: UUID, retry_of: UUID) -> None:
    """Tell that a task was started which does steps of another again."""

    def tell() -> None:
        for task in executor.make(calls.task_context(task_id)):
            said = {**title_of(task), "total_steps": task.total_steps, "retry_of": retry_of}
            executor.subscribers.tell("task.initialized", task_id, **said)

    executor.subscribers.tell_later(tell)


def retried(executor: FlowExecutor, task_id: UUID, reason: str | None) -> None:
    """Tell that a person had a task tried again."""
    executor.subscribers.tell("task.retry_requested", task_id, reason=reason)


def cancelled(executor: FlowExecutor, task_id: UUID, reason: str | None, step: str | None = None) -> None:
    """Tell that a task was cancelled, and which of its steps with it; or only that one step was."""

    def tell() -> None:
        if step is None:
            executor.subscribers.tell("task.cancelled", task_id, reason=reason)
        for one in executor.make(calls.step_outcomes(task_id, None if step is None else [step])):
            if one.state == "cancelled":
                executor.subscribers.tell("step.cancelled", task_id, one.step_id, step=one.name, reason=reason)

    executor.subscribers.tell_later(tell)


def resolved(executor: FlowExecutor, task_id: UUID, step_id: int, step: str, reason: str | None) -> None:
    """Tell that a person has dealt with a step, and with that, it may be, with all that was left of its task."""

    def tell() -> None:
        executor.subscribers.tell("step.resolved_manually", task_id, step_id, step=step, reason=reason)
        for task in executor.make(calls.task_context(task_id)):
            if task.state == "complete":
                said = {**title_of(task), "completed_steps": task.completed_steps}
                executor.subscribers.tell("task.completed", task_id, **said)

    executor.subscribers.tell_later(tell)


def is_committed(conn: Any) -> bool:
    """Whether a start on a caller's own connection stands already: inside a transaction that is not ours to know."""
    return conn is None or conn.info.transaction_status == TransactionStatus.IDLE


def is_new(task_id: UUID, asked_at: Sequence[datetime]) -> bool:
    """Whether a start made a task, and did not find one of its key from before it `asked_at` the time."""
    return all(task_id.int >> _TIME_BITS >= int(time.timestamp() * 1000) for time in asked_at)
