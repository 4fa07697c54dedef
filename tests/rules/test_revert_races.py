"""What meets the task that undoes a run in time: it locks the channel, then the steps, the limits and the run."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast.models import ClaimedStep
from kernel.limits import limit
from kernel.meeting import failures, meet
from kernel.steps import rescue, value
from rules.plans import claim, fails, previewed, status, work
from rules.test_lock_order import claims, settles
from rules.test_times import HOUR, START, UNKNOWN, sale, task, tick

DB = Connection[Any]
RUNS, STEPS, LIMITS = (f"after update on holdfast.{table}" for table in ("runs", "steps", "limit_states"))
pytestmark = pytest.mark.own_database  # a trigger is their gate


def due(db: DB, count: int = 3, *, held: int = 0, failing: str | None = None) -> tuple[UUID, ClaimedStep, list[Any]]:
    """Apply a run whose end has come: open with so many targets held, or over. Returns it, its task and the targets."""
    limit(db, "rules:shop", concurrency=50)
    run_id = sale(db, count, revert_at=START + HOUR)
    steps = claim(db, batch=held) if held else []
    if not held:
        work(db, None if failing is None else fails(failing, error=UNKNOWN))
    tick(db, START + HOUR)
    return run_id, task(db), steps


def reverts(step: ClaimedStep, own: DB) -> Any:
    return value(own, "select rules.revert(%s, %s)", step.step_id, step.lease_id)


def calls(function: str, run_id: UUID | str, own: DB) -> Any:
    return own.execute(f"select * from {function}(%s)", [run_id]).fetchall()


@pytest.mark.parametrize("place", [RUNS, STEPS])
def test_an_undo_that_stops_its_run_meets_a_settle_of_it(db: DB, dsn: str, place: str) -> None:
    run_id, step, held = due(db, held=1)

    answers = meet(db, dsn, place, partial(reverts, step), partial(settles, held))

    assert (failures(answers), answers[1]) == ([], [("succeeded",)])
    assert status(db, run_id) == "PARTIAL"
    assert reverts(step, db).keys() == {"rollback_id"}


@pytest.mark.parametrize("place", [LIMITS, RUNS])
def test_a_settle_meets_an_undo_that_stops_its_run(db: DB, dsn: str, place: str) -> None:
    run_id, step, held = due(db, held=1)

    answers = meet(db, dsn, place, partial(settles, held), partial(reverts, step))

    assert (failures(answers), answers[0]) == ([], [("succeeded",)])
    assert status(db, run_id) == "PARTIAL"


@pytest.mark.parametrize("is_first", [True, False])
def test_an_undo_that_stops_its_run_meets_a_claim(db: DB, dsn: str, is_first: bool) -> None:
    run_id, step, _ = due(db, held=1)
    both = [partial(reverts, step), claims]

    answers = meet(db, dsn, RUNS if is_first else STEPS, *(both if is_first else both[::-1]))

    rescue(db)
    assert failures(answers) == []
    assert value(db, "select halt from holdfast.runs where id = %s", run_id) == "stopped"


@pytest.mark.parametrize("is_first", [True, False])
def test_an_undo_meets_an_apply_with_its_items(db: DB, dsn: str, is_first: bool) -> None:
    """R27: of the two one opens; the undo waits for the apply, the apply is refused by the undo"""
    run_id, step, _ = due(db)
    other = previewed(db, 1)
    both = [partial(reverts, step), partial(calls, "rules.apply", other)]

    answers = meet(db, dsn, RUNS, *(both if is_first else both[::-1]))

    assert failures(answers) == (["RN010"] if is_first else [])
    if not is_first:
        assert answers[1]["waits_for"] == str(other)
        work(db)
        reverts(step, db)
    work(db)
    assert status(db, run_id) == "ROLLED_BACK"


@pytest.mark.parametrize("is_first", [True, False])
def test_an_undo_that_reads_unknown_outcomes_meets_a_retry(db: DB, dsn: str, is_first: bool) -> None:
    """R27: the one opens the run, and the other finds it open: the retry is refused, or the undo stops it"""
    run_id, step, _ = due(db, failing="SKU-3")
    both = [partial(reverts, step), partial(calls, "rules.retry_failed", run_id)]

    answers = meet(db, dsn, RUNS, *(both if is_first else both[::-1]))

    assert failures(answers) == (["RN010"] if is_first else [])
    assert value(db, "select count(*) from rules.rule_runs where source = 'rollback'") == 0
    work(db)
    assert status(db, run_id) == ("APPLIED" if is_first else "PARTIAL")


def test_an_undo_meets_a_retry_by_the_kernel(db: DB, dsn: str) -> None:
    """R10, R27: both lock the run first; the undo waits for the retry, and then stops what it reopened"""
    run_id, step, _ = due(db, failing="SKU-3")

    answers = meet(db, dsn, RUNS, partial(calls, "holdfast.retry", str(run_id)), partial(reverts, step))

    assert failures(answers) == []
    assert answers[1]["waits_for"] == str(run_id)
    work(db)
    assert status(db, run_id) == "PARTIAL"
