"""Ticks that came late: fired or recorded as the schedule says, and made up for by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast.errors import BadInput
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, started, ticks

pytestmark = pytest.mark.one_server
DB = Connection[Any]


@pytest.mark.parametrize("rule", [{"cron": "* * * * *"}, {"every": timedelta(minutes=1)}], ids=["cron", "every"])
@pytest.mark.parametrize(
    ("missed", "window", "fired"),
    [("skip", None, 0), ("one", None, 0), ("all", None, 9), ("all", timedelta(minutes=4), 3)],
)
def test_after_an_outage_of_ten_minutes_the_policy_is_obeyed_and_the_rest_recorded(
    db: DB, clock: Clock, rule: dict[str, Any], missed: Any, window: timedelta | None, fired: int
) -> None:
    """R30: the ticks that nobody fired in time; those after it come as ever."""
    clock.set(at("03-01 00:00"))
    define(db, missed=missed, missed_window=window, **rule)
    fire(db)
    clock.set(at("03-01 00:10:59"))  # the tick of 00:10 is on time: an outage that ends before it is a minute late

    fire(db)
    clock.set(at("03-01 00:12:00"))
    fire(db)

    became = dict(ticks(db))
    assert [became.pop(at(f"03-01 00:{minute}")) for minute in (10, 12)] == ["started", "started"]
    assert became.pop(at("03-01 00:11")) == ("started" if missed == "all" else "missed")
    assert len(became) == 9
    assert list(became.values()) == ["missed"] * (9 - fired) + ["started"] * fired


@pytest.mark.parametrize("rule", [{"cron": "* * * * *"}, {"every": timedelta(minutes=1)}], ids=["cron", "every"])
def test_ticks_after_the_end_of_a_schedule_are_not_missed(db: DB, clock: Clock, rule: dict[str, Any]) -> None:
    """It ended during an outage of two days: the newest of its ticks is the one at its end."""
    clock.set(at("03-01 00:00"))
    define(db, missed="one", ends_at=at("03-02 00:00"), **rule)
    fire(db)
    clock.set(at("03-03 00:00"))

    fire(db)

    assert [tick for tick, outcome in ticks(db) if outcome == "started"] == [at("03-02 00:00")]
    assert db.execute("select sum(ticks), max(coalesce(until_at, at)) from holdfast.ticks").fetchone() == (
        1440, at("03-02 00:00")
    )  # fmt: skip
    assert listed(db)["state"] == "ended"


def test_a_tick_is_on_time_for_a_minute_and_missed_after_it(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    for name in ("on_time", "late"):
        define(db, name, cron="0 1 * * *", missed="skip")
    fire(db)
    clock.set(at("03-01 01:01"))
    db.execute("update holdfast.schedules set wake_at = 'infinity' where name = 'late'")
    fire(db)
    db.execute("update holdfast.schedules set wake_at = next_at where name = 'late'")
    clock.set(at("03-01 01:01:00.001"))
    fire(db)

    assert ticks(db, "on_time") == [(at("03-01 01:00"), "started")]
    assert ticks(db, "late") == [(at("03-01 01:00"), "missed")]


@pytest.mark.parametrize("rule", [{"cron": "0 * * * *"}, {"every": timedelta(hours=1)}], ids=["cron", "every"])
@pytest.mark.parametrize(
    ("missed", "window", "newest"),
    [("one", None, "started"), ("one", timedelta(minutes=40), "started"), ("one", timedelta(minutes=20), "missed"),
     ("skip", None, "missed")],
)  # fmt: skip
def test_of_the_ticks_that_all_came_late_one_fires_the_newest_within_its_window(
    db: DB, clock: Clock, rule: dict[str, Any], missed: Any, window: timedelta | None, newest: str
) -> None:
    """R30: nobody ran from before the first of them until half an hour after the last."""
    clock.set(at("03-01 00:00"))
    define(db, missed=missed, missed_window=window, **rule)
    fire(db)
    clock.set(at("03-01 03:30"))
    fire(db)
    fire(db)

    assert [outcome for _, outcome in ticks(db)] == ["missed", "missed", newest]
    assert len(started(db)) == (newest == "started")
    assert run(db, calls.violations()) == []


def test_all_catches_up_with_the_newest_hundred(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="* * * * *", missed="all")
    fire(db)
    clock.set(at("03-01 05:00:30"))
    fire(db)

    became = ticks(db)
    assert [outcome for _, outcome in became] == ["missed"] * 199 + ["started"] * 101  # the newest of all is on time
    assert became[-1][0] == at("03-01 05:00")


@pytest.mark.parametrize("rule", [{"cron": "* * * * *"}, {"every": timedelta(minutes=1)}], ids=["cron", "every"])
def test_thousands_of_missed_ticks_become_one_row_beside_the_newest_thousand(
    db: DB, clock: Clock, rule: dict[str, Any]
) -> None:
    clock.set(at("03-01 00:00"))
    define(db, **rule)
    fire(db)
    clock.set(at("03-03 00:00"))
    fire(db)

    became = ticks(db)
    assert [outcome for _, outcome in became].count("started") == 1
    assert became[-1] == (at("03-03 00:00"), "started")
    rows = db.execute("select sum(ticks), max(ticks) from holdfast.ticks").fetchone()
    assert rows is not None
    assert rows[0] == 2 * 24 * 60  # each tick is in exactly one row
    (first, until) = db.execute("select at, until_at from holdfast.ticks where ticks > 1").fetchone() or (None, None)
    assert first is not None
    assert (until - first) / timedelta(minutes=1) + 1 == rows[1] > 1000
    assert run(db, calls.violations()) == []


def test_a_backfill_fires_what_did_not_start_and_nothing_twice(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", missed="skip")
    fire(db)
    clock.set(at("03-01 01:00"))
    fire(db)
    clock.set(at("03-01 03:30"))
    fire(db)
    assert [outcome for _, outcome in ticks(db)] == ["started", "missed", "missed"]
    past = [at("02-28 23:00"), *(at(f"03-01 0{hour}:00") for hour in (1, 2, 3))]

    fired = run(db, schedule_calls.backfill_schedule("report", past, actor="ann"))
    again = run(db, schedule_calls.backfill_schedule("report", past))

    assert [tick.at for tick in fired] == [past[0], *past[2:]]
    assert again == []
    assert [outcome for _, outcome in ticks(db)] == ["started"] * 4
    assert len(started(db)) == 4
    with pytest.raises(BadInput):
        run(db, schedule_calls.backfill_schedule("report", [at("03-01 04:00")]))
    assert run(db, calls.violations()) == []


def test_a_schedule_that_is_removed_and_made_again_does_not_fire_a_tick_twice(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:59:59"))
    define(db, cron="0 * * * *")
    fire(db)
    clock.set(at("03-01 01:00"))
    fire(db)

    assert run(db, schedule_calls.forget_schedule("report", reason="old")) == [True]
    assert run(db, schedule_calls.forget_schedule("report")) == [False]
    clock.set(at("03-01 00:59:59.5"))  # a clock that was set back
    define(db, cron="0 * * * *")
    fire(db)
    clock.set(at("03-01 01:00:01"))
    fire(db)

    assert ticks(db) == [(at("03-01 01:00"), "started")]
    assert len(started(db)) == 1
    events = [event for (event,) in db.execute("select event from holdfast.schedule_changes order by id")]
    assert events == ["defined", "forgotten", "defined"]
