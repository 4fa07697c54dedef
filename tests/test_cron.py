"""Ticks of crons against an oracle that looks at every minute of three years, in four time zones."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import cron

BEGIN, END = datetime(2026, 1, 1, tzinfo=UTC), datetime(2029, 1, 1, tzinfo=UTC)  # with a 29th of February
MINUTES = (END - BEGIN) // timedelta(minutes=1)
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")  # Lord Howe shifts by half an hour
CRONS = (
    "30 2 * * *",  # in the gap, and in the hour that comes twice
    "30 1 * * *",
    "*/7 1-3 * * *",
    "0 * * * *",
    "0,45 2,3 * 3,4,10,11 *",
    "15 0 1,15 * 1",  # on the days of the month or on Mondays
    "0 12 29 2 *",
)
Fields = tuple[frozenset[int], ...]


@cache
def local_minutes(zone: str) -> list[int]:
    """Give the local time of each minute, as minutes since 1970 by the clock on the wall."""
    tz, epoch = ZoneInfo(zone), datetime(1970, 1, 1)  # noqa: DTZ001
    found = []
    for quarter in range(0, MINUTES, 15):  # offsets change at whole quarters of an hour
        local = (BEGIN + timedelta(minutes=quarter)).astimezone(tz).replace(tzinfo=None)
        first = (local - epoch) // timedelta(minutes=1)
        found += range(first, first + 15)
    return found


@cache
def parsed(expression: str) -> Fields:
    """Read the few forms of fields that the expressions above have."""
    ranges = ((0, 60), (0, 24), (1, 32), (1, 13), (0, 7))
    return tuple(_values(field, *bounds) for field, bounds in zip(expression.split(), ranges, strict=True))


def _values(field: str, least: int, end: int) -> frozenset[int]:
    found: set[int] = set()
    for part in field.split(","):
        span, _, step = part.partition("/")
        first, _, last = span.partition("-")
        numbers = range(least, end) if span == "*" else range(int(first), int(last or first) + 1)
        found.update(numbers[:: int(step or 1)])
    return frozenset(found)


def is_day(expression: str, day: date) -> bool:
    _, _, days, months, weekdays = parsed(expression)
    fields = expression.split()
    of_month, of_week = day.day in days, day.isoweekday() % 7 in weekdays
    is_both = fields[2].startswith("*") or fields[4].startswith("*")
    return day.month in months and ((of_month and of_week) if is_both else (of_month or of_week))


def brute_force(expression: str, zone: str) -> list[datetime]:
    """Look at every minute.

    One with `*` fires at each minute whose local time fits. One at fixed times fires at the first of two equal local
    times, and for a time that is left out at the first minute after the gap.
    """
    minutes, hours, *_ = parsed(expression)
    local = local_minutes(zone)
    times = frozenset(hour * 60 + minute for hour in hours for minute in minutes)
    days = {day for day in {m // 1440 for m in local} if is_day(expression, date(1970, 1, 1) + timedelta(days=day))}
    fitting = [n for n, m in enumerate(local) if m % 1440 in times and m // 1440 in days]
    if "*" not in "".join(field[0] for field in expression.split()[:2]):
        gaps = [n for n in range(1, len(local)) if local[n] > local[n - 1] + 1]
        left_out = {n: range(local[n - 1] + 1, local[n]) for n in gaps}
        fitting += [n for n, gap in left_out.items() if any(m % 1440 in times and m // 1440 in days for m in gap)]
        twice = {n for n in fitting if local[n] in set(local[max(0, n - 180) : n])}  # the clock was set back
        fitting = sorted(set(fitting) - twice)
    return [BEGIN + timedelta(minutes=n) for n in fitting]


def computed(expression: str, zone: str, after: datetime) -> Iterator[datetime]:
    return takewhile(lambda tick: tick < END, cron.ticks(expression, zone, after))


@pytest.mark.parametrize("zone", ZONES)
def test_every_minute_of_three_years_fires_as_the_oracle_says(zone: str) -> None:
    """X-09, R30: each tick once, in spring, in autumn and on the 29th of February."""
    for expression in CRONS:
        expected = brute_force(expression, zone)
        assert expected, expression
        assert list(computed(expression, zone, BEGIN - timedelta(minutes=1))) == expected, (expression, zone)


@given(
    expression=st.sampled_from(CRONS),
    zone=st.sampled_from(ZONES),
    near=st.sampled_from([datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC),
                          datetime(2026, 11, 1, 6, tzinfo=UTC), datetime(2026, 4, 4, 15, tzinfo=UTC),
                          datetime(2026, 10, 3, 15, tzinfo=UTC)]),
    seconds=st.integers(-10_000, 10_000),
)  # fmt: skip
def test_from_any_moment_the_ticks_after_it_are_those_of_the_whole(
    expression: str, zone: str, near: datetime, seconds: int
) -> None:
    """The trap: asked inside the repeated hour, cronsim alone returns a past tick."""
    after = near + timedelta(seconds=seconds, microseconds=seconds)
    start = near - timedelta(days=2)

    whole = takewhile(lambda tick: tick < near + timedelta(days=3), cron.ticks(expression, zone, start))
    expected = [tick for tick in whole if tick > after]

    assert list(islice(cron.ticks(expression, zone, after), len(expected))) == expected


def test_a_plan_goes_on_where_the_last_one_ended_and_counts_what_it_leaves_out() -> None:
    day = timedelta(days=1) // cron.MICROSECOND
    wanted = {"id": 1, "version": 2, "after": 0, "now": day, "cron": "* * * * *", "timezone": "UTC"}

    plan = cron.plan(wanted)

    count, first, last = plan["dropped"]
    minute = 60_000_000
    assert (count, first, last) == (440, minute, 440 * minute)
    assert plan["ticks"] == [n * minute for n in range(441, 1440 + cron.AHEAD + 1)]
    assert (plan["id"], plan["version"], plan["after"]) == (1, 2, 0)
    later = cron.plan({**wanted, "after": plan["ticks"][-1]})
    assert later["ticks"][0] == plan["ticks"][-1] + minute


@pytest.mark.parametrize(
    ("expression", "after"),
    [("0 0 29 2 *", datetime(9940, 1, 1, tzinfo=UTC)), ("0 0 1 1 *", datetime(9991, 1, 1, tzinfo=UTC)),
     ("* * * * *", datetime(9999, 12, 31, 23, 50, tzinfo=UTC))],
)  # fmt: skip
@pytest.mark.parametrize("zone", ["UTC", "Pacific/Kiritimati"])
def test_ticks_end_with_the_calendar(expression: str, after: datetime, zone: str) -> None:
    moments = list(cron.ticks(expression, zone, after))
    assert len(moments) < cron.AHEAD
    assert all(tick.year < 10_000 for tick in moments)

    wanted = {"id": 1, "version": 2, "now": 0, "cron": expression, "timezone": zone}
    plan = cron.plan({**wanted, "after": (after - cron.EPOCH) // cron.MICROSECOND})
    assert len(plan.get("ticks", [])) == len(moments)
    assert ("broken" in plan) == (not moments)


def test_a_schedule_whose_plan_fails_is_broken_and_says_why() -> None:
    wanted = {"id": 1, "version": 2, "after": 10**18, "now": 0, "cron": "0 0 1 1 *", "timezone": "UTC"}

    plan = cron.plan(wanted)

    assert (plan["id"], plan["version"], plan["after"]) == (1, 2, 10**18)
    assert "OverflowError" in plan["broken"]


@pytest.mark.parametrize(
    ("expression", "zone"),
    [("0 0 30 2 *", "UTC"), ("* * * * * *", "UTC"), ("* * * *", "UTC"), ("x * * * *", "UTC"), ("* * * * *", "Mars"),
     ("", "UTC"), ("* * * * *", "../etc/passwd"), ("* * * * *", "")],
)  # fmt: skip
def test_a_cron_without_ticks_says_why(expression: str, zone: str) -> None:
    with pytest.raises(cron.NoTicks) as refused:
        cron.first_tick(expression, zone, BEGIN)

    assert str(refused.value)
    assert cron.plan({"id": 1, "version": 1, "after": 0, "now": 0, "cron": expression, "timezone": zone})["broken"]


def test_an_interval_keeps_to_its_anchor() -> None:
    found = cron.every(timedelta(minutes=90), BEGIN + timedelta(minutes=7), BEGIN + timedelta(hours=5))

    assert next(found) == BEGIN + timedelta(minutes=7 + 4 * 90)
