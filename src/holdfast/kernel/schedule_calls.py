"""The SQL functions of schedules as Python values, like those of `calls`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, Protocol

from psycopg.types.json import Jsonb

from holdfast.kernel.call import Call
from holdfast.models import BackfilledTick, FiredSchedules, Json

Missed = Literal["skip", "one", "all"]
Overlap = Literal["allow", "skip", "cancel"]


@dataclass(frozen=True, slots=True)
class Target:
    """What a schedule starts: a face's name for it, the input as JSON, and the face's own options."""

    face: str
    name: str
    input: Json
    options: dict[str, Any]
    tenant: str


class Schedulable(Protocol):
    """What `hf.schedule` takes: a task or a flow, with the options of its start."""

    def scheduled(self, input: Any) -> Target:  # noqa: A002 - the word is the same in SQL
        """Check the input, and return what the schedule is to start."""


@dataclass(frozen=True, slots=True)
class When:
    """When a schedule fires: by cron, at an interval, or once."""

    cron: str | None = None
    every: timedelta | None = None
    at: datetime | None = None
    timezone: str = "UTC"
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    spread: timedelta = timedelta(0)


def define_schedule(
    name: str,
    target: Target,
    when: When,
    *,
    missed: Missed = "one",
    missed_window: timedelta | None = None,
    overlap: Overlap = "allow",
    actor: str | None = None,
    from_code: bool = False,
) -> Call[None]:
    """Create or replace a schedule; `actor` is the person the login acts for, here and below."""
    what = {
        "target": target.name, "face": target.face, "input": target.input, "options": Jsonb(target.options),
        "tenant": target.tenant,
    }  # fmt: skip
    times = {
        "cron": when.cron, "every": when.every, "at": when.at, "timezone": when.timezone, "starts_at": when.starts_at,
        "ends_at": when.ends_at, "spread": when.spread,
    }  # fmt: skip
    policies = {"missed": missed, "missed_window": missed_window, "overlap": overlap}
    about = {"name": name, "actor": actor, "from_code": from_code}
    return Call("define_schedule", type(None), {**about, **what, **times, **policies})


def pause_schedule(
    name: str, *, reason: str | None = None, tenant: str = "default", actor: str | None = None
) -> Call[None]:
    """Keep a schedule from firing until it is resumed."""
    return Call("pause_schedule", type(None), {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def resume_schedule(
    name: str, *, reason: str | None = None, tenant: str = "default", actor: str | None = None
) -> Call[None]:
    """End the pause of a schedule."""
    return Call("resume_schedule", type(None), {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def run_schedule(
    name: str, *, reason: str | None = None, tenant: str = "default", actor: str | None = None
) -> Call[list[str]]:
    """Start now what a schedule starts, and return the ids."""
    return Call("run_schedule", list[str], {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def backfill_schedule(
    name: str,
    ticks: Sequence[datetime],
    *,
    reason: str | None = None,
    tenant: str = "default",
    actor: str | None = None,
) -> Call[BackfilledTick]:
    """Fire those of the past ticks that have not started anything."""
    arguments = {"name": name, "ticks": list(ticks), "reason": reason, "tenant": tenant, "actor": actor}
    return Call("backfill_schedule", BackfilledTick, arguments)


def forget_schedule(
    name: str, *, reason: str | None = None, tenant: str = "default", actor: str | None = None
) -> Call[bool]:
    """Remove a schedule; return false if there was none."""
    return Call("forget_schedule", bool, {"name": name, "reason": reason, "tenant": tenant, "actor": actor})


def fire_schedules(*, batch: int = 50) -> Call[FiredSchedules]:
    """Fire the ticks that are due."""
    return Call("fire_schedules", FiredSchedules, {"batch": batch})


def plan_schedules(plans: Sequence[dict[str, Any]]) -> Call[timedelta | None]:
    """Store the ticks that were computed for what `fire_schedules` returned; return after how long to fire again."""
    return Call("plan_schedules", timedelta, {"plans": Jsonb(list(plans))})
