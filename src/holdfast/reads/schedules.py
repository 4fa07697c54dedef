"""Schedules for people: when they fire, what became of their ticks, and who changed them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, takewhile
from typing import LiteralString

from holdfast import cron
from holdfast.kernel.query import Query

SHOWN_TICKS = 5


@dataclass(frozen=True, slots=True)
class ScheduleDetail:
    """A schedule with its next ticks and its last one."""

    name: str
    tenant: str
    face: str
    target: str
    state: str  # active, new, paused, ended or broken
    words: str
    next_at: datetime | None
    next_ticks: list[datetime]
    last_at: datetime | None
    last_fired_at: datetime | None
    last_outcome: str | None
    last_ids: list[str] | None
    last_error: str | None
    cron: str | None
    every: float | None  # seconds, as are missed_window, spread and shift
    at: datetime | None
    timezone: str
    starts_at: datetime | None
    ends_at: datetime | None
    missed: str
    missed_window: float | None
    overlap: str
    spread: float
    shift: float
    input: str
    options: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    broken: str | None
    ended_at: datetime | None
    defined_at: datetime
    after_at: datetime


@dataclass(frozen=True, slots=True)
class TickDetail:
    """What became of a tick."""

    tick_at: datetime
    due_at: datetime
    fired_at: datetime
    cause: str
    outcome: str
    ids: list[str]
    cancelled: list[str]
    error: str | None
    next: str | None
    ticks: int
    until_at: datetime | None
    actor: str


@dataclass(frozen=True, slots=True)
class ScheduleChange:
    """Who changed a schedule, and how."""

    at: datetime
    event: str
    actor: str
    reason: str | None
    payload: str  # the definition, or what was started, as JSON


SCHEDULES: LiteralString = """
select l.name, l.tenant, l.face, l.target, l.state, l.words, l.next_at, l.next_ticks, l.last_at, l.last_fired_at,
       l.last_outcome, l.last_ids, l.last_error, l.cron, extract(epoch from l.every)::float8 as every, l.at, l.timezone,
       l.starts_at, l.ends_at, l.missed, extract(epoch from l.missed_window)::float8 as missed_window, l.overlap,
       extract(epoch from l.spread)::float8 as spread, extract(epoch from l.shift)::float8 as shift,
       l.input::text, l.options::text, l.paused_at, l.paused_by, l.pause_reason, l.broken, l.ended_at, l.defined_at,
       s.after_at
  from holdfast.schedule_list l
  join holdfast.schedules s on s.tenant = l.tenant and s.name = l.name
 where (%(name)s::text is null or l.name = %(name)s) and (%(tenant)s::text is null or l.tenant = %(tenant)s)
 order by l.next_at nulls last, l.name, l.tenant
 limit %(most)s
"""
TICKS: LiteralString = """
select t.tick_at, t.due_at, t.fired_at, t.cause, t.outcome, t.ids, t.cancelled, t.error, t.next, t.ticks, t.until_at,
       t.actor
  from holdfast.schedule_ticks t
 where t.name = %(name)s and t.tenant = %(tenant)s
 order by t.tick_at desc
 limit %(most)s
"""
CHANGES: LiteralString = """
select c.at, c.event, c.actor, c.reason, c.payload::text
  from holdfast.schedule_changes c
 where c.name = %(name)s and c.tenant = %(tenant)s
   and coalesce(c.tenant = any ((select holdfast.allowed_tenants())::text[]), true)
 order by c.id desc limit %(most)s
"""
NAMES: LiteralString = "select distinct l.name from holdfast.schedule_list l order by 1"


def schedules(name: str | None = None, *, tenant: str | None = None, most: int = 200) -> Query[ScheduleDetail]:
    """Return the query for all schedules, or for those of a name; the one that fires next comes first."""
    return Query(SCHEDULES, ScheduleDetail, {"name": name, "tenant": tenant, "most": most})


def ticks(name: str, tenant: str, *, most: int = 20) -> Query[TickDetail]:
    """Return the query for the ticks of a schedule, the latest first."""
    return Query(TICKS, TickDetail, {"name": name, "tenant": tenant, "most": most})


def changes(name: str, tenant: str, *, most: int = 20) -> Query[ScheduleChange]:
    """Return the query for the changes of a schedule, the latest first."""
    return Query(CHANGES, ScheduleChange, {"name": name, "tenant": tenant, "most": most})


def names() -> Query[str]:
    """Return the query for the names of all schedules."""
    return Query(NAMES, str, {})


def next_ticks(schedule: ScheduleDetail) -> list[datetime]:
    """Return when the next five ticks are due; those of a new schedule are computed here."""
    if schedule.state != "new":
        return schedule.next_ticks
    shift = timedelta(seconds=schedule.shift)
    return [tick + shift for tick in islice(nominal_ticks(schedule, schedule.after_at), SHOWN_TICKS)]


def ticks_between(schedule: ScheduleDetail, start: datetime, end: datetime) -> Iterator[datetime]:
    """Return the nominal ticks from `start` on and before `end`, whether the schedule existed then or not."""
    after = start - timedelta(microseconds=1)
    return takewhile(lambda tick: tick < end, nominal_ticks(schedule, after))


def nominal_ticks(schedule: ScheduleDetail, after: datetime) -> Iterator[datetime]:
    """Return the nominal ticks after a time, up to the schedule's end; raise NoTicks if its cron has none."""
    if schedule.at is not None:
        moments = iter([schedule.at] if schedule.at > after else [])
    elif schedule.every is not None:
        moments = cron.every(timedelta(seconds=schedule.every), schedule.after_at, after)
    else:
        moments = cron.ticks(schedule.cron or "", schedule.timezone, after)
    return takewhile(lambda tick: schedule.ends_at is None or tick <= schedule.ends_at, moments)
