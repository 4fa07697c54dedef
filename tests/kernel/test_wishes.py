"""What people wish for: cancel, retry and resolve, of a step and of a run."""

from __future__ import annotations

import threading
from uuid import UUID

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry
from holdfast.testing import Clock, events, journal
from kernel.steps import (
    DB,
    claim,
    claim_one,
    column,
    counts,
    fingerprint,
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
)


def wide_run(db: DB, steps: int) -> UUID:
    """A run of many steps."""
    return start_flow(db, *(node(f"s{n}") for n in range(steps)))


def wish_in_chunks(db: DB, run_id: UUID, event: str, chunk: int) -> None:
    """Wish for a run as wish_for_run does, but move only a small chunk of its steps at once."""
    with db.transaction():
        db.execute("select holdfast.act('user', 'test')")
        db.execute("select holdfast.move_runs(array[%s]::uuid[], %s, holdfast.clock())", [run_id, event])
        db.execute("update holdfast.runs set moving = %s where id = %s", [event, run_id])
        db.execute("select holdfast.move_run_steps(%s, %s)", [run_id, chunk])
        db.execute("select holdfast.act()")


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


def test_a_wish_that_the_state_does_not_allow_is_refused(db: DB) -> None:
    """W-31"""
    done, failed, running, cancelled, pending = (start(db) for _ in range(5))
    for step, outcome in zip(claim(db, batch=3), (Done(), Fail("e"), None), strict=True):
        assert outcome is None or settle(db, step, outcome)
    run(db, calls.cancel(str(cancelled)))
    before = fingerprint(db)

    for wish, step_ids in (
        (calls.cancel, (done, failed, cancelled)),
        (calls.retry, (done, running, cancelled, pending)),
        (calls.resolve, (done, running, cancelled, pending)),
    ):
        for step_id in step_ids:
            with pytest.raises(errors.WrongState, match=f"step {step_id} is .* and cannot be"):
                run(db, wish(str(step_id)))

    assert fingerprint(db) == before


def test_a_wish_for_what_is_not_there_is_refused(db: DB) -> None:
    for wish in (calls.cancel, calls.retry, calls.resolve):
        for id_ in ("999", "0", "018f0000-0000-7000-8000-000000000000", "x", "", "1 or 1", "9" * 30):
            with pytest.raises(errors.NotFound, match="there is no run or step"):
                run(db, wish(id_))


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


def test_a_failed_step_tried_again_opens_its_run_again(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b", "a"))
    failed = claim_one(db)
    settle(db, failed, Fail("e"))
    assert run_row(db, run_id)["state"] == "error"

    assert run(db, calls.retry(str(failed.step_id))) == ["pending"]

    row = run_row(db, run_id)
    assert (row["state"], row["finished_at"], row["started_at"]) == ("pending", None, None)
    assert counts(db, run_id) == {"total": 2, "live": 1}
    finish(db, claim(db))
    finish(db, claim(db))
    assert run_row(db, run_id)["state"] == "complete"
    assert events(db, run=run_id) == ["created", "started", "blocked", "reopened", "started", "all_succeeded"]


def test_a_failed_step_tried_again_while_its_run_goes_on_leaves_the_run_alone(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b"))
    one, two = claim(db, batch=2)
    settle(db, one, Fail("e"))

    run(db, calls.retry(str(one.step_id)))

    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("in_progress", {"total": 2, "live": 2})
    finish(db, [two, *claim(db)])
    assert run_row(db, run_id)["state"] == "complete"


def test_a_run_tried_again_tries_all_its_failed_steps(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b"), node("c"), node("d", "a"))
    one, two, three = claim(db, batch=3)
    settle(db, one, Fail("e"))
    settle(db, two, Fail("e"))
    settle(db, three, Done())

    assert run(db, calls.retry(str(run_id))) == ["pending"]

    assert states(db, run_id) == {"a": "pending", "b": "pending", "c": "complete", "d": "pending"}
    assert counts(db, run_id) == {"total": 4, "live": 2, "succeeded": 1}
    finish(db, claim(db, batch=10))
    finish(db, claim(db, batch=10))
    assert run_row(db, run_id)["state"] == "complete"


def test_a_run_with_more_failed_steps_than_a_chunk_stays_open_until_all_are_moved(db: DB) -> None:
    run_id = wide_run(db, 25)
    for step in claim(db, batch=25):
        settle(db, step, Fail("e"))
    wish_in_chunks(db, run_id, "reopened", 10)

    finish(db, claim(db, batch=10))

    assert run_row(db, run_id)["finished_at"] is None
    assert [run(db, calls.upkeep(batch=10))[0].moved for _ in range(2)] == [10, 5]
    finish(db, claim(db, batch=25))
    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("complete", {"total": 25, "succeeded": 25})


def test_a_resolved_step_lets_its_children_go_on(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b", "a"))
    failed = claim_one(db)
    settle(db, failed, Fail("e"))

    assert run(db, calls.resolve(str(failed.step_id), "done by hand")) == ["resolved_manually"]

    assert counts(db, run_id) == {"total": 2, "live": 1, "succeeded": 1}
    finish(db, claim(db))
    assert run_row(db, run_id)["state"] == "complete"
    entry = journal(db, step=failed.step_id)[-1]
    assert (entry.event, entry.actor_kind, entry.reason) == ("resolved", "user", "done by hand")


def test_a_waiting_step_can_be_resolved_and_its_parents_end_changes_nothing(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b", "a"), node("c", "b"))

    run(db, calls.resolve(str(ids_by_name(db, run_id)["b"])))

    steps = claim(db, batch=10)
    assert sorted(s.kind for s in steps) == ["a", "c"]
    assert counts(db, run_id) == {"total": 3, "live": 2, "succeeded": 1}
    finish(db, steps)
    assert states(db, run_id) == {"a": "complete", "b": "resolved_manually", "c": "complete"}
    assert run_row(db, run_id)["state"] == "complete"


def test_a_failed_run_can_be_resolved_and_is_then_final(db: DB) -> None:
    run_id = start_flow(db, node("a"))
    failed = claim_one(db)
    settle(db, failed, Fail("e"))

    assert run(db, calls.resolve(str(run_id), "refunded")) == ["resolved_manually"]

    assert column(db, failed.step_id, "state") == "error"
    for wish in (calls.retry, calls.cancel, calls.resolve):
        with pytest.raises(errors.WrongState, match=f"run {run_id} is resolved_manually"):
            run(db, wish(str(run_id)))
    with pytest.raises(errors.WrongState, match="its steps stay as they are"):
        run(db, calls.retry(str(failed.step_id)))


def test_a_parked_or_retried_step_can_be_cancelled(db: DB) -> None:
    parked, retried = start(db, "nobody's"), start(db, "mail")
    settle(db, claim_one(db, kinds=["mail"]), Retry("e", after=seconds(9)))
    assert column(db, parked, "parked_for") == "handler"

    for step_id in (parked, retried):
        assert run(db, calls.cancel(str(step_id))) == ["cancelled"]

    assert (column(db, parked, "parked_for"), column(db, parked, "parked_due_at")) == (None, None)
    assert claim(db, batch=10) == []
