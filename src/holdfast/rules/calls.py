"""One Python function per SQL function of `rules` that the API, handlers and commands use; each returns a Call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from holdfast.kernel.arrays import Bigints
from holdfast.kernel.call import Call
from holdfast.kernel.finite import jsonb
from holdfast.models import CompletedInput

# What stage_targets makes, in the order of the columns of a staged target and of a refusal.
COPY_TARGETS = (
    "copy pg_temp.staged_steps (item_id, currency, price_before, price_after, compare_at_before, compare_at_after, "
    "writes_price, writes_compare_at) from stdin"
)
COPY_KEYED_TARGETS = (
    "copy pg_temp.staged_steps (item_id, currency, price_before, price_after, compare_at_before, compare_at_after, "
    "writes_price, writes_compare_at, batch_key) from stdin"
)
COPY_REFUSALS = (
    "copy pg_temp.staged_refusals (item_id, reason, message, currency, price_before, price_after) from stdin"
)


@dataclass(frozen=True, slots=True)
class Preview:
    """A preview as it was stored, or as it is if its key was known."""

    run_id: UUID
    plan_hash: str
    expires_at: datetime
    targets: int
    refused: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class Applied:
    """The result of an apply: how many targets take part and how many do not; `is_new` is false for a repeat."""

    status: str
    included: int
    left_out: int
    is_new: bool


@dataclass(frozen=True, slots=True)
class RetriedTarget:
    """Whether a target was queued or skipped by a retry, and why."""

    target_id: int
    item_id: str | None
    outcome: str
    why: str | None


@dataclass(frozen=True, slots=True)
class PlannedRollback:
    """A rollback as it was planned; `rollback_id` is None while `unknown` targets are read first."""

    rollback_id: UUID | None
    status: str | None
    plan_hash: str | None
    expires_at: datetime | None
    targets: int | None
    unknown: int


def define_rule(definition: Mapping[str, Any], actor: str | None = None, tenant: str = "default") -> Call[int]:
    """Define a rule in its JSON form, and return its version."""
    arguments = {"definition": jsonb(dict(definition)), "actor": actor, "tenant": tenant}
    return Call("define_rule", int, arguments, schema="rules")


def define_channel(
    channel: str,
    kind: str,
    *,
    about: Mapping[str, Any] | None = None,
    batch: int = 1,
    request_timeout: timedelta = timedelta(seconds=10),
    target_timeout: timedelta = timedelta(seconds=60),
    settles_within: timedelta = timedelta(0),
    corrects: bool = False,
) -> Call[None]:
    """Register a channel, or replace what is known of it."""
    arguments = {
        "channel": channel,
        "kind": kind,
        "about": jsonb(dict(about or {})),
        "batch": batch,
        "request_timeout": request_timeout,
        "target_timeout": target_timeout,
        "settles_within": settles_within,
        "corrects": corrects,
    }
    return Call("define_channel", type(None), arguments, schema="rules")


def stage_targets(channel: str, tenant: str = "default") -> Call[None]:
    """Make the staging tables of a preview, for the transaction; then COPY (COPY_TARGETS, COPY_REFUSALS)."""
    return Call("stage_targets", type(None), {"channel": channel, "tenant": tenant}, schema="rules")


def take_preview(
    rule: Mapping[str, Any],
    channel: str,
    *,
    unchanged: int = 0,
    source: str = "api",
    metadata: Mapping[str, Any] | None = None,
    project_id: str | None = None,
    expires_in: timedelta = timedelta(hours=24),
    parent_run_id: UUID | None = None,
    key: str | None = None,
    actor: str | None = None,
    tenant: str = "default",
    unmatched: Sequence[str] = (),
) -> Call[Preview]:
    """Turn staged targets and refusals into a run in PREVIEW with its plan."""
    arguments = {
        "rule": jsonb(dict(rule)),
        "channel": channel,
        "unchanged": unchanged,
        "source": source,
        "metadata": jsonb(dict(metadata or {})),
        "project_id": project_id,
        "expires_in": expires_in,
        "parent_run_id": parent_run_id,
        "key": key,
        "actor": actor,
        "tenant": tenant,
        "unmatched": len(unmatched),
        "unmatched_first": list(unmatched[:5]),
    }
    return Call("take_preview", Preview, arguments, schema="rules")


def apply(
    run_id: UUID,
    *,
    plan: str | None = None,
    only: Sequence[int] | None = None,
    without: Sequence[int] | None = None,
    first: int | None = None,
    leave_out_shared: bool = False,
    reason: str | None = None,
    actor: str | None = None,
) -> Call[Applied]:
    """Queue a previewed run; repeating it changes nothing."""
    arguments = {
        "run_id": run_id,
        "plan": plan,
        "only_ids": _ids(only),
        "without_ids": _ids(without),
        "first": first,
        "leave_out_shared": leave_out_shared,
        "reason": reason,
        "actor": actor,
    }
    return Call("apply", Applied, arguments, schema="rules")


def rollback(
    run_id: UUID,
    *,
    only: Sequence[int] | None = None,
    without: Sequence[int] | None = None,
    force: Sequence[Mapping[str, Any]] = (),
    apply: bool = False,
    expires_in: timedelta = timedelta(hours=24),
    key: str | None = None,
    reason: str | None = None,
    actor: str | None = None,
) -> Call[PlannedRollback]:
    """Plan the inverse of what is applied in a run."""
    arguments = {
        "run_id": run_id,
        "only_ids": _ids(only),
        "without_ids": _ids(without),
        "force": jsonb([dict(each) for each in force]),
        "apply": apply,
        "expires_in": expires_in,
        "key": key,
        "reason": reason,
        "actor": actor,
    }
    return Call("rollback", PlannedRollback, arguments, schema="rules")


def retry_failed(
    run_id: UUID,
    *,
    only: Sequence[int] | None = None,
    without: Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    reason: str | None = None,
    actor: str | None = None,
) -> Call[RetriedTarget]:
    """Retry failed targets of a run that ended."""
    arguments = {
        "run_id": run_id,
        "only_ids": _ids(only),
        "without_ids": _ids(without),
        "classes": None if classes is None else list(classes),
        "reason": reason,
        "actor": actor,
    }
    return Call("retry_failed", RetriedTarget, arguments, schema="rules")


def retry_all(run_id: UUID, reason: str | None = None, actor: str | None = None) -> Call[RetriedTarget]:
    """Retry all targets of a run that were not applied, including those that were never tried."""
    return Call("retry_all", RetriedTarget, {"run_id": run_id, "reason": reason, "actor": actor}, schema="rules")


def resolve(run_id: UUID, targets: Sequence[int], reason: str | None = None, actor: str | None = None) -> Call[int]:
    """Mark failed targets as resolved, and return the ids of those that were marked."""
    arguments = {"run_id": run_id, "targets": _ids(targets), "reason": reason, "actor": actor}
    return Call("resolve", int, arguments, schema="rules")


def dlq_report(project_id: str | None = None, *, most: int = 1000, tenant: str | None = None) -> Call[dict[str, Any]]:
    """Report the dead letter of a project or of all; changes nothing."""
    arguments = {"project_id": project_id, "most": most, "tenant": tenant}
    return Call("dlq_report", dict, arguments, schema="rules", is_read=True)


def write_event(
    event_key: str,
    event_type: str,
    payload: Mapping[str, Any] | None = None,
    *,
    correlation_id: str | None = None,
    run_id: UUID | None = None,
    tenant: str = "default",
) -> Call[int]:
    """Write an event once per key and tenant, and return its id."""
    arguments = {
        "event_key": event_key,
        "event_type": event_type,
        "payload": jsonb(dict(payload or {})),
        "tenant": tenant,
        "correlation_id": correlation_id,
        "run_id": run_id,
    }
    return Call("write_event", int, arguments, schema="rules")


def validate_run_state(run_id: UUID) -> Call[None]:
    """Raise WrongState if a run is APPLIED but has targets that are not."""
    return Call("validate_run_state", type(None), {"run_id": run_id}, schema="rules", is_read=True)


def stop_failing(step_ids: Sequence[int], lease_ids: Sequence[int], reason: str) -> Call[UUID]:
    """Stop the runs of held targets, because every other target would fail too; return the runs."""
    arguments = {"step_ids": Bigints(step_ids), "lease_ids": Bigints(lease_ids), "reason": reason}
    return Call("stop_failing", UUID, arguments, schema="rules")


def target_inputs(step_ids: Sequence[int], _wishes: Sequence[Any] = ()) -> Call[CompletedInput]:
    """Return what a handler needs to apply claimed targets."""
    return Call(
        "target_inputs", CompletedInput, {"step_ids": Bigints(step_ids)}, keeps_json=True, schema="rules", is_read=True
    )


def _ids(given: Sequence[int] | None) -> Bigints | None:
    return None if given is None else Bigints(given)
