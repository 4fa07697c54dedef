"""Schedules: which ticks they have, what becomes of each, and what people do to them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import cron
from holdfast.errors import BadInput, HoldfastError
from holdfast.flow import calls as flow
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.models import Done, Settlement
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, started, ticks

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


def test_a_tick_is_skipped_while_the_work_of_the_previous_one_is_open(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", overlap="skip")
    fire(db)
    for hour in (1, 2, 3):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)
    (step,) = run(db, calls.claim_steps("w"))
    clock.set(at("03-01 04:00"))
    fire(db)
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done(None))]))
    clock.set(at("03-01 05:00"))
    fire(db)

    assert [outcome for _, outcome in ticks(db)] == ["started", "skipped", "skipped", "skipped", "started"]
    assert len(started(db)) == 2


@pytest.mark.parametrize("is_held", [False, True], ids=["open", "held"])
def test_a_tick_cancels_the_work_of_the_previous_one(db: DB, clock: Clock, *, is_held: bool) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", overlap="cancel")
    fire(db)
    clock.set(at("03-01 01:00"))
    fire(db)
    if is_held:
        run(db, calls.claim_steps("w"))
    clock.set(at("03-01 02:00"))
    fire(db)

    assert db.execute("select state from holdfast.steps order by id").fetchall() == [("cancelled",), ("pending",)]
    rows = db.execute("select ids, cancelled from holdfast.ticks order by at").fetchall()
    assert rows[1][1] == rows[0][0]
    moves = db.execute("select actor_kind, actor, reason from holdfast.journal where event = 'cancelled'").fetchall()
    assert moves == [("scheduler", "scheduler", "schedule report, tick 2027-03-01T02:00:00Z")]
    assert run(db, calls.violations()) == []


def test_a_flow_is_started_by_its_latest_definition_and_its_run_is_what_overlaps(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    run(db, flow.define_flow("order", [{"kind": "a", "name": "a"}], namespace="default", version="1"))
    define(db, "orders", face="flow", target="order", input='{"shop": 1}', cron="0 * * * *", overlap="cancel")
    fire(db)
    for hour in (1, 2):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)

    runs = db.execute("select state, context from flow.tasks order by task_id")
    assert runs.fetchall() == [("cancelled", {"shop": 1}), ("pending", {"shop": 1})]
    created = db.execute("select actor_kind, actor from holdfast.journal where event = 'created'").fetchall()
    assert created == [("scheduler", "scheduler")] * 2
    assert run(db, calls.violations()) == []


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
