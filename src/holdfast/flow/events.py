"""What subscribers may be told of: the catalogue, as data. docs/reference/events.md is written from it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.notify import Entry, Event, Fields

__all__ = ["CATALOGUE", "Event", "title_of"]

_TITLE: Fields = {"flow": str, "namespace": str, "version": str}
_WHY: Fields = {"reason": str | None}
_STEP: Fields = {"step": str, "kind": str, "attempt": int}
_STATUS: Fields = {"execution_status": str}

CATALOGUE: dict[str, Entry] = {
    "task.initialized": Entry(
        "A task was started: it and its steps are stored.",
        {**_TITLE, "total_steps": int, "retry_of": UUID | None},
    ),
    "task.started": Entry("A worker took the first of its steps.", _TITLE),
    "task.completed": Entry("It is over: all its steps are done.", {**_TITLE, "completed_steps": int}),
    "task.failed": Entry("It is over: what is left of it waits for failed steps.", {**_TITLE, "failed_steps": int}),
    "task.retry_requested": Entry("A person had its failed steps tried again.", _WHY),
    "task.cancelled": Entry("A person cancelled it.", _WHY),
    "step.execution_requested": Entry("A worker took it, and will execute it.", _STEP),
    "step.before_handle": Entry("Its handler is about to be called.", _STEP),
    "step.completed": Entry("It is done.", {**_STEP, "execution_duration": timedelta | None}),
    "step.failed": Entry(
        "An execution failed; `will_retry` says whether another follows.",
        {**_STEP, "execution_duration": timedelta | None, "error": dict | None, "will_retry": bool},
    ),
    "step.retry_requested": Entry(
        "It will be executed again: `attempts` of its `retry_limit` are used up.",
        {**_STEP, "attempts": int, "retry_limit": int | None},
    ),
    "step.backoff": Entry(
        "It waits before that until `next_retry_at`, for `delay` from its failure.",
        {**_STEP, "next_retry_at": datetime, "delay": timedelta},
    ),
    "step.max_retries_reached": Entry(
        "It failed once more, and no execution is left.", {**_STEP, "attempts": int, "retry_limit": int | None}
    ),
    "step.cancelled": Entry("It was cancelled with its task.", {"step": str, **_WHY}),
    "step.resolved_manually": Entry("A person said that it is dealt with.", {"step": str, **_WHY}),
    "workflow.viable_steps_discovered": Entry(
        "A claim found steps of the task that may be executed now, and took them.", {"steps": list}
    ),
    "workflow.no_viable_steps": Entry("After a settle no step is ready and none runs.", _STATUS),
    "workflow.task_finalization_started": Entry(
        "Steps were settled: what becomes of the task? `context` has the columns of flow.get_task_execution_context.",
        {"context": dict},
    ),
    "workflow.task_finalization_completed": Entry(
        "That is decided: `action` is `complete`, `fail`, `reenqueue` or `none`.",
        {**_STATUS, "action": str, "delay": timedelta | None, "reason": str},
    ),
    "workflow.task_reenqueue_started": Entry("The task goes on; the strategy is about to be told.", _STATUS),
    "workflow.task_reenqueue_requested": Entry("The strategy was told: at once.", _STATUS),
    "workflow.task_reenqueue_delayed": Entry("The strategy was told: in `delay`.", {**_STATUS, "delay": timedelta}),
    "workflow.task_reenqueue_failed": Entry(
        "The strategy raised. The task goes on all the same: its rows say when.", {**_STATUS, "error": str}
    ),
}


def title_of(task: Any) -> Mapping[str, str]:
    """Name a task's flow, as payloads do."""
    return {"flow": task.name, "namespace": task.namespace, "version": task.version}
