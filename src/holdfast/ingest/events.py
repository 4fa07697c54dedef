"""The events of runs of feeds: their catalogue, and their publishers.

Workers publish the rows of `ingest.events` that they caused. Manual actions are published in the process where they
happen. docs/reference/events.md is generated from the catalogue.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Protocol
from uuid import UUID

from holdfast.handlers.registry import Registry
from holdfast.ingest import calls
from holdfast.ingest.calls import RunEvent
from holdfast.kernel.call import Call, Executor
from holdfast.models import ClaimedStep, Ending
from holdfast.notify import BackgroundNotifier, Count, Entry, Event, Fields, Subscribers, failures_only

MOST_REMEMBERED = 10_000  # runs, per worker
MOST_NAMED = 20  # runs whose last event goes with a query, so that it returns only later ones
_RUN: Fields = {"feed": str, "run_type": str, "trace_id": str}
_COUNTS: Fields = {**_RUN, "records": int, "quarantined": int}
_PART: Fields = {"feed": str, "trace_id": str, "partition": str, "records": int}
_WHY: Fields = {"reason": str | None}

CATALOGUE: dict[str, Entry] = {
    "ingest.run.requested": Entry("`feed.start` or `feed.backfill` requested it.", {"feed": str}),
    "ingest.run.planning_failed": Entry(
        "The source could not be counted, or the source or table is unusable, so no run was created.",
        {"feed": str, "trace_id": str, **_WHY},
    ),
    "ingest.run.created": Entry(
        "The source is counted; the run and its partitions are stored.", {**_RUN, "partitions": int}
    ),
    "ingest.run.started": Entry("A worker claimed the first of its partitions.", _RUN),
    "ingest.run.consolidation_triggered": Entry("All its partitions are completed.", _RUN),
    "ingest.run.consolidation_skipped": Entry(
        "All its partitions are over, and some failed.", {**_RUN, "failed_partitions": int}
    ),
    "ingest.run.consolidation_started": Entry("A worker claimed its consolidation.", _RUN),
    "ingest.run.completed": Entry(
        "All its records are in the table. `watermark` is the feed's new one; None in a backfill or a forced run.",
        {**_COUNTS, "deleted": int, "watermark": datetime | None},
    ),
    "ingest.run.failed": Entry("It failed, and the watermark stays.", {**_COUNTS, **_WHY}),
    "ingest.run.alerted": Entry(
        "Its consolidation failed for the first time (`warning`), or the run failed for good (`critical`).",
        {**_RUN, "title": str, "text": str, "severity": str, **_WHY},
    ),
    "ingest.run.retried": Entry(
        "A person retried its failed partitions, or its consolidation. `partitions` is None if all were meant.",
        {**_WHY, "partitions": list | None},
    ),
    "ingest.run.consolidation_resumed": Entry("A person resumed its consolidation.", _WHY),
    "ingest.run.forced": Entry(
        "A person forced its consolidation without the partitions that failed.", {**_WHY, "advance_watermark": bool}
    ),
    "ingest.run.cancelled": Entry("A person cancelled it.", _WHY),
    "ingest.partition.completed": Entry("All its pages are stored.", _PART),
    "ingest.partition.failed": Entry("It failed for good.", {**_PART, "error": str | None}),
}
CLAIMING = frozenset({"ingest.run.started", "ingest.run.consolidation_started"})
MANUAL = frozenset(
    f"ingest.run.{each}" for each in ("requested", "retried", "consolidation_resumed", "forced", "cancelled")
)
SETTLING = CATALOGUE.keys() - CLAIMING - MANUAL
_MOVES = {"workers_running": "started", "consolidating": "consolidation_started"}  # other states are named as the event


class IngestExecutor(Executor, Protocol):
    """The internals of an app, as feeds see them: it runs their calls, serves their steps and delivers their events."""

    registry: Registry
    subscribers: Subscribers


@dataclass(frozen=True, slots=True)
class Claimed:
    worker: str
    run_ids: list[UUID]
    count: Count


@dataclass(frozen=True, slots=True)
class Settled:
    worker: str
    rows: list[RunEvent] | None
    count: Count


class RunWatcher:
    """Publishes what workers did to runs, in its own thread, from the rows that their transactions wrote."""

    face = "ingest"

    def __init__(self, subscribers: Subscribers, executor: Executor) -> None:
        self._subscribers = subscribers
        self._executor = executor
        self._notes: BackgroundNotifier[Claimed | Settled] = BackgroundNotifier(self._publish_note, "ingest")
        self._published: dict[tuple[str, UUID], int] = {}  # the last event that a worker published of a run
        self._lock = threading.Lock()

    def query(self, worker: str, step_ids: list[int]) -> Call[Any] | None:
        """Return the query for what the worker did to the runs of settled steps."""
        return (
            calls.events_by(worker, step_ids, known=self._known(worker)) if self._subscribers.want(SETTLING) else None
        )

    def claimed(self, worker: str, steps: list[ClaimedStep], count: Count) -> None:
        """Receive claimed steps; only the first attempt at a step can start a run or its consolidation."""
        if self._subscribers.want(CLAIMING):
            first = [step for step in steps if step.attempt == 1 and step.kind.endswith((":page", ":consolidate"))]
            if run_ids := list({step.run_id for step in first if step.run_id is not None}):
                self._notes.tell(Claimed(worker, run_ids, count), failures_only(count))

    def begun(self, _step: ClaimedStep, _count: Count) -> None:
        """Ignore handlers that are about to be called."""

    def ended(self, worker: str, _endings: list[Ending], answers: list[Any] | None, count: Count) -> None:
        """Receive the events that a settle wrote."""
        if answers != []:
            self._notes.tell(Settled(worker, answers, count), failures_only(count))

    def flush(self, seconds: float) -> None:
        """Wait until all events are delivered, up to the timeout."""
        for each in (self._notes, self._subscribers):
            each.flush(seconds)

    def _publish_note(self, note: Claimed | Settled) -> None:
        match note:
            case Claimed():
                rows = self._executor.make(calls.events_by(note.worker, [], note.run_ids, self._known(note.worker)))
                self._publish(note.worker, rows, note.count)
            case Settled(rows=None):
                raise LookupError("could not read the events of runs after the settle; see ingest.events")
            case Settled(rows=list(settled)):
                self._publish(note.worker, settled, note.count)

    def _publish(self, worker: str, rows: Iterable[RunEvent], count: Count) -> None:
        """Publish each event once. A run's row is locked until its events are committed, so their ids are in order."""
        for row in rows:
            if row.id is not None and not self._is_next(worker, row.run_id, row.id):
                continue
            name = name_of(row)
            self._subscribers.publish(Event(name, row.at, row.run_id, row.step_id, payload_of(name, row)), count)

    def _is_next(self, worker: str, run_id: UUID, event_id: int) -> bool:
        """Return whether an event of a run is later than the last that was published, and remember it."""
        with self._lock:
            last = self._published.pop((worker, run_id), 0)  # the run that was used last is dropped last
            self._published[worker, run_id] = max(last, event_id)
            if len(self._published) > MOST_REMEMBERED:
                self._published.pop(next(iter(self._published)))
        return event_id > last

    def _known(self, worker: str) -> dict[str, int]:
        """Return the last published event of each run that was used last."""
        with self._lock:
            latest = islice(reversed(self._published.items()), MOST_NAMED)
            return {str(run_id): event_id for (who, run_id), event_id in latest if who == worker}


def publish_manual(executor: IngestExecutor, event: str, run_id: UUID, **fields: Any) -> None:
    """Publish a manual action on a run."""
    executor.subscribers.publish_now(f"ingest.run.{event}", run_id, **fields)


def name_of(row: RunEvent) -> str:
    """Return the name under which a row of `ingest.events` is published."""
    if row.event == "WORK_DONE":
        return f"ingest.partition.{row.body['status']}"
    if row.event == "alert":
        return "ingest.run.alerted"
    state = row.event.removeprefix("run.")
    return f"ingest.run.{_MOVES.get(state, state)}"


def payload_of(name: str, row: RunEvent) -> dict[str, Any]:
    """Return the fields that the catalogue lists for an event."""
    body = row.body
    is_of_part = row.partition_id is not None
    known = {
        "feed": row.feed,
        "run_type": row.run_type,
        "trace_id": row.trace_id,
        "records": body.get("recordsProcessed") if is_of_part else row.records,
        "quarantined": row.quarantined,
        "deleted": row.deleted,
        "watermark": row.watermark,
        "partitions": body.get("expected"),
        "failed_partitions": body.get("failed"),
        "partition": row.partition_id,
        "error": body.get("error"),
        "title": body.get("title"),
        "text": row.message,
        "severity": row.severity,
        "reason": body.get("reason") if row.event == "alert" else row.message,
    }
    return {field: known[field] for field in CATALOGUE[name].fields}
