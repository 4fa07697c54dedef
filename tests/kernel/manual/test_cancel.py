"""Cancel: of a step and of a whole run, held or not, all at once or in chunks."""

from __future__ import annotations

import threading

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Retry
from holdfast.testing import Clock, events, journal
from kernel.steps import (
    DB,
    claim,
    claim_one,
    column,
    counts,
    finish,
    ids_by_name,
    node,
    run_row,
    seconds,
    settle,
    start,
    start_flow,
    states,
    step_row,
    until_blocked,
    value,
    wide_run,
    wish_in_chunks,
)


def test_a_task_that_waits_can_be_cancelled(db: DB, clock: Clock) -> None:
    step_id = start(db, due_at=clock.freeze() + seconds(60))

    assert run(db, calls.cancel(str(step_id), "not needed")) == ["cancelled"]

    row = step_row(db, step_id)
    assert (row["state"], row["due_at"], row["finished_at"]) == ("cancelled", None, clock.now())
    entry = journal(db, step=step_id)[-1]
    assert (entry.event, entry.actor_kind, entry.reason) == ("cancelled", "user", "not needed")
    assert entry.actor == value(db, "select session_user::text")
    clock.advance(seconds(100))
    assert claim(db) == []


def test_a_held_task_can_be_cancelled_and_its_worker_learns_so(db: DB) -> None:
    """W-61: the settle is refused, the renewal gives nothing"""
    start(db)
    step = claim_one(db)

    run(db, calls.cancel(str(step.step_id)))

    assert run(db, calls.renew_leases("a", [step.lease_id])) == []
    assert settle(db, step, Done("late")) == []
    assert (column(db, step.step_id, "state"), column(db, step.step_id, "result")) == ("cancelled", None)
    assert journal(db, step=step.step_id)[-1].lease_id == step.lease_id


def test_a_cancelled_step_does_not_let_its_children_go_on(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b", "a"), node("c"))
    run(db, calls.cancel(str(ids_by_name(db, run_id)["a"])))

    finish(db, claim(db, batch=10))

    assert states(db, run_id) == {"a": "cancelled", "b": "pending", "c": "complete"}
    assert (run_row(db, run_id)["state"], events(db, run=run_id)[-1]) == ("error", "blocked")
    assert counts(db, run_id) == {"total": 3, "succeeded": 1, "cancelled": 1}


def test_a_run_whose_only_step_is_cancelled_before_it_began_makes_both_moves(db: DB) -> None:
    run_id = start_flow(db, node("a"))

    run(db, calls.cancel(str(ids_by_name(db, run_id)["a"])))

    assert events(db, run=run_id) == ["created", "started", "none_succeeded"]


def test_a_cancelled_run_takes_all_its_steps_with_it(db: DB, clock: Clock) -> None:
    """Held, due, waiting and backing off; what was done stays done"""
    run_id = start_flow(db, node("done"), node("held"), node("retried"), node("due"), node("waiting", "due"))
    done, held, retried = claim(db, batch=3)
    settle(db, done, Done())
    settle(db, retried, Retry("e"))

    assert run(db, calls.cancel(str(run_id), "stop")) == ["cancelled"]

    assert states(db, run_id) == {
        "done": "complete", "held": "cancelled", "retried": "cancelled", "due": "cancelled", "waiting": "cancelled"
    }  # fmt: skip
    assert counts(db, run_id) == {"total": 5, "succeeded": 1, "cancelled": 4}
    assert settle(db, held, Done()) == []
    row = run_row(db, run_id)
    assert (row["finished_at"] is not None, row["moving"]) == (True, None)
    assert [(e.event, e.reason) for e in journal(db, run=run_id)][-1] == ("cancelled", "stop")
    clock.advance(seconds(1000))
    assert claim(db, batch=10) == []


def test_a_run_with_more_steps_than_a_chunk_is_cancelled_by_upkeep(db: DB) -> None:
    run_id = wide_run(db, 25)
    held = claim(db, batch=5)

    wish_in_chunks(db, run_id, "cancelled", 10)

    assert (run_row(db, run_id)["moving"], counts(db, run_id)["cancelled"]) == ("cancelled", 10)
    assert finish(db, held) == []
    assert [run(db, calls.upkeep(batch=10))[0].moved for _ in range(3)] == [10, 5, 0]
    assert (run_row(db, run_id)["moving"], counts(db, run_id)) == (None, {"total": 25, "cancelled": 25})


def test_a_claim_that_meets_a_step_of_a_cancelled_run_cancels_it(db: DB) -> None:
    run_id = wide_run(db, 25)
    start(db)
    wish_in_chunks(db, run_id, "cancelled", 10)

    assert [s.kind for s in claim(db, batch=100)] == ["mail"]

    assert counts(db, run_id) == {"total": 25, "cancelled": 25}
    assert run(db, calls.upkeep())[0].moved == 0
    assert run_row(db, run_id)["moving"] is None


def test_a_step_that_is_claimed_while_its_run_is_being_cancelled_is_cancelled_too(db: DB, dsn: str) -> None:
    """The cancel has read the step as due and waits for the claim's lock: it must not forget the step"""
    run_id = start_flow(db, node("a"), node("b"))
    claim_one(db)
    with psycopg.connect(dsn, autocommit=True) as other:
        canceller = threading.Thread(target=lambda: run(other, calls.cancel(str(run_id))))
        with db.transaction():
            claimed = claim_one(db)
            canceller.start()
            until_blocked(db, other.info.backend_pid)
        canceller.join()

    run(db, calls.upkeep())

    assert counts(db, run_id) == {"total": 2, "cancelled": 2}
    assert settle(db, claimed, Done()) == []


def test_a_run_that_ended_while_it_was_to_be_cancelled_is_left_as_it_ended(db: DB, dsn: str) -> None:
    run_id = start_flow(db, node("a"))
    step = claim_one(db)
    with psycopg.connect(dsn, autocommit=True) as other:
        said: list[str] = []

        def cancel() -> None:
            with pytest.raises(errors.WrongState) as caught:
                run(other, calls.cancel(str(run_id)))
            said.append(str(caught.value))

        person = threading.Thread(target=cancel)
        with db.transaction():
            finish(db, [step])
            person.start()
            until_blocked(db, other.info.backend_pid)
        person.join()

    assert said == [f"run {run_id} is complete and cannot be cancelled; complete is final for a flow.task"]


def test_a_parked_or_retried_step_can_be_cancelled(db: DB) -> None:
    parked, retried = start(db, "nobody's"), start(db, "mail")
    settle(db, claim_one(db, kinds=["mail"]), Retry("e", after=seconds(9)))
    assert column(db, parked, "parked_for") == "handler"

    for step_id in (parked, retried):
        assert run(db, calls.cancel(str(step_id))) == ["cancelled"]

    assert (column(db, parked, "parked_for"), column(db, parked, "parked_due_at")) == (None, None)
    assert claim(db, batch=10) == []
