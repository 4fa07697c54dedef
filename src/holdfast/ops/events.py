"""The events of ops runs: their catalogue, and their publishers.

Workers publish outcomes; manual actions are published in the process where they happen. docs/reference/events.md is
generated from the catalogue.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from holdfast.handlers.registry import Registry
from holdfast.kernel.call import Call, Executor
from holdfast.models import ClaimedStep, Ending, Fail, Retry
from holdfast.notify import Count, Entry, Event, Fields, Subscribers

MOST_REMEMBERED = 10_000  # claimed runs; a run whose lease was lost has no end here
_RUN: Fields = {"kind": str}
_END: Fields = {**_RUN, "duration": timedelta | None, "trace_id": str | None}
_FAILED: Fields = {**_END, "error": dict | None}
_MANUAL: Fields = {"reason": str | None}

CATALOGUE: dict[str, Entry] = {
    "ops.run.queued": Entry(
        "`hf.ops.queue` queued it, or returned the run that has its key; not with `conn=`.", {"key": str | None}
    ),
    "ops.run.started": Entry("A worker begins to execute it.", _RUN),
    "ops.run.succeeded": Entry("It ended as success.", _END),
    "ops.run.failed": Entry("It ended as failed, after its executions were used up or at once.", _FAILED),
    "ops.run.cancelled": Entry("A person cancelled it, or its worker was shut down.", _MANUAL),
    "ops.run.retried": Entry("A person queued a new run in its place.", {**_MANUAL, "new_run": str}),
    "ops.run.resolved": Entry("A person marked its failure as resolved.", _MANUAL),
}


class OpsExecutor(Executor, Protocol):
    """The internals of an app, as ops see them: it runs their calls, serves them and delivers their events."""

    registry: Registry
    subscribers: Subscribers


class RunWatcher:
    """Publishes what workers begin and settle, without a query."""

    face = "ops"

    def __init__(self, subscribers: Subscribers) -> None:
        self._subscribers = subscribers
        self._runs: dict[int, str | None] = {}  # of the steps that the workers of this process hold

    def query(self, _worker: str, _step_ids: list[int]) -> Call[Any] | None:
        """Return no query, because the outcomes say everything."""
        return None

    def claimed(self, _worker: str, steps: list[ClaimedStep], _count: Count) -> None:
        """Remember the ids of claimed runs."""
        self._runs |= {step.step_id: run_of(step) for step in steps}
        while len(self._runs) > MOST_REMEMBERED:
            self._runs.pop(next(iter(self._runs)))

    def begun(self, step: ClaimedStep, count: Count) -> None:
        """Publish that a run begins."""
        self._publish("started", step.step_id, count, kind=step.kind.removeprefix("ops:"))

    def ended(self, _worker: str, endings: list[Ending], _answers: list[Any] | None, count: Count) -> None:
        """Publish the outcomes of runs."""
        for ending in endings:
            fields = {"kind": ending.kind.removeprefix("ops:"), "duration": ending.took, "trace_id": ending.trace_id}
            match ending.event:
                case "failed":
                    error = ending.outcome.error if isinstance(ending.outcome, (Fail, Retry)) else None
                    self._publish("failed", ending.step_id, count, **fields, error=error)
                case "cancelled":
                    self._publish("cancelled", ending.step_id, count, reason="its worker was shut down")
                case event:
                    self._publish(event, ending.step_id, count, **fields)
            self._runs.pop(ending.step_id, None)

    def flush(self, seconds: float) -> None:
        """Wait until all events are delivered, up to the timeout."""
        self._subscribers.flush(seconds)

    def _publish(self, event: str, step_id: int, count: Count, **fields: Any) -> None:
        name = f"ops.run.{event}"
        if name in CATALOGUE and self._subscribers.want([name]):
            event_of_run = Event(name, datetime.now(UTC), self._runs.get(step_id), step_id, fields)
            self._subscribers.publish(event_of_run, count)


def publish_manual(executor: OpsExecutor, event: str, run_id: str, **fields: Any) -> None:
    """Publish a manual action on a run."""
    executor.subscribers.publish_now(f"ops.run.{event}", run_id, None, **fields)


def run_of(step: ClaimedStep) -> str | None:
    """Return the id of a step's run."""
    try:
        return str(json.loads(step.input)["run_id"])
    except (KeyError, TypeError, ValueError, RecursionError):
        return None
