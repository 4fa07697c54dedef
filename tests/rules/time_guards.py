"""What the guards of times and schedules are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Retry, Settlement
from holdfast.testing.kit import Clock
from kernel.steps import value
from properties.mutants import Cut, mutant
from properties.scenarios import DB
from rules.plans import RULE, applied, called, claim, define, preview, previewed, refused, rows, status, work

HOUR = timedelta(hours=1)
AT = "select rules.apply_at(%s, at => %s, revert_at => %s)"
SCHEDULE = "select holdfast.define_schedule(%s, %s, 'rules', %s, at => %s)"


def _fired(db: DB, at: datetime) -> list[str]:
    Clock(db).set(at)
    db.execute("select * from holdfast.fire_schedules()")
    return [row[0] for row in db.execute("select outcome from holdfast.ticks where fired_at = %s order by name", [at])]


def _task(db: DB, given: dict[str, Any], now: datetime) -> Any:
    """Fire the tick of a scheduled rule, and claim its task."""
    db.execute(SCHEDULE, ["weekly", "summer", Jsonb({"rule": RULE, "channel": "shop", **given}), now + HOUR])
    assert _fired(db, now + HOUR) == ["started"]
    (step,) = claim(db, batch=1)
    return step


def an_end_is_after_its_beginning(db: DB) -> None:
    run_id, now = previewed(db, 1), Clock(db).freeze()
    assert refused(db, AT, [run_id, now + HOUR, now + HOUR / 2]) == "RN005"


def a_plan_does_not_expire_before_its_time(db: DB) -> None:
    run_id, now = previewed(db, 1), Clock(db).freeze()
    assert refused(db, AT, [run_id, now + timedelta(days=3), None]) == "RN005"


def a_plan_that_expired_is_not_applied_by_the_clock(db: DB) -> None:
    run_id, now = previewed(db, 1), Clock(db).freeze()
    late = now + timedelta(days=3)
    db.execute(SCHEDULE, ["late", "apply", Jsonb({"run_id": str(run_id)}), late])
    assert (_fired(db, late), status(db, run_id)) == (["failed"], "PREVIEW")


def a_change_whose_end_has_come_does_not_begin(db: DB) -> None:
    run_id, now = previewed(db, 1), Clock(db).freeze()
    db.execute(AT, [run_id, now + HOUR, now + 2 * HOUR])
    assert _fired(db, now + 3 * HOUR) == ["failed", "started"]
    assert status(db, run_id) == "PREVIEW"


def an_undo_is_planned_once(db: DB) -> None:
    """R27: a task that died after it planned a rollback whose targets failed does not plan another"""
    run_id, now = previewed(db, 2), Clock(db).freeze()
    db.execute(AT, [run_id, None, now + HOUR / 120])
    work(db)
    _fired(db, now + HOUR / 120)
    (step,) = claim(db, batch=1)
    answers = []
    for _ in range(2):
        row = db.execute("select rules.revert(%s, %s)", [step.step_id, step.lease_id]).fetchone()
        answers.append(row and row[0].get("rollback_id"))
        work(db)
    assert answers[0] is not None
    assert answers[0] == answers[1]


def a_task_that_lost_its_lease_changes_nothing(db: DB) -> None:
    run_id, now = previewed(db, 1), Clock(db).freeze()
    db.execute(AT, [run_id, None, now + HOUR / 120])
    work(db)
    _fired(db, now + HOUR / 120)
    (step,) = claim(db, batch=1)
    assert refused(db, "select rules.revert(%s, %s)", [step.step_id, step.lease_id + 1]) == "RN002"


def a_tick_is_skipped_while_a_run_of_its_rule_is_open(db: DB) -> None:
    """A-120"""
    applied(db, previewed(db, 1))
    now = Clock(db).freeze()
    db.execute(SCHEDULE, ["weekly", "summer", Jsonb({"rule": RULE, "channel": "shop"}), now + HOUR])
    assert _fired(db, now + HOUR) == ["skipped"]


def a_plan_that_is_too_large_waits(db: DB) -> None:
    """A-120"""
    define(db)
    step = _task(db, {}, Clock(db).freeze())
    made = preview(db, rows(3), rule={**RULE, "guardrails": {"maxTargets": 2}})
    (answer,) = called(db, "apply_scheduled", step_id=step.step_id, lease_id=step.lease_id, run_id=made["run_id"])
    assert (status(db, UUID(str(made["run_id"]))), answer["apply_scheduled"] is None) == ("PREVIEW", False)


def a_plan_with_many_refusals_waits(db: DB) -> None:
    """A-120"""
    define(db)
    step = _task(db, {}, Clock(db).freeze())
    made = preview(db, rows(3), [("SKU-9", "guard", "refused", "EUR", 100, 1)])
    (answer,) = called(db, "apply_scheduled", step_id=step.step_id, lease_id=step.lease_id, run_id=made["run_id"])
    assert (status(db, UUID(str(made["run_id"]))), answer["apply_scheduled"] is None) == ("PREVIEW", False)


def a_throttled_call_counts_once(db: DB) -> None:
    """A-95"""
    applied(db, previewed(db, 3))
    steps = claim(db)
    error = Retry({"message": "slow down", "class": "RATE_LIMIT"})
    first = steps[0].step_id
    made = [Settlement(step.step_id, step.lease_id, error, raised_with=first) for step in steps]
    run(db, calls.settle_steps(made))
    assert value(db, "select value::int from rules.metrics where name = 'rules.429.count'") == 1


# fmt: off
TIME_GUARDS = [
    mutant("a rate limit per target", a_throttled_call_counts_once,
           Cut("rules.count_tries", "call", "where s.error ->> 'class' = 'RATE_LIMIT';")),
    mutant("an end before its beginning", an_end_is_after_its_beginning,
           Cut("rules.check_times", "order", "if check_times.revert_at <= clock then")),
    mutant("a plan that expires before its time", a_plan_does_not_expire_before_its_time,
           Cut("rules.check_times", "expires", "if false then")),
    mutant("a plan that expired, by the clock", a_plan_that_expired_is_not_applied_by_the_clock,
           Cut("rules.apply_for_tick", "expired", "if false then")),
    mutant("a change that never ends", a_change_whose_end_has_come_does_not_begin,
           Cut("rules.apply_for_tick", "end", "and false) then")),
    mutant("an undo that is planned twice", an_undo_is_planned_once,
           Cut("rules.revert", "once", "where o.undoes = run.id and false;")),
    mutant("an undo without the lease", a_task_that_lost_its_lease_changes_nothing,
           Cut("rules.held_task", "lease", "where s.id = held_task.step_id")),
    mutant("a tick beside an open run", a_tick_is_skipped_while_a_run_of_its_rule_is_open,
           Cut("rules.plan_for_tick", "open", "if false then")),
    mutant("a scheduled plan of any size", a_plan_that_is_too_large_waits,
           Cut("rules.apply_scheduled", "most", "when false")),
    mutant("a scheduled plan with any refusals", a_plan_with_many_refusals_waits,
           Cut("rules.apply_scheduled", "refusals", "when false")),
]
# fmt: on
