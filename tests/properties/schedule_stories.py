"""Short stories about schedules that each hold one property (see scenarios.py)."""

from __future__ import annotations

from datetime import timedelta

from holdfast import cron, errors
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, ticks
from properties.guards import login_for, refused
from properties.scenarios import DB, sound, value

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def a_tick_that_was_fired_is_not_fired_again(db: DB) -> None:
    """Whatever the schedule believes: it was removed and made again, and a clock was set back."""
    clock = Clock(db)
    for _ in range(2):
        clock.set(at("03-01 00:59:59"))
        define(db, cron="0 * * * *")
        fire(db)
        clock.set(at("03-01 01:00"))
        fire(db)
        run(db, schedule_calls.forget_schedule("report"))
    assert ticks(db) == [(at("03-01 01:00"), "started")]
    assert value(db, "select count(*) from holdfast.steps") == 1


def a_tick_has_its_row(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR)
    clock.set(at("03-01 01:00"))
    fire(db)
    sound(db)
    assert value(db, "select count(*) from holdfast.steps") == len(ticks(db)) == 1


def the_next_tick_follows_the_last_one(db: DB) -> None:
    """However late it was fired."""
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, "interval", every=HOUR)
    fire(db)
    for hour in range(1, 25):
        clock.set(at("03-01 00:00") + hour * HOUR + timedelta(seconds=hour))
        fire(db)
    assert [tick for tick, _ in ticks(db, "interval")] == [at("03-01 00:00") + hour * HOUR for hour in range(1, 25)]


def no_tick_comes_after_the_end(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR, ends_at=at("03-01 02:00"))
    for hour in range(1, 5):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)
    assert len(ticks(db)) == 2


def after_an_outage_one_tick_is_fired(db: DB) -> None:
    """However many were missed, and however few were planned."""
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, cron="* * * * *", missed="one")
    fire(db)
    clock.set(at("03-01 02:00"))
    fire(db)
    assert [outcome for _, outcome in ticks(db)].count("started") == 1


def the_newest_of_late_ticks_is_fired(db: DB) -> None:
    """Nobody ran when it was due, nor for half an hour after."""
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR, missed="one")
    fire(db)
    clock.set(at("03-01 03:30"))
    fire(db)
    assert [outcome for _, outcome in ticks(db)] == ["missed", "missed", "started"]


def at_most_a_hundred_late_ticks_are_fired(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR, missed="all")
    fire(db)
    clock.set(at("03-06 00:30"))
    fire(db)
    assert [outcome for _, outcome in ticks(db)] == ["missed"] * 20 + ["started"] * 100


def a_plan_is_for_the_definition_that_it_was_made_for(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, cron="0 1 * * *", starts_at=at("03-01 00:30"))
    (fired,) = run(db, schedule_calls.fire_schedules())
    define(db, cron="0 1 * * *", starts_at=at("03-01 00:30"), ends_at=at("03-20 00:00"))
    define(db, cron="0 5 * * *", starts_at=at("03-01 00:30"), ends_at=at("03-20 00:00"))
    run(db, schedule_calls.plan_schedules([cron.plan(wanted) for wanted in fired.plans]))
    fire(db)
    assert listed(db)["next_at"] == at("03-01 05:00")


def of_two_plans_the_first_counts(db: DB) -> None:
    """Two workers were asked for the same ticks."""
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *")
    (fired,) = run(db, schedule_calls.fire_schedules())
    plans = [cron.plan(wanted) for wanted in fired.plans]
    for _ in range(2):
        run(db, schedule_calls.plan_schedules(plans))
    sound(db)
    assert value(db, "select cardinality(upcoming) from holdfast.schedules") == cron.AHEAD


def a_sleeper_is_told_when_a_tick_comes(db: DB) -> None:
    Clock(db).set(at("03-01 00:00"))
    run(db, calls.enlist_worker("w", ["default"]))
    define(db, every=HOUR)
    assert run(db, calls.mark_asleep("w")) == [HOUR]


def a_change_is_told_to_all_who_listen(db: DB) -> None:
    """Also while nobody sleeps: somebody may by the time that it commits."""
    db.execute("listen holdfast")
    define(db, every=HOUR)
    hints = [hint.payload for hint in db.notifies(timeout=0)]
    db.execute("unlisten holdfast")
    assert hints == [""]


def a_backfill_leaves_what_has_started(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, every=HOUR)
    clock.set(at("03-01 01:00"))
    fire(db)
    run(db, schedule_calls.backfill_schedule("report", [at("03-01 00:00"), at("03-01 01:00")]))
    assert value(db, "select count(*) from holdfast.steps") == len(ticks(db)) == 2


def a_login_has_schedules_of_its_own_tenants(db: DB) -> None:
    clock = Clock(db)
    clock.set(at("03-01 00:00"))
    define(db, tenant="b", every=HOUR)
    clock.set(at("03-01 01:00"))
    with login_for(db, "hf_worker", "a") as worker:
        with refused(errors.TenantRefused):
            define(worker, "mine", tenant="b", every=HOUR)
        fire(worker)
    with login_for(db, "hf_operator", "a") as operator:
        with refused(errors.TenantRefused):
            run(operator, schedule_calls.pause_schedule("report", tenant="b"))
        with refused(errors.TenantRefused):
            run(operator, schedule_calls.forget_schedule("report", tenant="b"))
    assert (listed(db)["state"], ticks(db)) == ("active", [])
