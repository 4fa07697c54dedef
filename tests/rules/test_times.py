"""A change that ends by itself: apply at a time, undo at another, and what is refused, called off or moved."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast.errors import BadInput, WrongState
from holdfast.kernel import calls as kernel
from holdfast.kernel.db import run as made
from holdfast.models import ClaimedStep, Fail, Settlement
from holdfast.rules import clock_calls, reads
from holdfast.testing.kit import Clock
from kernel.steps import rescue, value
from rules.plans import (
    LEASE,
    applied,
    called,
    claim,
    fails,
    ids,
    moves,
    preview,
    previewed,
    refused,
    rows,
    run,
    settle,
    status,
    statuses,
    work,
)

DB = Connection[Any]
START = datetime(2027, 3, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
SOON = timedelta(seconds=30)  # before the first pass
UNKNOWN = {"message": "lost", "class": "TIMEOUT", "reason": "outcome_unknown"}


def sale(db: DB, count: int = 3, **options: Any) -> UUID:
    """Preview a run at six o'clock, and apply it with times."""
    Clock(db).set(START)
    run_id = previewed(db, count)
    made(db, clock_calls.apply_at(run_id, **options))
    return run_id


def tick(db: DB, at: datetime) -> list[str]:
    """Move the clock, fire what is due, and give the outcomes of the ticks."""
    Clock(db).set(at)
    db.execute("select * from holdfast.fire_schedules()")
    return [row[0] for row in db.execute("select outcome from holdfast.ticks where fired_at = %s order by name", [at])]


def task(db: DB) -> ClaimedStep:
    """Claim the task that undoes a run: it goes before targets."""
    (found,) = claim(db, batch=1)
    assert found.kind == "revert:shop"
    return found


def reverted(db: DB, step: ClaimedStep) -> dict[str, Any]:
    (answer,) = made(db, clock_calls.revert(step.step_id, step.lease_id))
    return answer


def test_a_change_begins_and_ends_by_itself(db: DB) -> None:
    """A-17, A-35, A-120: both times are schedules, each fires once, and the scheduler is the actor"""
    run_id = sale(db, at=START + HOUR, revert_at=START + 2 * HOUR)
    names = [row[0] for row in db.execute("select name from holdfast.schedule_list order by name")]
    assert names == [f"rules:apply:{run_id}", f"rules:revert:{run_id}"]
    assert status(db, run_id) == "PREVIEW"

    assert tick(db, START + HOUR) == ["started"]
    assert moves(db, run_id)[-1] == ("PREVIEW", "QUEUED", "scheduler")
    work(db)
    assert status(db, run_id) == "APPLIED"
    assert tick(db, START + 2 * HOUR) == ["started"]
    step = task(db)
    undo = UUID(reverted(db, step)["rollback_id"])
    settle(db, [step])
    assert (run(db, undo)["source"], run(db, undo)["parent_run_id"]) == ("rollback", run_id)
    assert moves(db, undo)[-1] == ("PREVIEW", "QUEUED", "scheduler")
    work(db)
    assert (status(db, run_id), set(statuses(db, run_id))) == ("ROLLED_BACK", {"ROLLED_BACK"})
    assert value(db, "select count(*) from holdfast.ticks") == 2


@pytest.mark.parametrize(
    ("options", "where"),
    [({"at": START}, "at"), ({"at": START - HOUR}, "at"), ({"at": START + timedelta(days=2)}, "at"),
     ({"revert_at": START}, "revert_at"), ({"at": START + HOUR, "revert_at": START + HOUR}, "revert_at"),
     ({"at": START + HOUR, "revert_at": START + timedelta(minutes=1)}, "revert_at"), ({}, "at"),
     ({"at": START + HOUR, "first": 0}, "first"), ({"at": START + HOUR, "only": [1], "without": [1]}, "only"),
     ({"at": START + HOUR, "only": [10**9]}, "only"), ({"at": START + HOUR, "plan": "xyz"}, "plan")],
)  # fmt: skip
def test_times_that_cannot_be_kept_are_refused_at_the_call(db: DB, options: dict[str, Any], where: str) -> None:
    with pytest.raises(BadInput) as raised:
        sale(db, **options)
    assert raised.value.where == where
    assert value(db, "select count(*) from holdfast.schedules") == 0


def test_a_time_without_a_zone_is_refused() -> None:
    for given in ({"at": datetime(2027, 3, 1), "revert_at": None}, {"at": None, "revert_at": "tomorrow"}):  # noqa: DTZ001
        with pytest.raises(BadInput) as raised:
            clock_calls.times(**given)  # type: ignore[arg-type]
        assert raised.value.where in given


def test_a_run_that_was_applied_or_undone_takes_no_such_time(db: DB) -> None:
    run_id = sale(db, revert_at=START + HOUR)
    assert (status(db, run_id), value(db, "select count(*) from holdfast.schedules")) == ("QUEUED", 1)
    with pytest.raises(WrongState):
        made(db, clock_calls.apply_at(run_id, at=START + HOUR))
    work(db, fails("SKU-1", "SKU-2", "SKU-3"))
    with pytest.raises(WrongState):
        made(db, clock_calls.apply_at(run_id, revert_at=START + HOUR))


def test_the_times_can_be_called_off_and_moved(db: DB) -> None:
    run_id = sale(db, at=START + HOUR, revert_at=START + 2 * HOUR)
    made(db, clock_calls.apply_at(run_id, at=START + 3 * HOUR, revert_at=START + 4 * HOUR))
    assert tick(db, START + 2 * HOUR) == []
    db.execute("select holdfast.forget_schedule(%s)", [f"rules:revert:{run_id}"])
    assert tick(db, START + 3 * HOUR) == ["started"]
    work(db)
    assert tick(db, START + 4 * HOUR) == []
    assert status(db, run_id) == "APPLIED"


def test_a_change_whose_end_has_come_does_not_begin(db: DB) -> None:
    """Nobody fired ticks for a day, or the apply was moved behind its end: the price would stay for ever"""
    run_id = sale(db, at=START + HOUR, revert_at=START + 2 * HOUR)
    assert tick(db, START + 3 * HOUR) == ["failed", "started"]
    assert status(db, run_id) == "PREVIEW"
    step = task(db)
    assert "done" in reverted(db, step)


def test_a_plan_that_expired_meanwhile_is_not_applied(db: DB) -> None:
    """A schedule that was moved behind the plan's expiry fails, and says so"""
    run_id = sale(db, at=START + HOUR)
    Clock(db).set(START + timedelta(minutes=30))
    db.execute(
        "select holdfast.define_schedule(%s, 'apply', 'rules', jsonb_build_object('run_id', %s::text), at => %s)",
        [f"rules:apply:{run_id}", str(run_id), START + timedelta(days=2)],
    )
    assert tick(db, START + timedelta(days=2)) == ["failed"]
    assert value(db, "select error ->> 'type' from holdfast.ticks") == "RN010"
    assert status(db, run_id) == "PREVIEW"


def test_the_choice_of_targets_is_kept_until_then(db: DB) -> None:
    Clock(db).set(START)
    run_id = previewed(db, 3)
    made(db, clock_calls.apply_at(run_id, at=START + HOUR, only=ids(db, run_id)[:2]))
    tick(db, START + HOUR)
    work(db)
    assert statuses(db, run_id) == ["APPLIED", "APPLIED", "PREVIEW"]
    (again,) = called(db, "apply", run_id=run_id, only_ids=ids(db, run_id)[:2])
    assert again["is_new"] is False
    assert refused(db, "select rules.apply(%s, only_ids => %s)", [run_id, ids(db, run_id)[:1]]) == "RN010"


def test_a_run_that_shares_items_then_is_refused_and_recorded(db: DB) -> None:
    run_id = sale(db, at=START + HOUR)
    applied(db, previewed(db, 1))
    assert tick(db, START + HOUR) == ["failed"]
    assert status(db, run_id) == "PREVIEW"


def test_an_open_run_is_stopped_before_it_is_undone(db: DB) -> None:
    """A run that is slow must not write sale prices after the sale"""
    run_id = sale(db, revert_at=START + HOUR)
    (held,) = claim(db, batch=1)
    tick(db, START + HOUR)
    step = task(db)
    assert "waits" in reverted(db, step)
    settle(db, [held])
    assert status(db, run_id) == "PARTIAL"
    undo = UUID(reverted(db, step)["rollback_id"])
    assert reverted(db, step)["rollback_id"] == str(undo), "a try after a crash plans nothing again"
    work(db)
    assert (status(db, run_id), status(db, undo)) == ("ROLLED_BACK", "APPLIED")


def test_an_undo_has_the_same_conflicts(db: DB) -> None:
    """R27: what somebody changed since is not overwritten, and the rest is restored"""
    run_id = sale(db, revert_at=START + SOON)
    work(db)
    tick(db, START + SOON)
    step = task(db)
    undo = UUID(reverted(db, step)["rollback_id"])
    settle(db, [step])
    conflict = {"message": "conflict", "class": "VALIDATION", "reason": "conflict"}
    work(db, fails("SKU-2", error=conflict))
    assert (status(db, run_id), status(db, undo)) == ("APPLIED", "PARTIAL")
    assert statuses(db, run_id) == ["ROLLED_BACK", "APPLIED", "ROLLED_BACK"]


def test_an_undo_waits_for_a_run_that_has_its_items(db: DB) -> None:
    """A-120: an event per run that is in its way, and the times of the run say for which one it waits now"""
    run_id = sale(db, 3, revert_at=START + HOUR)
    work(db)
    first, second = previewed(db, 1), UUID(str(preview(db, rows(1, first=2))["run_id"]))
    applied(db, first)
    tick(db, START + HOUR)
    assert [each.waits for each in reads.planned_times(db, run_id)] == ["no worker has taken its task"]
    step = task(db)
    for other in (first, first, second):
        if other == second:
            work(db)
            applied(db, second)
        answer = reverted(db, step)
        assert str(other) in answer["waits"]
        assert answer["waits_for"] == str(other)
        (time,) = reads.planned_times(db, run_id)
        assert (time.what, time.at, time.waits, time.waits_for) == ("revert", START + HOUR, answer["waits"], other)
    waiting = "select count(*) from rules.events where event_type = 'automation.run.waiting' and rule_run_id = %s"
    assert db.execute(waiting, [run_id]).fetchone() == (2,)
    assert value(db, "select count(*) from rules.rule_runs where source = 'rollback'") == 0
    work(db)
    undo = reverted(db, step)
    settle(db, [step])
    assert ([each.waits for each in reads.planned_times(db, run_id)], undo.keys()) == ([None], {"rollback_id"})


def test_the_times_of_a_run_say_that_it_is_stopped_first(db: DB) -> None:
    run_id = sale(db, at=START + HOUR, revert_at=START + 2 * HOUR)
    assert [(each.what, each.state, each.waits) for each in reads.planned_times(db, run_id)] == [
        ("apply", "active", None),
        ("revert", "active", None),
    ]
    tick(db, START + HOUR)
    claim(db, batch=1)
    tick(db, START + 2 * HOUR)
    reverted(db, task(db))
    begun, ended = reads.planned_times(db, run_id)
    rescue(db)
    assert (begun.state, begun.waits, ended.waits_for) == ("ended", None, run_id)
    assert ended.waits is not None


def test_an_undo_reads_unknown_outcomes_first_also_of_a_failed_run(db: DB) -> None:
    run_id = sale(db, 1, revert_at=START + HOUR)
    work(db, fails("SKU-1", error=UNKNOWN))
    assert status(db, run_id) == "FAILED"
    tick(db, START + HOUR)
    step = task(db)
    assert reverted(db, step)["unknown"] == 1
    assert "waits" in reverted(db, step)
    work(db)
    assert status(db, run_id) == "APPLIED"
    assert reverted(db, step).keys() == {"rollback_id"}


def test_an_undo_without_anything_to_undo_is_done(db: DB) -> None:
    run_id = sale(db, revert_at=START + HOUR)
    work(db, fails("SKU-1", "SKU-2", "SKU-3"))
    tick(db, START + HOUR)
    assert "done" in reverted(db, task(db))
    assert status(db, run_id) == "FAILED"


def test_a_task_whose_lease_ran_out_undoes_nothing(db: DB) -> None:
    sale(db, revert_at=START + HOUR)
    work(db)
    tick(db, START + HOUR)
    step = task(db)
    Clock(db).set(START + HOUR + 2 * LEASE)
    made(db, kernel.rescue_steps())
    assert refused(db, "select rules.revert(%s, %s)", [step.step_id, step.lease_id]) == "RN002"
    made(db, kernel.settle_steps([Settlement(step.step_id, step.lease_id, Fail({"message": "late"}))]))
    assert value(db, "select count(*) from rules.rule_runs where source = 'rollback'") == 0
