"""Pairs of calls that take the same locks: steps first, then limits, then runs, so that none waits for the other."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from kernel.limits import limit
from kernel.meeting import failures, meet
from kernel.steps import start, value
from rules.plans import applied, claim, fails, ids, previewed, status, statuses, work

DB = Connection[Any]
pytestmark = pytest.mark.own_database  # a trigger is their gate


def settles(steps: list[Any], own: DB) -> list[Any]:
    """Settle as a worker in another language does, which does not repeat a call that met a deadlock."""
    outcomes = [{"step_id": s.step_id, "lease_id": s.lease_id, "outcome": "done"} for s in steps]
    return own.execute("select event from holdfast.settle_steps(%s)", [Jsonb(outcomes)]).fetchall()


def stops(run_id: UUID, own: DB) -> Any:
    return value(own, "select holdfast.stop_run(%s)", str(run_id))


def claims(own: DB) -> int:
    found = own.execute("select step_id from holdfast.claim_steps('v', 'rules:shop', batch => 1, lease => '30 s')")
    return len(found.fetchall())


def opened(db: DB, count: int) -> UUID:
    """Apply so many targets."""
    run_id = previewed(db, count)
    applied(db, run_id)
    return run_id


def test_a_stop_takes_back_what_a_limit_parked_beside_a_settle_under_it(db: DB, dsn: str) -> None:
    limit(db, "rules:shop", concurrency=1)
    run_id = opened(db, 5)
    held = claim(db)

    answers = meet(db, dsn, "after update on holdfast.runs", partial(stops, run_id), partial(settles, held))

    assert (failures(answers), answers[1]) == ([], [("succeeded",)])
    assert (status(db, run_id), statuses(db, run_id)) == ("PARTIAL", ["APPLIED", *["QUEUED"] * 4])


def test_a_stop_meets_the_first_claim_of_its_run(db: DB, dsn: str) -> None:
    run_id = opened(db, 3)

    answers = meet(db, dsn, "after update on holdfast.runs", partial(stops, run_id), claims)

    assert failures(answers) == []
    assert (status(db, run_id), answers[1]) == ("FAILED", 0)


def test_a_chunk_of_a_stopped_run_meets_a_claim_of_it(db: DB, dsn: str) -> None:
    run_id = opened(db, 3)
    claim(db, batch=1)
    db.execute(
        """update holdfast.runs set halt = 'stopped', halted_at = holdfast.clock(), moving = 'stopped', to_admit = 0
            where id = %s""",
        [run_id],
    )

    def chunk(own: DB) -> Any:
        return value(own, "select holdfast.move_next_chunk(1000)")

    answers = meet(db, dsn, "before update on holdfast.steps", chunk, claims)

    assert (failures(answers), answers[1]) == ([], 0)
    assert value(db, "select live from holdfast.runs where id = %s", run_id) == 1


def test_a_claim_that_halts_what_a_limit_parked_meets_a_settle_under_it(db: DB, dsn: str) -> None:
    limit(db, "rules:shop", concurrency=2)
    run_id = opened(db, 4)
    held = claim(db, batch=4)
    settles(held[:1], db)
    db.execute("select holdfast.pause_run(%s)", [str(run_id)])

    answers = meet(db, dsn, "after update on holdfast.steps", claims, partial(settles, held[1:]))

    assert (failures(answers), answers[1]) == ([], [("succeeded",)])


def test_a_claim_that_halted_a_step_waits_for_no_limit(db: DB, dsn: str) -> None:
    limit(db, "rules:shop", concurrency=5)
    paused = opened(db, 2)
    held = claim(db, batch=1)
    start(db, queue="rules:shop", limits=["rules:shop"], priority=0)  # as a page of a pass is
    db.execute("select holdfast.pause_run(%s)", [str(paused)])

    answers = meet(db, dsn, "after update on holdfast.steps", claims, partial(settles, held))

    assert (failures(answers), answers[1]) == ([], [("succeeded",)])


@pytest.mark.parametrize("is_step", [False, True], ids=["run", "step"])
def test_a_retry_by_the_kernel_meets_one_by_the_face(db: DB, dsn: str, is_step: bool) -> None:
    run_id = opened(db, 2)
    work(db, fails("SKU-2"))
    retried = str(ids(db, run_id)[1] if is_step else run_id)

    answers = meet(
        db, dsn, "after update on holdfast.runs",
        lambda own: value(own, "select holdfast.retry(%s)", retried),
        lambda own: own.execute("select * from rules.retry_failed(%s)", [run_id]).fetchall(),
    )  # fmt: skip

    assert failures(answers) == ["RN010"]  # the later one finds the run open
    assert (status(db, run_id), statuses(db, run_id)) == ("APPLYING", ["APPLIED", "QUEUED"])
