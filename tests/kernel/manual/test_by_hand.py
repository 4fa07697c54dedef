"""Plain UPDATEs: along a legal pair they are journaled as by_hand and the kernel catches up; all others are refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translate
from holdfast.models import Done, Fail, Release
from holdfast.testing import events, journal
from kernel.steps import (
    DB,
    claim,
    claim_one,
    counts,
    fingerprint,
    finish,
    ids_by_name,
    node,
    run_row,
    settle,
    start,
    start_flow,
    value,
    violations,
)

OVER = "due_at = null, lease_id = null, lease_owner = null, lease_until = null, finished_at = holdfast.clock()"
FREE = "due_at = holdfast.clock(), lease_id = null, lease_owner = null, lease_until = null, finished_at = null"
HELD = "due_at = null, lease_id = 999, lease_owner = 'me', lease_until = holdfast.clock() + '1 h', finished_at = null"


def move(db: DB, step_id: int, state: str, columns: str) -> None:
    """Move a step as a person with psql does."""
    db.execute(f"update holdfast.steps set state = %s, {columns} where id = %s", [state, step_id])


def refused(db: DB, statement: str, *arguments: Any) -> errors.HoldfastError | None:
    """Run a statement that must be refused, in SQL and as Python names it, and leave everything as it was."""
    before = fingerprint(db)
    with pytest.raises(psycopg.Error) as caught:
        db.execute(statement, arguments)
    assert fingerprint(db) == before
    return translate(caught.value)


def used(db: DB) -> int:
    """A task that was claimed and handed back."""
    step_id = start(db)
    settle(db, claim_one(db), Release())
    return step_id


@pytest.mark.parametrize("arrange", [start, used], ids=["a fresh row", "a used row"])
def test_a_legal_change_is_journaled_with_who_made_it(db: DB, arrange: Any) -> None:
    """W-42 C-69 X-07"""
    step_id = arrange(db)

    move(db, step_id, "cancelled", OVER)

    entry = journal(db, step=step_id)[-1]
    assert (entry.from_state, entry.event, entry.to_state) == ("pending", "by_hand", "cancelled")
    assert (entry.actor_kind, entry.actor) == ("user", value(db, "select session_user::text"))
    assert claim(db) == []


@pytest.mark.parametrize("arrange", [start, used], ids=["a fresh row", "a used row"])
def test_an_illegal_change_is_refused(db: DB, arrange: Any) -> None:
    """RN001, and nothing else touched"""
    step_id = arrange(db)

    for state, columns in (("done", OVER), ("error", OVER), ("nonsense", FREE)):
        error = refused(db, f"update holdfast.steps set state = %s, {columns} where id = %s", state, step_id)
        assert isinstance(error, errors.IllegalTransition)
        assert f"work.task {step_id}" in str(error)

    assert claim_one(db).step_id == step_id


def test_what_is_over_stays_over(db: DB) -> None:
    """W-31: SQL change refused"""
    done = start(db)
    settle(db, claim_one(db), Done())

    for state, columns in (("pending", FREE), ("running", HELD), ("error", OVER), ("cancelled", OVER)):
        error = refused(db, f"update holdfast.steps set state = %s, {columns} where id = %s", state, done)
        assert isinstance(error, errors.IllegalTransition)
        assert "it is final" in str(error)


def test_one_illegal_row_refuses_the_whole_statement(db: DB) -> None:
    step_ids = [start(db), start(db)]
    settle(db, claim_one(db), Done())

    error = refused(db, f"update holdfast.steps set state = 'cancelled', {OVER} where id = any (%s)", step_ids)

    assert isinstance(error, errors.IllegalTransition)


def test_a_state_goes_with_its_columns(db: DB) -> None:
    """W-40 W-41: over without an end, held without a lease, held and free, open with an end"""
    start(db)

    for state, columns in (
        ("cancelled", FREE),
        ("running", "due_at = null"),
        ("running", FREE),
        ("pending", "due_at = null, finished_at = holdfast.clock()"),
    ):
        error = refused(db, f"update holdfast.steps set state = %s, {columns}", state)
        assert isinstance(error, errors.IllegalTransition)


def test_a_row_cannot_change_its_machine_or_its_number(db: DB) -> None:
    step_id = start(db)
    run(db, calls.cancel(str(step_id)))

    assert isinstance(refused(db, "update holdfast.steps set machine = 'flow.step'"), errors.IllegalTransition)
    assert isinstance(refused(db, "update holdfast.steps set id = id + 100"), errors.IllegalTransition)
    assert isinstance(
        refused(db, f"update holdfast.steps set id = id + 100, state = 'pending', {FREE}"), errors.IllegalTransition
    )


def test_a_step_taken_by_hand_can_be_settled_under_the_lease_it_was_given(db: DB) -> None:
    step_id = start(db)

    move(db, step_id, "running", HELD)

    assert claim(db) == []
    assert db.execute(
        "select event from holdfast.settle_steps(%s)",
        [f'[{{"step_id": {step_id}, "lease_id": 999, "outcome": "done"}}]'],
    ).fetchall() == [("succeeded",)]
    assert events(db, step=step_id) == ["by_hand", "succeeded"]


def test_a_failed_task_reset_by_hand_is_tried_again(db: DB) -> None:
    """W-32: manual reset works and is audited"""
    step_id = start(db)
    settle(db, claim_one(db), Fail("e"))

    move(db, step_id, "pending", FREE)

    assert claim_one(db).attempt == 2
    assert events(db, step=step_id) == ["claimed", "failed", "by_hand", "claimed"]


def flow(db: DB) -> tuple[UUID, dict[str, int]]:
    run_id = start_flow(db, node("a"), node("b", "a"))
    return run_id, ids_by_name(db, run_id)


def test_children_of_a_step_finished_by_hand_go_on_and_the_run_is_counted_anew(db: DB) -> None:
    run_id, ids = flow(db)

    move(db, ids["a"], "resolved_manually", OVER)

    assert counts(db, run_id) == {"total": 2, "live": 1, "succeeded": 1}
    assert finish(db, claim(db)) == [ids["b"]]
    assert run_row(db, run_id)["state"] == "complete"


def test_a_run_whose_last_live_step_is_ended_by_hand_is_closed(db: DB) -> None:
    run_id, ids = flow(db)
    claim_one(db)

    move(db, ids["a"], "cancelled", OVER)

    assert counts(db, run_id) == {"total": 2, "cancelled": 1}
    assert run_row(db, run_id)["state"] == "error"
    entry = journal(db, run=run_id)[-1]
    assert (entry.event, entry.actor_kind, entry.actor) == ("blocked", "system", "by_hand")
    assert entry.reason == f"after a change by {value(db, 'select session_user::text')}"


def test_a_step_of_an_ended_run_reset_by_hand_opens_the_run_again(db: DB) -> None:
    run_id, ids = flow(db)
    settle(db, claim_one(db), Fail("e"))
    assert run_row(db, run_id)["state"] == "error"

    move(db, ids["a"], "pending", FREE)

    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("pending", {"total": 2, "live": 1})
    finish(db, claim(db))
    finish(db, claim(db))
    assert run_row(db, run_id)["state"] == "complete"


def test_many_steps_of_many_runs_moved_by_one_statement(db: DB) -> None:
    runs = [flow(db)[0] for _ in range(20)]

    db.execute(f"update holdfast.steps set state = 'resolved_manually', {OVER} where kind = 'a'")

    assert [counts(db, r) for r in runs] == [{"total": 2, "live": 1, "succeeded": 1}] * 20
    assert len(finish(db, claim(db, batch=100))) == 20


def test_a_change_that_is_no_move_is_neither_journaled_nor_refused(db: DB) -> None:
    run_id, ids = flow(db)

    db.execute("update holdfast.steps set priority = 5, input = '1' where id = %s", [ids["a"]])

    assert events(db, step=ids["a"]) == []
    assert counts(db, run_id) == {"total": 2, "live": 1}


def test_a_priority_raised_by_hand_is_seen_by_the_next_claim(db: DB) -> None:
    """X-04: also where the queue never had one so high"""
    ids = [start(db) for _ in range(3)]

    db.execute("update holdfast.steps set priority = 9 where id = %s", [ids[2]])

    assert [claim_one(db).step_id for _ in ids] == [ids[2], ids[0], ids[1]]


@pytest.mark.unsound
def test_a_step_above_all_that_its_queue_knows_is_a_violation(db: DB) -> None:
    """X-13: no claim would look there"""
    step_id = start(db)
    db.execute("set session_replication_role = replica")
    db.execute("update holdfast.steps set priority = 9")

    assert violations(db) == [("priority_is_looked_at", f"step {step_id}")]


def test_a_run_is_moved_by_hand_along_its_machine_only(db: DB) -> None:
    run_id, _ = flow(db)

    error = refused(db, "update holdfast.runs set state = 'complete', finished_at = holdfast.clock()")
    assert isinstance(error, errors.IllegalTransition)
    assert isinstance(refused(db, "update holdfast.runs set state = 'cancelled'"), errors.IllegalTransition)
    db.execute("update holdfast.runs set state = 'in_progress', started_at = holdfast.clock() where id = %s", [run_id])

    assert [(e.event, e.to_state, e.actor_kind) for e in journal(db, run=run_id)][-1] == (
        "by_hand",
        "in_progress",
        "user",
    )


def test_a_session_that_calls_itself_a_worker_moves_nothing_that_its_machine_does_not_list(db: DB) -> None:
    """The settings that carry the actor are no key: without a listed event the move is refused"""
    step_id = start(db)
    db.execute("set holdfast.actor_kind = 'worker'")

    error = refused(
        db, f"update holdfast.steps set state = 'done', last_event = 'succeeded', {OVER} where id = %s", step_id
    )
    assert isinstance(error, errors.IllegalTransition)
    error = refused(db, f"update holdfast.steps set state = 'cancelled', {OVER} where id = %s", step_id)

    assert isinstance(error, errors.IllegalTransition)
