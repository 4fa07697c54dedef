"""Steps that nobody can take: parked until somebody can, and never in the way of the others."""

from __future__ import annotations

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Release
from holdfast.testing import Clock, events
from kernel.steps import (
    DB,
    LEASE,
    add_machine,
    claim,
    claim_one,
    column,
    counts,
    finish,
    insert_step,
    node,
    notes,
    rescue,
    run_row,
    seconds,
    settle,
    stage,
    start,
    start_flow,
    step_row,
    value,
    violations,
)
from scenarios.proof import Proof

# A machine that lists neither how a step is claimed nor how its lease runs out; its steps are taken by hand.
STUCK = """
new:open      cancelled  gone:over=cancelled
new:open      queued     taken:held
taken:held    succeeded  end:over=succeeded
"""


def parked(db: DB) -> int:
    count: int = value(db, "select count(*) from holdfast.steps where parked_for is not null")
    return count


def stuck(db: DB, amount: int = 1) -> list[int]:
    """Due steps of a machine that has no move `claimed`."""
    add_machine(db, "test.stuck", STUCK, initial="new:open")
    return [insert_step(db, "test.stuck", "new") for _ in range(amount)]


def stuck_and_held(db: DB, amount: int) -> list[int]:
    """Steps whose lease will run out although their machine has no move for that."""
    ids = stuck(db, amount)
    db.execute(
        """update holdfast.steps set state = 'taken', due_at = null, lease_id = nextval('holdfast.lease_ids'),
                  lease_owner = 'a', lease_until = holdfast.clock() + '10 s' where machine = 'test.stuck'"""
    )
    return ids


@pytest.mark.parametrize("batch", [1, 500])
def test_steps_that_nobody_serves_are_parked_and_what_is_behind_them_is_claimed(
    db: DB, batch: int, proof: Proof
) -> None:
    """C-89 R25: 3000 of them in front"""
    stage(db, [("nobody's", "{}")] * 3000)
    served = start(db, "mail")

    assert [s.step_id for s in claim(db, kinds=["mail"], batch=batch)] == [served]

    assert claim(db, kinds=["mail"], batch=batch) == []
    proof.add(lost=3000 - parked(db))
    assert parked(db) == 3000
    assert value(db, "select count(*) from holdfast.journal where step_id <> %s", served) == 0
    assert value(db, "select standing from holdfast.step_list where kind <> 'mail' limit 1") == "no handler"
    assert value(db, "select parked from holdfast.queue_list") == 3000


def test_parked_steps_come_back_with_their_due_time_when_a_worker_serves_them(db: DB, clock: Clock) -> None:
    """C-89 R25"""
    clock.freeze()
    first = start(db, "print")
    clock.advance(seconds(10))
    second = start(db, "print")
    claim(db, kinds=["mail"])
    assert parked(db) == 2

    taken = [claim_one(db, "b", kinds=["sms", "print"]).step_id for _ in range(2)]

    assert taken == [first, second]
    assert events(db, step=first) == ["claimed"]


def test_a_worker_of_any_kind_takes_what_was_parked(db: DB) -> None:
    stage(db, [("print", "{}")] * 50)
    claim(db, kinds=["mail"])
    assert parked(db) == 50

    assert len(claim(db, "b", batch=100)) == 50


def test_more_than_comes_back_at_once_comes_back_with_the_next_claims(db: DB) -> None:
    stage(db, [("print", "{}")] * 6000)
    claim(db, kinds=["mail"])
    assert parked(db) == 6000

    assert [len(claim(db, "b", batch=4000)) for _ in range(3)] == [4000, 2000, 0]


def test_what_another_live_worker_serves_is_passed_over_and_not_parked(db: DB, clock: Clock) -> None:
    claim(db, "printer", kinds=["print"])
    stage(db, [("print", "{}")] * 2000)
    mail = start(db, "mail")

    assert claim_one(db, "mailer", kinds=["mail"]).step_id == mail
    assert parked(db) == 0

    clock.advance(seconds(200))
    claim(db, "mailer", kinds=["mail"])
    assert parked(db) == 2000


def test_a_renewal_is_a_sign_of_life_too(db: DB, clock: Clock) -> None:
    """A worker busy with one long step still serves its kinds"""
    start(db, "print")
    step = claim_one(db, "printer", kinds=["print"])
    start(db, "print")
    clock.advance(seconds(100))
    run(db, calls.renew_leases("printer", [step.lease_id], lease=seconds(300)))
    clock.advance(seconds(100))

    claim(db, "mailer", kinds=["mail"])

    assert parked(db) == 0


def test_steps_of_tenants_that_nobody_serves_are_parked_and_stay_so_for_who_does_not_serve_them(db: DB) -> None:
    theirs = start(db, tenant="theirs")
    mine = start(db, tenant="mine")

    assert [s.step_id for s in claim(db, tenants=["mine"], batch=5)] == [mine]
    assert parked(db) == 1
    before = column(db, theirs, "xmin::text")
    assert claim(db, tenants=["mine"], batch=5) == []
    assert (parked(db), column(db, theirs, "xmin::text")) == (1, before)
    assert len(claim(db, "b", tenants=["theirs"], batch=5)) == 1


def test_a_parked_step_counts_as_live_in_its_run(db: DB) -> None:
    run_id = start_flow(db, node("mail"), node("print"))

    finish(db, claim(db, kinds=["mail"], batch=5))

    assert parked(db) == 1
    assert (run_row(db, run_id)["finished_at"], counts(db, run_id)) == (None, {"total": 2, "live": 1, "succeeded": 1})
    finish(db, claim(db, "b", kinds=["print"]))
    assert run_row(db, run_id)["state"] == "complete"


def test_bringing_parked_steps_back_does_not_write_their_run(db: DB) -> None:
    """A run's row is hot; nothing of what it counts has changed"""
    run_id = start_flow(db, node("print"), node("last", "print"))
    start(db, "mail")
    claim(db, kinds=["mail"], batch=5)
    before = value(db, "select xmin::text from holdfast.runs where id = %s", run_id)

    run(db, calls.pause_queue("default"))
    claim(db, "b", kinds=["print"])

    assert parked(db) == 0
    assert value(db, "select xmin::text from holdfast.runs where id = %s", run_id) == before


@pytest.mark.unsound
def test_a_step_whose_machine_cannot_claim_it_is_set_aside_alone(db: DB) -> None:
    """It never fails its batch: noted, listed, and out of the way"""
    (odd,) = stuck(db)
    fine = [start(db) for _ in range(3)]

    assert [s.step_id for s in claim(db, batch=10)] == fine

    assert (column(db, odd, "state"), column(db, odd, "parked_for"), column(db, odd, "attempt")) == ("new", "move", 0)
    ((level, message),) = notes(db, odd)
    assert level == "error"
    assert all(word in message.split() for word in ("test.stuck", "claimed"))
    assert violations(db) == [("machine_has_the_move", f"step {odd}")]
    assert value(db, "select standing from holdfast.step_list where id = %s", odd) == "no move"
    assert claim(db, batch=10) == []
    assert len(notes(db, odd)) == 1


@pytest.mark.unsound
def test_a_full_batch_of_such_steps_does_not_hide_the_others(db: DB) -> None:
    stuck(db, 20)
    fine = start(db)

    found = [s.step_id for _ in range(3) for s in claim(db, batch=10)]

    assert found == [fine]
    assert parked(db) == 20


def test_a_step_that_was_set_aside_can_be_cancelled(db: DB) -> None:
    (odd,) = stuck(db)
    claim(db)

    assert run(db, calls.cancel(str(odd))) == ["gone"]


def test_a_step_that_was_set_aside_comes_back_by_hand_when_its_machine_has_the_move(db: DB) -> None:
    (odd,) = stuck(db)
    assert claim(db) == []
    db.execute("insert into holdfast.machine_moves values ('test.stuck', 'new', 'claimed', 'taken', '{worker}')")

    db.execute("update holdfast.steps set due_at = parked_due_at, parked_due_at = null, parked_for = null")

    assert claim_one(db).step_id == odd


@pytest.mark.unsound
def test_held_steps_that_cannot_be_rescued_do_not_hide_those_that_can(db: DB, clock: Clock) -> None:
    """A full batch of them in front, longest silent"""
    odd = stuck_and_held(db, 10)
    start(db)
    task = claim_one(db)
    clock.advance(LEASE + seconds(1))

    assert rescue(db, batch=10) == []
    assert rescue(db, batch=10) == [(task.step_id, "expired")]

    assert all(column(db, i, "parked_for") == "move" for i in odd)
    ((level, message),) = notes(db, odd[0])
    assert level == "error"
    assert all(word in message.split() for word in ("test.stuck", "expired"))
    assert rescue(db, batch=10) == []
    assert len(notes(db, odd[0])) == 1
    assert {invariant for invariant, _ in violations(db)} == {"machine_has_the_move"}


@pytest.mark.unsound
def test_rescuable_and_other_steps_in_one_batch(db: DB, clock: Clock) -> None:
    (odd,) = stuck_and_held(db, 1)
    start(db)
    task = claim_one(db)
    clock.advance(LEASE + seconds(1))

    assert rescue(db) == [(task.step_id, "expired")]

    assert column(db, odd, "lease_id") is not None


def test_the_worker_of_a_step_that_was_set_aside_may_still_finish_it(db: DB, clock: Clock) -> None:
    (odd,) = stuck_and_held(db, 1)
    clock.advance(seconds(11))
    rescue(db)
    row = step_row(db, odd)

    settled = db.execute(
        "select event from holdfast.settle_steps(%s)",
        [f'[{{"step_id": {odd}, "lease_id": {row["lease_id"]}, "outcome": "done"}}]'],
    ).fetchall()

    assert settled == [("succeeded",)]
    assert column(db, odd, "parked_for") is None


def test_a_released_step_whose_kind_is_served_no_more_is_parked(db: DB, clock: Clock) -> None:
    start(db, "print")
    step = claim_one(db, "printer", kinds=["print"])
    settle(db, step, Release())
    clock.advance(seconds(200))

    assert claim(db, "mailer", kinds=["mail"]) == []

    assert column(db, step.step_id, "parked_for") == "handler"
    settle(db, claim_one(db, "printer", kinds=["print"]), Done())
