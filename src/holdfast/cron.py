"""The ticks of a cron: cronsim finds the local times that match, and this module decides which instants they are.

A job at fixed hours and minutes fires once per local time: at the first of two equal ones in autumn, and at the end of
the gap in spring. A job with `*` in the minute or the hour fires whenever its local time comes: twice in a repeated
hour, and not at all in one that is left out. Both are Debian's rules, as cronsim has them. But cronsim is only given
local times without a zone: with one it returns past ticks inside a repeated hour, and loses some where clocks change by
half an hour.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

AHEAD = 20  # ticks that are planned at a time
MOST_MISSED = 1000  # ticks of the past that are listed one by one; those before them become one row
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MICROSECOND = timedelta(microseconds=1)


class NoTicks(ValueError):
    """The cron cannot be read, never fires, or names a zone that is not there; the message says which."""


def ticks(cron: str, timezone: str, after: datetime) -> Iterator[datetime]:
    """Yield the ticks after an instant, in order, up to the last one before the year 10000."""
    zone = _zone(timezone)
    fields = cron.split()
    if len(fields) != 5:
        raise NoTicks(f"a cron has five fields, got {len(fields)}: {cron!r}")
    try:
        CronSim(cron, after.replace(tzinfo=None))
    except CronSimError as error:
        hint = ": it never comes, or is out of range" if "day-of-month" in str(error) else ""
        raise NoTicks(f"{str(error)[:1].lower()}{str(error)[1:]} in {cron!r}{hint}") from None
    is_at_fixed_times = not fields[0].startswith("*") and not fields[1].startswith("*")
    return _in_range(_once_per_local_time(cron, zone, after) if is_at_fixed_times else _by_instant(cron, zone, after))


def every(every: timedelta, anchor: datetime, after: datetime) -> Iterator[datetime]:
    """Yield the ticks of an interval after an instant; `anchor` is one of its ticks."""
    at = anchor + ((after - anchor) // every + 1) * every
    while True:
        yield at
        at += every


def first_tick(cron: str, timezone: str, after: datetime) -> datetime:
    """Return the next tick; raise NoTicks if there is none."""
    for tick in ticks(cron, timezone, after):
        return tick
    raise NoTicks(f"{cron!r} never fires")


def words(cron: str) -> str:
    """Put a cron into words."""
    return CronSim(cron, EPOCH).explain()


def plan(wanted: dict[str, Any]) -> dict[str, Any]:
    """Compute what holdfast.plan_schedules takes for one schedule of holdfast.fire_schedules."""
    known = {key: wanted[key] for key in ("id", "version", "after")}
    try:
        return known | _plan(wanted)
    except NoTicks as reason:
        return {**known, "broken": str(reason)}
    except Exception as error:  # noqa: BLE001 - whatever is wrong with one schedule, the others go on
        return {**known, "broken": f"its ticks cannot be computed: {type(error).__name__}: {error}"}


def _plan(wanted: dict[str, Any]) -> dict[str, Any]:
    after, now = EPOCH + wanted["after"] * MICROSECOND, EPOCH + wanted["now"] * MICROSECOND
    passed: deque[int] = deque(maxlen=MOST_MISSED)
    count, first, last_dropped = 0, None, None
    upcoming: list[int] = []
    first_tick(wanted["cron"], wanted["timezone"], after)
    moments = ticks(wanted["cron"], wanted["timezone"], after)
    for tick in moments:
        if tick > now:
            upcoming = [_microseconds(tick), *map(_microseconds, islice(moments, AHEAD - 1))]
            break
        first = first if count else _microseconds(tick)
        if len(passed) == MOST_MISSED:
            last_dropped = passed[0]
        passed.append(_microseconds(tick))
        count += 1
    dropped = {} if last_dropped is None else {"dropped": [count - MOST_MISSED, first, last_dropped]}
    return {**dropped, "ticks": [*passed, *upcoming], "words": words(wanted["cron"])}


def _in_range(moments: Iterator[datetime]) -> Iterator[datetime]:
    with suppress(OverflowError):  # beyond the year 9999 there is no tick
        yield from moments


def _once_per_local_time(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    for local in CronSim(cron, after.astimezone(zone).replace(tzinfo=None)):
        instant = _first_instant(local, zone)
        if instant > after:  # else it lies before `after`, in the first of two equal hours
            yield instant
            after = instant  # two local times in a gap are one instant


def _first_instant(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the first instant of a local time, or the end of the gap that it lies in."""
    while True:
        instant = local.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None) == local:
            return instant
        local += MINUTE


def _by_instant(cron: str, zone: ZoneInfo, after: datetime) -> Iterator[datetime]:
    """Walk from one change of the zone's offset to the next: between them local time runs as instants do."""
    offset = _offset(zone, after)
    while True:
        changes_at = None
        for local in CronSim(cron, (after.astimezone(UTC) + offset).replace(tzinfo=None)):
            instant = (local - offset).replace(tzinfo=UTC)
            changes_at = _offset_change(zone, offset, after, instant)
            if changes_at is not None:
                break
            yield instant
            after = instant
        if changes_at is None:
            return
        after, offset = changes_at - MICROSECOND, _offset(zone, changes_at)  # a tick at the change itself counts


def _offset_change(zone: ZoneInfo, offset: timedelta, start: datetime, end: datetime) -> datetime | None:
    """Return the first second after `start`, up to `end`, with another offset."""
    same, other = start.astimezone(UTC), min(end, start + DAY).astimezone(UTC)
    while _offset(zone, other) == offset:
        if other >= end:
            return None
        same, other = other, min(end, other + DAY)
    same = same.replace(microsecond=0)
    while other - same > SECOND:
        middle = same + (other - same) // 2
        middle = middle.replace(microsecond=0)
        same, other = (middle, other) if _offset(zone, middle) == offset else (same, middle)
    return other


def _offset(zone: ZoneInfo, at: datetime) -> timedelta:
    return at.astimezone(zone).utcoffset() or timedelta(0)


def _zone(timezone: str) -> ZoneInfo:
    try:
        return ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):
        raise NoTicks(f"there is no time zone {timezone!r}") from None


def _microseconds(at: datetime) -> int:
    return (at - EPOCH) // MICROSECOND
