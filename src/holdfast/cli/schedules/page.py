"""A schedule for people: as table rows, as lines and as JSON; and times as people write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from holdfast.cli.render import data, say
from holdfast.cli.table import Column, data_table
from holdfast.cron import NoTicks
from holdfast.errors import BadInput
from holdfast.kernel.query import as_mapping
from holdfast.reads import schedules as reads
from holdfast.reads.schedules import ScheduleChange, ScheduleDetail, TickDetail

COLUMNS = (
    Column("schedule"),
    Column("tenant", "default", rank=6),
    Column("starts", rank=2, least=10),
    Column("when", rank=1, least=16),
    Column("state", "active", rank=1),
    Column("next", rank=1),
    Column("last", rank=3),
    Column("outcome", "started", rank=3),
    Column("reason", rank=4, least=12),
)
TICK_COLUMNS = (
    Column("tick"),
    Column("fired", rank=4),
    Column("outcome", rank=1),
    Column("started", rank=1, least=12),
    Column("cause", "clock", rank=3),
    Column("by", "scheduler", rank=5),
    Column("reason", rank=2, least=12),
)


def show_list(found: Sequence[ScheduleDetail], now: datetime, *, wide: bool) -> None:
    """Print schedules as a table."""
    rows = [
        (each.name, each.tenant, each.target, each.words, each.state, each.next_at, each.last_at, each.last_outcome,
         each.broken or each.pause_reason or each.last_error)
        for each in found
    ]  # fmt: skip
    data_table(COLUMNS, rows, now=now, wide=wide)


def show_schedule(schedule: ScheduleDetail) -> None:
    """Print a schedule, one line per property and per next tick."""
    for label, value in _described(schedule):
        data(f"{label + ':':<10}{value}")


def show_past(ticks: Sequence[TickDetail], changes: Sequence[ScheduleChange], now: datetime, *, wide: bool) -> None:
    """Print what became of ticks, and who changed the schedule."""
    rows = [
        (tick.tick_at, tick.fired_at, tick.outcome if tick.ticks == 1 else f"{tick.outcome}, {tick.ticks} ticks",
         ", ".join(tick.ids), tick.cause, tick.actor, tick.error)
        for tick in ticks
    ]  # fmt: skip
    data_table(TICK_COLUMNS, rows, now=now, wide=wide)
    for change in changes:
        reason = f": {change.reason}" if change.reason else ""
        say(f"{change.at:%Y-%m-%d %H:%M:%S} {change.event} by {change.actor}{reason}")


def mapping(schedule: ScheduleDetail) -> dict[str, Any]:
    """Return it for JSON output: its next ticks also if no worker has planned them yet, and no internals."""
    shown = as_mapping(schedule)
    del shown["after_at"]
    return {**shown, "options": json.loads(schedule.options), "next_ticks": _next(schedule)}


def _next(schedule: ScheduleDetail) -> list[datetime]:
    try:
        return reads.next_ticks(schedule)
    except NoTicks:
        return []


def _described(schedule: ScheduleDetail) -> list[tuple[str, str]]:
    zone = ZoneInfo(schedule.timezone)
    state = schedule.state + "".join(f": {why}" for why in (schedule.broken, schedule.pause_reason) if why)
    late = "" if schedule.missed_window is None else f" (at most {schedule.missed_window:g} s late)"
    return [
        ("schedule", f"{schedule.name} ({schedule.tenant})"),
        ("starts", f"{schedule.target} ({schedule.face}) with {schedule.input}"),
        ("when", schedule.words),
        ("state", state),
        ("missed", f"{schedule.missed}{late}"),
        ("overlap", schedule.overlap),
        *(("next", f"{tick.astimezone(zone):%Y-%m-%d %H:%M:%S %Z}") for tick in _next(schedule)),
    ]


def read_moment(option: str, given: str | None, timezone: str) -> datetime | None:
    """Read a time; without an offset it is local to the time zone."""
    if given is None:
        return None
    try:
        moment = datetime.fromisoformat(given)
        return moment if moment.tzinfo is not None else moment.replace(tzinfo=ZoneInfo(timezone))
    except (ValueError, LookupError, OSError):
        raise BadInput(
            f"--{option} must be a time, got {given!r} in {timezone}", where=f"--{option}", next="use 2027-03-01T02:00"
        ) from None
