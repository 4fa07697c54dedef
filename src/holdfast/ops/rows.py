"""Rows of ops runs and of what belongs to them, as people read them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

OVER = frozenset({"success", "failed", "cancelled"})


@dataclass(frozen=True, slots=True)
class Run:
    """A run; `metadata` is JSON as text."""

    run_id: str
    step_id: int
    project_id: str | None
    env: str | None
    env_id: str | None
    kind: str
    status: str
    git_sha: str | None
    git_ref: str | None
    queued_by: str | None
    claimed_by: str | None
    queued_at: datetime
    started_at: datetime | None
    running_at: datetime | None
    finished_at: datetime | None
    expires_at: datetime | None
    retry_of: str | None
    rollback_of: str | None
    idempotency_key: str | None
    metadata: str
    tenant: str
    approval: str | None  # pending, approved, …; None if it needs none

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.status in OVER


@dataclass(frozen=True, slots=True)
class RunsWanted:
    """Which runs to list; None means any."""

    statuses: tuple[str, ...] | None = None
    project: str | None = None
    env: str | None = None
    kind: str | None = None
    tenant: str | None = None
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run; `payload` is JSON as text."""

    id: int
    event_id: str
    level: str
    message: str
    payload: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Artifact:
    """What a run produced."""

    artifact_id: str
    run_id: str
    type: str
    url: str
    digest: str | None
    size_bytes: int | None
    metadata: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Approval:
    """The approval that a run waits or waited for."""

    run_id: str
    decision: str
    requested_by: str
    requested_at: datetime
    expires_at: datetime
    decided_by: str | None
    decided_at: datetime | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Project:
    """A project."""

    project_id: str
    repository: str | None
    environments: int
    created_at: datetime
    created_by: str
    tenant: str


@dataclass(frozen=True, slots=True)
class Environment:
    """An environment of a project."""

    project_id: str
    name: str
    env_id: str
    type: str | None
    branch_pattern: str | None
    needs_approval: bool
    on_push: str
    kind: str
    concurrency: int | None
    queue_ttl: timedelta | None
    tenant: str
    created_at: datetime
    created_by: str


@dataclass(frozen=True, slots=True)
class Utilization:
    """How many runs a worker has claimed and not finished."""

    claimed_by: str
    active_runs: int


@dataclass(frozen=True, slots=True)
class SuccessRate:
    """Runs of the last 24 hours; the rate is None if none ended."""

    success_count: int
    failed_count: int
    success_rate: float | None


@dataclass(frozen=True, slots=True)
class Duration:
    """How long runs of the last 7 days took, by how they ended."""

    status: str
    avg_duration_seconds: float | None


@dataclass(frozen=True, slots=True)
class Metrics:
    """The four figures that the document monitors."""

    queued_count: int
    workers: list[Utilization]
    success: SuccessRate
    durations: list[Duration]
