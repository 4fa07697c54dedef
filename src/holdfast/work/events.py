"""The events of single tasks: their catalogue, and their publishers.

Workers publish outcomes; manual actions are published in the process where they happen. docs/reference/events.md is
generated from the catalogue.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Call, Executor
from holdfast.models import ClaimedStep, Ending, Fail, Retry
from holdfast.notify import Count, Entry, Event, Fields, Subscribers

_ATTEMPT: Fields = {"kind": str, "attempt": int, "duration": timedelta | None, "trace_id": str | None}
_FAILURE: Fields = {**_ATTEMPT, "error": dict | None}
_WHY: Fields = {"reason": str | None}

CATALOGUE: dict[str, Entry] = {
    "work.task.succeeded": Entry("Its handler returned, and the result is stored.", _ATTEMPT),
    "work.task.retried": Entry("An attempt failed, and another follows.", _FAILURE),
    "work.task.failed": Entry("It failed for good.", _FAILURE),
    "work.task.snoozed": Entry("Its handler asked to run again later.", _ATTEMPT),
    "work.task.continued": Entry("Its handler finished a page, and continues from its cursor.", _ATTEMPT),
    "work.task.released": Entry("A stopping worker released it without running it.", _ATTEMPT),
    "work.task.cancelled": Entry("A person cancelled it.", _WHY),
    "work.task.reopened": Entry("A person retried it after it failed.", _WHY),
    "work.task.resolved": Entry("A person marked it as resolved.", _WHY),
}


class WorkExecutor(Executor, Protocol):
    """The internals of an app, as its tasks see them: it runs their calls, serves them and delivers their events."""

    registry: Registry
    subscribers: Subscribers


class TaskWatcher:
    """Publishes what workers settled, without a query."""

    face = "work"

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers

    def query(self, _worker: str, _step_ids: list[int]) -> Call[Any] | None:
        """Return no query, because the outcomes say everything."""
        return None

    def claimed(self, _worker: str, _steps: list[ClaimedStep], _count: Count) -> None:
        """Ignore claims."""

    def begun(self, _step: ClaimedStep, _count: Count) -> None:
        """Ignore handlers that are about to be called."""

    def ended(self, _worker: str, endings: list[Ending], _answers: list[Any] | None, count: Count) -> None:
        """Publish the outcomes of tasks."""
        at = datetime.now(UTC)
        for ending in endings:
            name = f"work.task.{ending.event}"
            if self._subscribers.want([name]):
                event = Event(name, at, ending.run_id, ending.step_id, _payload(ending, CATALOGUE[name].fields))
                self._subscribers.publish(event, count)

    def flush(self, seconds: float) -> None:
        """Wait until all events are delivered, up to the timeout."""
        self._subscribers.flush(seconds)


def publish_manual(executor: WorkExecutor, event: str, task_id: int, reason: str | None) -> None:
    """Publish a manual action on a task."""
    executor.subscribers.publish_now(f"work.task.{event}", None, task_id, reason=reason)


def _payload(ending: Ending, fields: Fields) -> dict[str, Any]:
    error = ending.outcome.error if isinstance(ending.outcome, (Fail, Retry)) else None
    known = {"duration": ending.took, "trace_id": ending.trace_id, "error": error}
    return {"kind": ending.kind, "attempt": ending.attempt, **{n: v for n, v in known.items() if n in fields}}
