"""What meets the end of a pass: the settle of a rollback, and the end of the run that it checks."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from holdfast.models import ClaimedStep
from holdfast.testing import Clock
from kernel.limits import limit
from kernel.meeting import failures, meet
from kernel.retention import days, sweep
from kernel.steps import rescue, value
from rules.plans import LEASE, applied, called, claim, fails, previewed, status, work
from rules.test_lock_order import settles

DB = Connection[Any]
DAY = timedelta(days=1, seconds=1)
pytestmark = pytest.mark.own_database  # a trigger is their gate


def ended(db: DB, *failing: str) -> UUID:
    run_id = previewed(db, 3)
    applied(db, run_id)
    work(db, fails(*failing))
    return run_id


def due_pages(db: DB, run_id: UUID, clock: Clock) -> dict[str, ClaimedStep]:
    """Claim the pages of the passes over a run that are due after a day, by the kind of the pass."""
    clock.advance(DAY)
    pages = {step.run_id: step for step in claim(db)}
    passes = db.execute("select pass_id, pass from rules.passes where run_id = %s", [run_id]).fetchall()
    return {kind: pages[pass_id] for pass_id, kind in passes}


def daily_to_come(db: DB, run_id: UUID) -> int:
    return int(
        value(
            db,
            """select count(*) from rules.passes a join holdfast.runs r on r.id = a.pass_id
                where a.run_id = %s and a.pass = 'daily' and r.finished_at is null""",
            run_id,
        )
    )


def test_the_end_of_a_pass_meets_a_settle_of_the_rollback_of_its_run(db: DB, dsn: str, clock: Clock) -> None:
    limit(db, "rules:shop", concurrency=50)
    clock.freeze()
    run_id = ended(db)
    page = due_pages(db, run_id, clock)["daily"]
    (undo,) = called(db, "rollback", run_id=run_id, apply=True)
    undoing = claim(db)

    answers = meet(
        db, dsn, "after update on holdfast.limit_states", partial(settles, [page]), partial(settles, undoing)
    )

    assert failures(answers) == []
    assert (status(db, run_id), status(db, undo["rollback_id"])) == ("ROLLED_BACK", "APPLIED")


def test_a_run_that_ends_with_its_daily_pass_has_another_one(db: DB, dsn: str, clock: Clock) -> None:
    """A retry is open while the pass ends: one of the two plans the next"""
    clock.freeze()
    run_id = ended(db, "SKU-2")
    page = due_pages(db, run_id, clock)["daily"]
    called(db, "retry_failed", run_id=run_id, classes=["VALIDATION"])
    retried = claim(db)

    answers = meet(db, dsn, "after insert on rules.stored_events", partial(settles, [page]), partial(settles, retried))

    assert (failures(answers), status(db, run_id)) == ([], "APPLIED")
    assert daily_to_come(db, run_id) == 1


def test_a_pass_by_hand_meets_the_sweep_that_removes_its_run(db: DB, dsn: str, clock: Clock) -> None:
    """X-16: either the run is kept for its pass, or there is no pass"""
    clock.freeze()
    run_id = ended(db)
    db.execute("select holdfast.cancel(pass_id::text) from rules.reconciliations")
    clock.advance(days(91))

    def reconciles(own: DB) -> Any:
        return value(own, "select pass_id from rules.reconcile(%s)", run_id)

    answers = meet(db, dsn, "after delete on holdfast.runs", sweep, reconciles)

    assert failures(answers) == ["RN012"]
    assert value(db, "select count(*) from rules.passes") == 0
    assert value(db, "select count(*) from holdfast.runs") == 0


@pytest.mark.parametrize(
    "call",
    [
        "select rules.record_page(%(step)s, %(lease)s, null, 3, 0, '[]')",
        "select rules.correct(%(step)s, %(lease)s, true)",
    ],
    ids=["page", "correction"],
)
def test_a_step_of_a_pass_stays_with_its_worker_until_what_it_wrote_is_committed(
    db: DB, dsn: str, clock: Clock, call: str
) -> None:
    """R3: a worker over psql, whose lease runs out between its two statements, does not count a page twice"""
    clock.freeze()
    run_id = ended(db)
    page = due_pages(db, run_id, clock)["daily"]
    given = {"step": page.step_id, "lease": page.lease_id}
    with psycopg.connect(dsn) as worker:
        worker.execute(call, given)
        clock.advance(LEASE * 2)

        rescued = [step for step, _ in rescue(db)]

        worker.commit()
    assert page.step_id not in rescued
    assert [step for step, _ in rescue(db)] == [page.step_id]
    with pytest.raises(psycopg.Error) as exc_info, db.transaction():
        db.execute(call, given)
    assert exc_info.value.sqlstate == "RN002"
