"""Schedules that are defined again, planned again, or run by people."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import cron
from holdfast.errors import BadInput, HoldfastError
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, ticks

pytestmark = pytest.mark.one_server
DB = Connection[Any]
HOUR = timedelta(hours=1)


def test_the_same_definition_again_changes_nothing(db: DB, clock: Clock) -> None:
    """Each worker defines its schedules when it connects."""
    clock.set(at("03-01 00:00"))
    define(db, cron="0  * * * *", timezone="Europe/Berlin")
    fire(db)
    before = db.execute("select s, s.xmin from holdfast.schedules s").fetchall()
    clock.advance(60)

    define(db, cron="0 * * * *", timezone="Europe/Berlin")

    assert db.execute("select s, s.xmin from holdfast.schedules s").fetchall() == before
    assert db.execute("select event from holdfast.schedule_changes").fetchall() == [("defined",)]


def test_another_input_keeps_the_ticks_and_an_operators_pause(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR)
    run(db, schedule_calls.pause_schedule("report", reason="sale", actor="ann"))
    clock.set(at("03-01 00:20"))
    define(db, every=HOUR, input="[2]")

    row = listed(db)
    assert (row["state"], row["paused_by"], row["pause_reason"], row["input"]) == ("paused", "ann", "sale", [2])
    clock.set(at("03-01 03:30"))
    assert fire(db) is None
    run(db, schedule_calls.resume_schedule("report", actor="ann"))
    assert fire(db) == timedelta(minutes=30)
    assert (listed(db)["next_at"], ticks(db)) == (at("03-01 04:00"), [])
    assert run(db, calls.violations()) == []


def test_a_time_that_came_during_a_pause_is_recorded_and_not_fired(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, at=at("03-01 01:00"))
    run(db, schedule_calls.pause_schedule("report", reason="sale"))
    clock.set(at("03-01 02:00"))
    fire(db)
    assert ticks(db) == []
    run(db, schedule_calls.resume_schedule("report"))
    fire(db)

    assert ticks(db) == [(at("03-01 01:00"), "missed")]
    assert listed(db)["state"] == "ended"
    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)
    assert run(db, calls.violations()) == []


def test_a_changed_rule_begins_anew_and_a_changed_spread_does_not_lose_the_tick_in_between(
    db: DB, clock: Clock
) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", spread=timedelta(hours=1))
    fire(db)
    clock.set(at("03-01 01:00:00"))
    define(db, cron="0 * * * *")
    fire(db)
    assert ticks(db) == [(at("03-01 01:00"), "started")]
    clock.set(at("03-01 01:10"))
    define(db, cron="5 * * * *")
    fire(db)

    assert listed(db)["next_at"] == at("03-01 02:05")
    assert len(ticks(db)) == 1


def test_people_run_it_now_and_its_own_ticks_come_as_planned(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", overlap="skip")
    fire(db)
    run(db, schedule_calls.pause_schedule("report"))
    ((step_id,),) = run(db, schedule_calls.run_schedule("report", actor="ann", reason="they asked"))

    shown = db.execute("select cause, outcome, ids, actor from holdfast.schedule_ticks").fetchall()
    assert shown == [("run", "started", [step_id], "ann")]
    entry = db.execute("select actor_kind, actor, reason, login is not null from holdfast.journal").fetchall()
    assert entry == [("user", "ann", "they asked", True)]
    define(db, "odd", cron="0 * * * *", options={"colour": 1})
    with pytest.raises(HoldfastError, match="colour"):
        run(db, schedule_calls.run_schedule("odd"))


def test_a_cron_that_cannot_be_planned_is_marked_with_its_reason(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 0 30 2 *")
    assert listed(db)["state"] == "new"
    assert fire(db) is None

    assert listed(db)["state"] == "broken"
    assert "day-of-month" in listed(db)["broken"]
    assert run(db, calls.violations()) == []
    define(db, cron="0 0 28 2 *")
    fire(db)
    assert (listed(db)["state"], listed(db)["next_at"]) == ("active", at("02-28 00:00").replace(year=2028))


def test_a_plan_for_another_definition_or_that_came_second_changes_nothing(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *")
    (fired,) = run(db, schedule_calls.fire_schedules())
    plan = cron.plan(fired.plans[0])
    define(db, cron="0 5 * * *")
    run(db, schedule_calls.plan_schedules([plan]))
    assert listed(db)["state"] == "new"
    fire(db)

    before = listed(db)
    run(db, schedule_calls.plan_schedules([plan, {**plan, "version": 2}]))
    assert listed(db) == before
    query = "select id, version, holdfast.microseconds(upcoming[20]) from holdfast.schedules"
    ((number, version, last),) = db.execute(query).fetchall()
    backwards = {"id": number, "version": version, "after": last, "ticks": [last - 1], "words": "?"}
    with pytest.raises(BadInput):
        run(db, schedule_calls.plan_schedules([backwards]))
