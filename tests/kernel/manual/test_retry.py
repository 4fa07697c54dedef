"""Retry and resolve by hand: of a step and of a whole run; and wishes that cannot be had."""

from __future__ import annotations

import threading
from datetime import timedelta

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry
from holdfast.testing import events, journal
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
    settle,
    start,
    start_flow,
    states,
    until_blocked,
    violations,
    wide_run,
    wish_in_chunks,
)


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
            with pytest.raises(errors.WrongState, match=str(step_id)):
                run(db, wish(str(step_id)))

    assert fingerprint(db) == before


def test_a_wish_for_what_is_not_there_is_refused(db: DB) -> None:
    for wish in (calls.cancel, calls.retry, calls.resolve):
        for id_ in ("999", "0", "018f0000-0000-7000-8000-000000000000", "x", "", "1 or 1", "9" * 30):
            with pytest.raises(errors.NotFound, match="run or step"):
                run(db, wish(id_))


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


def test_a_step_tried_again_while_its_run_is_being_closed_opens_it_again(db: DB, dsn: str) -> None:
    """The settle that closes the run is not committed yet when the wish looks at it"""
    run_id = start_flow(db, node("a"), node("b"))
    failed, last = claim(db, batch=2)
    settle(db, failed, Fail("e"))
    with psycopg.connect(dsn, autocommit=True) as other:
        person = threading.Thread(target=lambda: run(other, calls.retry(str(failed.step_id))))
        with db.transaction():
            settle(db, last, Done())
            person.start()
            until_blocked(db, other.info.backend_pid)
        person.join()

    assert events(db, run=run_id) == ["created", "started", "some_failed", "reopened"]
    assert finish(db, claim(db)) == [failed.step_id]


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
        with pytest.raises(errors.WrongState, match=f"{run_id} is resolved_manually"):
            run(db, wish(str(run_id)))
    with pytest.raises(errors.WrongState, match="its steps"):
        run(db, calls.retry(str(failed.step_id)))


def test_a_task_has_the_budget_that_it_was_given_last(db: DB) -> None:
    """As a face gives it; a task that is over stays so"""
    change = "select holdfast.set_retry_budget(s, %s) from holdfast.steps s"
    step_id = start(db)
    db.execute(change, [5])
    for _ in range(3):  # one more than its policy gives
        settle(db, claim_one(db), Retry("e", after=timedelta(0)))
    db.execute(change, [4])

    settle(db, claim_one(db), Retry("e"))
    db.execute(change, [9])

    assert (column(db, step_id, "state"), column(db, step_id, "failures")) == ("error", 4)
    assert violations(db) == []
