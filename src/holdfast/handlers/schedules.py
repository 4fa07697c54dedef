"""Checks the schedules of an app where they are defined."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, get_args

from holdfast import cron as crons
from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, HoldfastError
from holdfast.kernel import schedule_calls
from holdfast.kernel.call import Call, check_tenant, problem
from holdfast.kernel.schedule_calls import Missed, Overlap, Schedulable, When

LEAST = timedelta(seconds=1)
LONGEST = timedelta(days=366)
MOST_SPREAD = timedelta(days=1)
FIRST_YEAR, LAST_YEAR = 1900, 8999  # as in SQL: ticks are planned some centuries ahead, and a calendar ends with 9999


class Times(TypedDict, total=False):
    """When a schedule fires: by cron, at an interval, or once."""

    cron: str
    every: Duration
    at: datetime
    timezone: str
    starts_at: datetime
    ends_at: datetime
    spread: Duration


def schedule_definition(
    name: str,
    target: Schedulable,
    given: Any,
    *,
    missed: Missed,
    missed_window: Duration | None,
    overlap: Overlap,
    tenant: str | None,
    from_code: bool = True,
    **times: Any,
) -> Call[None]:
    """Check a schedule here, before the database rejects it each time a worker connects, and return its call."""
    if reason := problem("the name of a schedule", name):
        raise BadDefinition(reason, where="name", next="use a name such as report")
    if not callable(getattr(target, "scheduled", None)):
        raise BadDefinition(
            f"schedule {name} must start a task or a flow, got {target!r}",
            where="target",
            next="pass what @hf.task or hf.flow returned, not a name or a plain function",
        )
    for what, value, known in (("missed", missed, get_args(Missed)), ("overlap", overlap, get_args(Overlap))):
        if value not in known:
            raise BadDefinition(
                f"{what} must be one of {', '.join(known)}, got {value!r}", where=what, next=f"use {known[0]!r}"
            )
    wanted = target.scheduled(given)
    if tenant is not None:
        check_tenant(tenant)
        wanted = replace(wanted, tenant=tenant)
    window = None if missed_window is None else duration(missed_window, "missed_window", error=BadDefinition)
    return schedule_calls.define_schedule(
        name,
        wanted,
        read_when(**times),
        missed=missed,
        missed_window=window,
        overlap=overlap,
        from_code=from_code,
    )


def read_when(
    *,
    cron: str | None = None,
    every: Duration | None = None,
    at: datetime | None = None,
    timezone: str = "UTC",
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    spread: Duration = 0,
    error: type[HoldfastError] = BadDefinition,
) -> When:
    """Check when a schedule fires."""
    rules = {"cron": cron, "every": every, "at": at}
    if (count := sum(rule is not None for rule in rules.values())) != 1:
        raise error(
            f"a schedule needs one of cron, every and at, got {count}", where="cron", next='use cron="0 2 * * *"'
        )
    moments: dict[str, Any] = {"at": at, "starts_at": starts_at, "ends_at": ends_at}
    for what, moment in moments.items():
        if moment is not None and not (isinstance(moment, datetime) and moment.utcoffset() is not None):
            raise error(
                f"{what} must be a datetime with a time zone, got {moment!r}", where=what, next="add tzinfo=UTC"
            )
        if moment is not None and not FIRST_YEAR <= moment.year <= LAST_YEAR:
            raise error(
                f"{what} must be in the years {FIRST_YEAR} to {LAST_YEAR}, got {moment}",
                where=what,
                next="leave ends_at out for a schedule without an end",
            )
    span = None if every is None else duration(every, "every", error=error)
    if span is not None and not LEAST <= span <= LONGEST:
        raise error(
            f"every must be a second to {LONGEST.days} days, got {span}",
            where="every",
            next='use every="1m", or a cron',
        )
    shift = duration(spread, "spread", error=error)
    if shift > MOST_SPREAD:
        raise error(f"spread must be at most a day, got {shift}", where="spread", next="use spread=60")
    _check_cron(cron, timezone, error)
    return When(cron, span, at, timezone, starts_at, ends_at, shift)


def _check_cron(cron: str | None, timezone: Any, error: type[HoldfastError]) -> None:
    """Raise for a cron that has no tick, and for a zone that is not there."""
    try:
        crons.first_tick("0 0 * * *", str(timezone), datetime.now(UTC))
    except crons.NoTicks as reason:
        raise error(str(reason), where="timezone", next="use a name such as Europe/Berlin") from None
    try:
        if cron is not None:
            crons.first_tick(cron, timezone, datetime.now(UTC))
    except (crons.NoTicks, AttributeError) as reason:
        raise error(
            f"{reason}" if isinstance(reason, crons.NoTicks) else f"a cron is text, got {cron!r}",
            where="cron",
            next="minute, hour, day of month, month, day of week: 0 2 * * *; for seconds use every",
        ) from None
