"""One Python function per SQL function of `ops` that handlers, handles and commands use; each returns a Call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from holdfast.kernel.arrays import Jsons, Texts
from holdfast.kernel.call import Call
from holdfast.kernel.finite import jsonb


@dataclass(frozen=True, slots=True)
class QueuedRun:
    """A run as it was queued, or as it is if its key was known."""

    run_id: str
    status: str
    queued_at: datetime


@dataclass(frozen=True, slots=True)
class SweptRun:
    """A run that was cancelled because it was stale or waited too long, and why."""

    run_id: str
    reason: str


def queue_run(
    project_id: str,
    env: str,
    *,
    git_sha: str | None = None,
    git_ref: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    key: str | None = None,
    kind: str | None = None,
    priority: int = 0,
    due_at: datetime | None = None,
    ttl: timedelta | None = None,
    actor: str | None = None,
    tenant: str = "default",
) -> Call[QueuedRun]:
    """Queue a run of a project's environment; reusing a key returns the existing run."""
    arguments = {
        "p_project_id": project_id,
        "p_env": env,
        "p_git_sha": git_sha,
        "p_git_ref": git_ref,
        "p_metadata": jsonb(dict(metadata or {})),
        "p_idempotency_key": key,
        "p_kind": kind,
        "p_priority": priority,
        "p_due_at": due_at,
        "p_ttl": ttl,
        "p_actor": actor,
        "p_tenant": tenant,
    }
    return Call("queue_run", QueuedRun, arguments, schema="ops")


def step_of_run(run_id: str) -> Call[int]:
    """Return the number of a run's step; no row if there is no such run."""
    return Call("step_of_run", int, {"run_id": run_id}, schema="ops", is_read=True)


def retry_in_place(step_id: int, lease_id: int, executions: int, error: str) -> Call[timedelta | None]:
    """Decide whether a held run is executed again, and after how long; write the event that says so."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "executions": executions, "error": error}
    return Call("retry_in_place", timedelta, arguments, schema="ops")


def expire_claimed(step_id: int, lease_id: int) -> Call[bool]:
    """Cancel a held run if it was claimed after its time in the queue was over; return whether it was."""
    return Call("expire_claimed", bool, {"step_id": step_id, "lease_id": lease_id}, schema="ops")


def append_output(
    step_id: int,
    lease_id: int,
    *,
    levels: Sequence[str],
    messages: Sequence[str],
    payloads: Sequence[str],
    keys: Sequence[str],
) -> Call[int]:
    """Append several events to a held run, each once; the payloads are JSON."""
    events = {"levels": Texts(levels), "messages": Texts(messages), "payloads": Jsons(payloads), "keys": Texts(keys)}
    return Call("append_output", int, {"step_id": step_id, "lease_id": lease_id, **events}, schema="ops")


def cancel_run(run_id: str, reason: str | None = None, actor: str | None = None) -> Call[bool]:
    """Cancel a run; its worker stops it."""
    return Call("cancel_run", bool, {"p_run_id": run_id, "p_reason": reason, "p_actor": actor}, schema="ops")


def retry_run(run_id: str, reason: str | None = None, actor: str | None = None) -> Call[QueuedRun]:
    """Queue a new run with the input of a finished one."""
    return Call("retry_run", QueuedRun, {"p_run_id": run_id, "p_reason": reason, "p_actor": actor}, schema="ops")


def rollback_run(run_id: str, reason: str | None = None, actor: str | None = None) -> Call[QueuedRun]:
    """Queue a run that goes back to the last sha that succeeded before a run."""
    return Call("rollback_run", QueuedRun, {"p_run_id": run_id, "p_reason": reason, "p_actor": actor}, schema="ops")


def decide_approval(run_id: str, decision: str, reason: str, actor: str | None = None) -> Call[str]:
    """Approve or reject a run that waits for it."""
    arguments = {"p_run_id": run_id, "p_decision": decision, "p_reason": reason, "p_actor": actor}
    return Call("decide_approval", str, arguments, schema="ops")


def add_artifact(
    run_id: str,
    type: str,  # noqa: A002 - the word is the same in SQL
    url: str,
    *,
    digest: str | None = None,
    size: int | None = None,
    metadata: Mapping[str, Any] | None = None,
    worker: str | None = None,
) -> Call[str]:
    """Register what a run produced; the same type and address again returns the existing one."""
    arguments = {
        "p_run_id": run_id,
        "p_type": type,
        "p_url": url,
        "p_digest": digest,
        "p_size_bytes": size,
        "p_metadata": jsonb(dict(metadata or {})),
        "p_worker_id": worker,
    }
    return Call("add_artifact", str, arguments, schema="ops")


def define_project(project_id: str, repository: str | None = None, tenant: str = "default") -> Call[None]:
    """Make a project, or change its repository."""
    arguments = {"p_project_id": project_id, "p_repository": repository, "p_tenant": tenant}
    return Call("define_project", type(None), arguments, schema="ops")


def define_environment(
    project_id: str,
    env: str,
    *,
    kind_of_place: str | None = None,
    branch: str | None = None,
    approval: bool = False,
    on_push: str = "queue",
    concurrency: int | None = None,
    queue_ttl: timedelta | None = None,
    kind: str = "deploy",
    tenant: str = "default",
) -> Call[str]:
    """Make an environment, or replace what is known of it."""
    arguments = {
        "p_project_id": project_id,
        "p_env": env,
        "p_type": kind_of_place,
        "p_branch_pattern": branch,
        "p_needs_approval": approval,
        "p_on_push": on_push,
        "p_concurrency": concurrency,
        "p_queue_ttl": queue_ttl,
        "p_kind": kind,
        "p_tenant": tenant,
    }
    return Call("define_environment", str, arguments, schema="ops")


def sweep_runs(tenant: str | None = None) -> Call[SweptRun]:
    """Cancel stale runs, and those that waited too long."""
    return Call("sweep_runs", SweptRun, {"p_tenant": tenant}, schema="ops")


def retry(step_id: str, reason: str | None = None) -> Call[str]:
    """Retry a failed step, as the dead letter does: by a new run in its place."""
    return Call("retry_step", str, {"id": step_id, "reason": reason}, schema="ops")
