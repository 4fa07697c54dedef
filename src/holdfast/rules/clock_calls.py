"""One Python function per SQL function of `rules` that schedules use; each returns a Call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from holdfast.kernel.arrays import Bigints
from holdfast.kernel.call import Call, check_moments
from holdfast.rules import calls


@dataclass(frozen=True, slots=True)
class AppliedAt:
    """The result of an apply with times: the run now, and the schedules that hold the times."""

    status: str
    included: int
    left_out: int
    is_new: bool
    apply_schedule: str | None
    revert_schedule: str | None


@dataclass(frozen=True, slots=True)
class ScheduledTask:
    """What the task that previews a scheduled rule needs. `made`: the run that an earlier try of it made."""

    tenant: str
    made: UUID | None
    open_run: UUID | None
    definition: dict[str, Any] | None


def apply_at(
    run_id: UUID,
    *,
    at: datetime | None = None,
    revert_at: datetime | None = None,
    plan: str | None = None,
    only: Sequence[int] | None = None,
    without: Sequence[int] | None = None,
    first: int | None = None,
    leave_out_shared: bool = False,
    reason: str | None = None,
    actor: str | None = None,
) -> Call[AppliedAt]:
    """Apply a previewed run at a time, undo it at another, or both."""
    arguments = {
        "run_id": run_id,
        "at": at,
        "revert_at": revert_at,
        "plan": plan,
        "only_ids": None if only is None else Bigints(only),
        "without_ids": None if without is None else Bigints(without),
        "first": first,
        "leave_out_shared": leave_out_shared,
        "reason": reason,
        "actor": actor,
    }
    return Call("apply_at", AppliedAt, arguments, schema="rules")


def times(at: datetime | None, revert_at: datetime | None) -> dict[str, Any]:
    """Return the times that were given; raise BadInput for one without a time zone."""
    check_moments(at=at, revert_at=revert_at)
    return {name: moment for name, moment in (("at", at), ("revert_at", revert_at)) if moment is not None}


def apply(run_id: UUID, given: Mapping[str, Any], **options: Any) -> Call[Any]:
    """Apply a run at the times that `times` returned, or now if there are none."""
    return apply_at(run_id, **given, **options) if given else calls.apply(run_id, **options)


def revert(step_id: int, lease_id: int) -> Call[dict[str, Any]]:
    """Undo a run whose `revert_at` has come, under the lease of the task that does it."""
    return Call("revert", dict, {"step_id": step_id, "lease_id": lease_id}, schema="rules")


def scheduled_task(step_id: int, lease_id: int) -> Call[ScheduledTask]:
    """Read what the task that previews a scheduled rule needs."""
    arguments = {"step_id": step_id, "lease_id": lease_id}
    return Call("scheduled_task", ScheduledTask, arguments, schema="rules", is_read=True)


def apply_scheduled(step_id: int, lease_id: int, run_id: UUID) -> Call[str | None]:
    """Queue what a task has previewed, or return why it waits."""
    arguments = {"step_id": step_id, "lease_id": lease_id, "run_id": run_id}
    return Call("apply_scheduled", str, arguments, schema="rules")
