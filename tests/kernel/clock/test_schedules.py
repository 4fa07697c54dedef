"""Schedules: which ticks they have, and what each of them starts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast.flow import calls as flow
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, ticks

pytestmark = pytest.mark.one_server
DB = Connection[Any]
HOUR = timedelta(hours=1)
SOON = timedelta(milliseconds=500)  # until a worker looks again for a tick that is due


def test_a_cron_starts_its_task_at_each_tick_and_once(db: DB, clock: Clock) -> None:
    """X-09: the tick is a row, with what it started, and the actor is the scheduler."""
    clock.set(at("03-01 00:10"))
    define(db, cron="0 * * * *", input='{"region": "eu"}', options={"queue": "mail", "priority": 3})

    assert listed(db)["state"] == "new"
    assert fire(db) == timedelta(minutes=50)
    clock.set(at("03-01 01:00"))
    fire(db)
    fire(db)
    clock.set(at("03-01 02:00:00.5"))
    fire(db)

    assert ticks(db) == [(at("03-01 01:00"), "started"), (at("03-01 02:00"), "started")]
    rows = db.execute("select id::text, kind, queue, priority, input from holdfast.steps order by id").fetchall()
    assert [row[1:] for row in rows] == [("report", "mail", 3, {"region": "eu"})] * 2
    assert db.execute("select ids from holdfast.ticks order by at").fetchall() == [([row[0]],) for row in rows]
    entries = db.execute("select event, actor_kind, actor, reason from holdfast.journal order by id").fetchall()
    assert entries == [
        ("created", "scheduler", "scheduler", f"schedule report, tick 2027-03-01T0{hour}:00:00Z") for hour in (1, 2)
    ]
    assert run(db, calls.violations()) == []


def test_an_interval_is_counted_from_the_last_tick_and_not_from_now(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00:00.7"))
    define(db, every=timedelta(seconds=90))

    for late in ("00:01:30.4", "00:03:02", "00:04:30.9"):
        clock.set(at(f"03-01 {late}"))
        fire(db)

    assert ticks(db) == [(at(f"03-01 00:{when}"), "started") for when in ("01:30", "03:00", "04:30")]
    assert listed(db)["next_ticks"][:2] == [at("03-01 00:06:00"), at("03-01 00:07:30")]
    assert listed(db)["words"] == "every 1 minute 30 seconds"


def test_an_interval_with_a_start_begins_there(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, "later", every=HOUR, starts_at=at("03-01 05:30"))
    define(db, "before", every=HOUR, starts_at=at("02-01 05:30"))
    define(db, "cron", cron="30 * * * *", starts_at=at("03-01 05:30"))
    fire(db)

    assert [listed(db, name)["next_at"] for name in ("later", "before", "cron")] == [
        at("03-01 05:30"), at("03-01 00:30"), at("03-01 05:30")
    ]  # fmt: skip


def test_a_schedule_at_a_time_fires_once_and_has_ended(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, at=at("03-01 01:00"))

    assert (listed(db)["state"], listed(db)["words"]) == ("active", "once at 2027-03-01 01:00:00, UTC")
    assert fire(db) == HOUR
    clock.set(at("03-01 01:00:00.1"))
    assert fire(db) is None

    assert ticks(db) == [(at("03-01 01:00"), "started")]
    assert (listed(db)["state"], listed(db)["next_at"]) == ("ended", None)
    assert run(db, calls.violations()) == []


@pytest.mark.parametrize("rule", [{"cron": "0 * * * *"}, {"every": HOUR}], ids=["cron", "every"])
def test_no_tick_comes_after_the_end(db: DB, clock: Clock, rule: dict[str, Any]) -> None:
    clock.set(at("03-01 00:00"))
    define(db, ends_at=at("03-01 02:00"), **rule)
    fire(db)

    assert listed(db)["next_ticks"] == [at("03-01 01:00"), at("03-01 02:00")]
    for hour in (1, 2, 3):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)
    assert ticks(db) == [(at("03-01 01:00"), "started"), (at("03-01 02:00"), "started")]
    assert listed(db)["state"] == "ended"
    clock.set(at("03-01 09:10"))
    define(db, ends_at=at("03-01 11:00"), **rule)  # the hours since the end are not missed
    fire(db)
    assert listed(db)["next_ticks"] == [at("03-01 10:00"), at("03-01 11:00")]
    assert len(ticks(db)) == 2


def test_a_tick_that_its_face_refuses_is_recorded_and_the_schedules_go_on(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, "bad", face="flow", target="nobody", cron="0 * * * *")
    define(db, "worse", options={"colour": "red"}, cron="0 * * * *")
    define(db, "good", cron="0 * * * *")
    fire(db)
    for hour in (1, 2):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)
        run(db, flow.define_flow("nobody", [{"kind": "a", "name": "a"}], namespace="default", version="1"))

    assert [outcome for _, outcome in ticks(db, "bad")] == ["failed", "started"]
    assert [outcome for _, outcome in ticks(db, "worse")] == ["failed"] * 2
    assert [outcome for _, outcome in ticks(db, "good")] == ["started"] * 2
    shown = db.execute("select error, next from holdfast.schedule_ticks where error is not null order by name, tick_at")
    (missing, _), (odd, hint), _again = shown.fetchall()
    assert "nobody" in missing
    assert ("colour" in odd, "queue" in hint) == (True, True)
    assert "colour" in listed(db, "worse")["last_error"]


def test_spread_shifts_a_schedule_by_a_fixed_time_of_its_own(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    for number in range(40):
        define(db, f"s{number}", cron="0 * * * *", spread=timedelta(seconds=60))
    fire(db)

    shifts = {name: listed(db, name)["next_at"] - at("03-01 01:00") for name in (f"s{n}" for n in range(40))}
    assert all(timedelta(0) <= shift < timedelta(seconds=60) for shift in shifts.values())
    assert len(set(shifts.values())) > 30
    assert max(shifts.values()) > timedelta(seconds=30)
    clock.set(at("03-01 01:00") + shifts["s1"] - timedelta(milliseconds=1))
    fire(db)
    assert ticks(db, "s1") == []
    clock.advance(0.001)
    fire(db)
    assert ticks(db, "s1") == [(at("03-01 01:00"), "started")]
    assert listed(db, "s1")["next_at"] == at("03-01 02:00") + shifts["s1"]


def test_a_sleeping_worker_is_told_when_the_next_tick_comes(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    run(db, calls.enlist_worker("w", ["default"]))
    assert run(db, calls.mark_asleep("w")) == [None]
    db.execute("listen holdfast")
    define(db, cron="0 * * * *")
    heard = [(hint.channel, hint.payload) for hint in db.notifies(timeout=5, stop_after=1)]

    assert heard == [("holdfast", "")]
    assert run(db, calls.mark_asleep("w")) == [SOON]
    fire(db)
    assert run(db, calls.mark_asleep("w")) == [HOUR]
    clock.set(at("03-01 02:00"))
    assert run(db, calls.mark_asleep("w")) == [SOON]  # not 0: a worker that cannot fire it would spin
    run(db, schedule_calls.pause_schedule("report"))
    assert run(db, calls.mark_asleep("w")) == [None]
