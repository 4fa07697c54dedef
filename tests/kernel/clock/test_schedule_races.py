"""What happens to schedules at the same moment: ticks that many workers fire, and changes beside them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest

from holdfast import cron
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, ticks
from kernel.steps import DB, at_once, value

pytestmark = pytest.mark.one_server
HOUR = timedelta(hours=1)
ROUNDS = 8


def look(connection: DB) -> int:
    """Fire once, as a worker does, and plan what it is asked for."""
    (fired,) = run(connection, schedule_calls.fire_schedules())
    if fired.plans:
        run(connection, schedule_calls.plan_schedules([cron.plan(wanted) for wanted in fired.plans]))
    return fired.looked_at


def test_a_tick_that_five_sessions_fire_at_once_is_fired_once(dsn: str, db: DB, clock: Clock) -> None:
    """X-09, R30: a barrier lets them go together, tick after tick."""
    clock.set(at("03-01 00:00"))
    define(db, "cron", cron="0 * * * *")
    define(db, "interval", every=HOUR)
    fire(db)

    for hour in range(1, ROUNDS + 1):
        clock.set(at("03-01 00:00") + hour * HOUR)
        at_once(dsn, *[look] * 5)
    fire(db)

    for name in ("cron", "interval"):
        expected = [(at("03-01 00:00") + hour * HOUR, "started") for hour in range(1, ROUNDS + 1)]
        assert ticks(db, name) == expected
    assert value(db, "select count(*) from holdfast.steps") == 2 * ROUNDS
    assert run(db, calls.violations()) == []


def test_a_tick_and_what_it_starts_are_one_transaction(dsn: str, db: DB, clock: Clock) -> None:
    """Until it commits nobody sees either, and one that is rolled back has fired nothing."""
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR, overlap="cancel")
    fire(db)
    clock.set(at("03-01 01:00"))
    fired = "select (select count(*) from holdfast.ticks), (select count(*) from holdfast.steps)"
    with psycopg.connect(dsn, autocommit=True) as other:
        with db.transaction(force_rollback=True):
            assert look(db) == 1
            assert db.execute(fired).fetchone() == (1, 1)
            assert other.execute(fired).fetchone() == (0, 0)
            assert look(other) == 0, "the schedule is locked"
        assert other.execute(fired).fetchone() == (0, 0)

        assert look(other) == 1
    assert (ticks(db), value(db, "select count(*) from holdfast.steps")) == ([(at("03-01 01:00"), "started")], 1)
    assert run(db, calls.violations()) == []


def test_a_tick_that_waits_for_a_lock_holds_up_neither_the_call_nor_other_schedules(
    dsn: str, db: DB, clock: Clock
) -> None:
    """Somebody has cancelled what the tick before it started, and does not commit."""
    clock.set(at("03-01 00:00"))
    for name, overlap in (("a", "cancel"), ("b", "allow")):
        define(db, name, every=HOUR, overlap=overlap)
    for hour in (1, 2):
        clock.set(at(f"03-01 0{hour}:00"))
        if hour == 1:
            fire(db)
    step = value(db, "select ids[1] from holdfast.ticks where name = 'a'")
    patient = psycopg.connect(dsn, autocommit=True, options="-c statement_timeout=20s")
    with psycopg.connect(dsn) as person, patient as worker:
        person.execute("select holdfast.cancel(%s)", [step])

        (fired,) = run(worker, schedule_calls.fire_schedules())

        assert (fired.looked_at, fired.waits) == (2, timedelta(seconds=2))
        assert (len(ticks(db, "a")), len(ticks(db, "b"))) == (1, 2)
        assert run(db, calls.violations()) == []
        person.commit()
    clock.advance(timedelta(seconds=2))
    fire(db)

    assert ticks(db, "a") == [(at(f"03-01 0{hour}:00"), "started") for hour in (1, 2)]
    assert run(db, calls.violations()) == []


def test_a_tick_beside_a_change_is_fired_once_or_not_at_all(dsn: str, db: DB, clock: Clock) -> None:
    """A definition, a pause and a removal wait for the tick that is being fired, or come before it."""
    changes: list[Any] = [
        lambda other: define(other, every=HOUR, input="[1]"),
        lambda other: run(other, schedule_calls.pause_schedule("report")),
        lambda other: run(other, schedule_calls.forget_schedule("report")),
        lambda other: run(other, schedule_calls.run_schedule("report")) if listed(db)["state"] == "active" else None,
    ]
    for number, change in enumerate(changes * 3):
        run(db, schedule_calls.forget_schedule("report"))
        clock.set(at("03-01 00:00") + number * timedelta(days=1))
        define(db, every=HOUR)
        fire(db)
        clock.advance(HOUR)
        at_once(dsn, look, change, look)

    fired = value(db, "select count(*) from holdfast.ticks where outcome = 'started'")
    assert fired == value(db, "select count(*) from holdfast.steps")
    assert run(db, calls.violations()) == []


def test_workers_that_start_together_define_a_schedule_once(dsn: str, db: DB) -> None:
    at_once(dsn, *[lambda other: define(other, cron="0 2 * * *", timezone="Europe/Berlin")] * 6)

    assert db.execute("select event from holdfast.schedule_changes").fetchall() == [("defined",)]
    assert value(db, "select version from holdfast.schedules") == 1
