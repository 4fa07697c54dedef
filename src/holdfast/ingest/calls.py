"""One Python function per SQL function of `ingest` that handlers, handles and commands use; each returns a Call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from holdfast.kernel.arrays import Bigints
from holdfast.kernel.call import Call, check_moments
from holdfast.kernel.finite import jsonb


@dataclass(frozen=True, slots=True)
class StartToPlan:
    """A start as its task sees it; `run_id` is None once the run is created."""

    run_id: UUID | None
    feed: str
    run_type: str | None
    since: datetime | None
    until: datetime | None
    watermark: datetime | None
    clock: datetime
    trace_id: str


class RawRecord(NamedTuple):
    """A record of a batch; payload and pricing rules are JSON as text."""

    key: str
    payload: str
    updated_at: datetime | None
    deleted: bool
    target_key: str | None
    pricing: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Why a consolidation cannot end yet, and whether absent records are deleted."""

    problem: str | None
    deletes: bool


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The counts of a run."""

    feed: str
    run_type: str
    records: int
    quarantined: int
    deleted: int
    forced: bool
    watermark_before: datetime | None
    watermark_after: datetime | None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """A row of `ingest.events` that a worker caused, beside what its run brought. A plan that failed has no id."""

    id: int | None
    at: datetime
    event: str
    run_id: UUID
    step_id: int | None
    feed: str
    run_type: str | None
    trace_id: str
    partition_id: str | None
    severity: str
    message: str | None
    body: dict[str, Any]
    records: int
    quarantined: int
    deleted: int
    watermark: datetime | None


def define_feed(
    feed: str, settings: Mapping[str, Any], raw_name: str | None = None, tenant: str = "default"
) -> Call[None]:
    """Define a feed."""
    arguments = {"feed": feed, "settings": jsonb(dict(settings)), "raw_name": raw_name, "tenant": tenant}
    return Call("define_feed", type(None), arguments, schema="ingest")


def start(
    feed: str,
    run_type: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    tenant: str | None = None,
) -> Call[UUID]:
    """Start a run of a feed."""
    check_moments(since=since, until=until)
    arguments = {"feed": feed, "run_type": run_type, "since": since, "until": until, "tenant": tenant}
    return Call("start", UUID, arguments, schema="ingest")


def planning_step(run_id: UUID) -> Call[int | None]:
    """Return the task that plans a run; None once the run is created."""
    return Call("planning_step", int, {"run_id": run_id}, schema="ingest", is_read=True)


def run_summary(run_id: UUID) -> Call[RunSummary]:
    """Return the counts of a run."""
    return Call("run_summary", RunSummary, {"run_id": run_id}, schema="ingest", is_read=True)


def start_to_plan(step_id: int, lease_id: int) -> Call[StartToPlan]:
    """Return the start that a held task plans."""
    return Call("start_to_plan", StartToPlan, {"step_id": step_id, "lease_id": lease_id}, schema="ingest", is_read=True)


def create_run(step_id: int, lease_id: int, plan: Mapping[str, Any]) -> Call[UUID]:
    """Create the run that a held task planned."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "plan": jsonb(dict(plan))}
    return Call("create_run", UUID, arguments, schema="ingest")


def events_by(
    worker: str, step_ids: Sequence[int], run_ids: Sequence[UUID] = (), known: Mapping[str, int] | None = None
) -> Call[RunEvent]:
    """List the events that a worker caused in these runs and in the runs of these steps, after those that are known."""
    given = jsonb(dict(known or {}))
    arguments = {"worker": worker, "step_ids": Bigints(step_ids), "run_ids": list(run_ids), "known": given}
    return Call("events_by", RunEvent, arguments, schema="ingest", is_read=True)


def begin_consolidation(step_id: int, lease_id: int) -> Call[int]:
    """Cut a run's records into batches."""
    return Call("begin_consolidation", int, {"step_id": step_id, "lease_id": lease_id}, schema="ingest")


def batch_rows(step_id: int, lease_id: int) -> Call[RawRecord]:
    """Return the records of a held batch."""
    return Call("batch_rows", RawRecord, {"step_id": step_id, "lease_id": lease_id}, schema="ingest")


def check_consolidated(step_id: int, lease_id: int) -> Call[Verdict]:
    """Return why a consolidation cannot end yet."""
    return Call("check_consolidated", Verdict, {"step_id": step_id, "lease_id": lease_id}, schema="ingest")


def absent_keys(step_id: int, lease_id: int, batch: int, after: str | None = None) -> Call[str]:
    """Return keys that a full run did not see."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "after": after, "batch": batch}
    return Call("absent_keys", str, arguments, schema="ingest")


def delete_absent(step_id: int, lease_id: int, spared: Sequence[str]) -> Call[str]:
    """Mark absent records as deleted, and return their keys in the target."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "spared": list(spared)}
    return Call("delete_absent", str, arguments, schema="ingest")


def retry_partitions(run_id: UUID, partition_ids: Sequence[str] | None = None, reason: str | None = None) -> Call[int]:
    """Retry failed partitions."""
    names = None if partition_ids is None else list(partition_ids)
    arguments = {"run_id": run_id, "partition_ids": names, "reason": reason}
    return Call("retry_partitions", int, arguments, schema="ingest")


def resume_consolidation(run_id: UUID, reason: str | None = None) -> Call[str]:
    """Consolidate a run again."""
    return Call("resume_consolidation", str, {"run_id": run_id, "reason": reason}, schema="ingest")


def force(run_id: UUID, reason: str | None = None, *, advance_watermark: bool = False) -> Call[str]:
    """Consolidate what was read by a run with failed partitions."""
    arguments = {"run_id": run_id, "advance_watermark": advance_watermark, "reason": reason}
    return Call("force", str, arguments, schema="ingest")


def cancel_run(run_id: UUID, reason: str | None = None) -> Call[str]:
    """Cancel a run, even while it is being planned."""
    return Call("cancel_run", str, {"run_id": run_id, "reason": reason}, schema="ingest")


def set_watermark(feed: str, at: datetime, reason: str) -> Call[None]:
    """Set the watermark of a feed."""
    return Call("set_watermark", type(None), {"feed": feed, "at": at, "reason": reason}, schema="ingest")


def retry(id: str, reason: str | None = None) -> Call[None]:  # noqa: A002 - the word is the same in SQL
    """Retry a run, a partition or a batch by its id."""
    return Call("retry_run", type(None), {"id": id, "reason": reason}, schema="ingest")
