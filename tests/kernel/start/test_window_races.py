"""Calls that add to a large run, queue it or resume it, beside others that have locked its steps."""

from __future__ import annotations

from uuid import UUID

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.meeting import failures, meet
from kernel.plans import begun, draft, halt, install
from kernel.steps import DB, claim, counts, finish, run_row, stage, value, violations

CANCEL = "select holdfast.cancel(%s)"


def rush(db: DB, items: int) -> UUID:
    """Make a run that is queued at once, and end its first window."""
    run_id = UUID(str(run(db, calls.start_run("test.rush", "plan", "test.item"))[0]))
    stage(db, [("item", "{}")] * items, run_id=run_id, machine="test.item")
    finish(db, claim(db, batch=10))
    return run_id


def worked_off(db: DB) -> None:
    while taken := claim(db, batch=50):
        finish(db, taken)


def test_steps_that_are_added_while_the_last_lot_is_chosen_are_admitted(db: DB, dsn: str) -> None:
    """The lot has found that no more are left, and waits for a step that somebody has locked."""
    install(db, 10)
    run_id = rush(db, 12)
    added = [("item", "{}")] * 3

    answers = meet(
        db, dsn, "after update on holdfast.steps",
        lambda one: claim(one, "b", batch=50),
        lambda other: stage(other, added, run_id=run_id, machine="test.item"),
    )  # fmt: skip

    assert failures(answers) == []
    finish(db, answers[0])  # not before: it would end the run
    worked_off(db)
    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("done", {"total": 15, "succeeded": 15})
    assert violations(db) == []


@pytest.mark.parametrize("action", ["queue", "resume"])
def test_a_run_and_one_of_its_steps_are_changed_at_once_without_a_deadlock(db: DB, dsn: str, action: str) -> None:
    """Steps are locked before runs: one calls for the run, the other cancels its first step."""
    install(db, 10)
    run_id = draft(db, 30) if action == "queue" else begun(db, 30)
    if action == "resume":
        halt(db, "pause", run_id)
        assert claim(db, batch=50) == []  # parks what is due
    first = str(value(db, "select min(id) from holdfast.steps where run_id = %s", run_id))
    change = f"select holdfast.{action}_run(%s)"  # not by `run`, which repeats what a deadlock has ended

    def cancels(connection: DB) -> None:
        with connection.transaction():
            connection.execute("select from holdfast.steps where id = %s for update", [first])
            connection.execute("update public.gate set passed = true")
            connection.execute(CANCEL, [first])

    db.execute("create table public.gate as select false as passed")
    db.execute("grant all on public.gate to public")
    answers = meet(
        db, dsn, "after update on public.gate", cancels,
        lambda connection: connection.execute(change.encode(), [str(run_id)]),
    )  # fmt: skip

    assert failures(answers) == []
    worked_off(db)
    assert counts(db, run_id)["succeeded"] == 29
    assert violations(db) == []
