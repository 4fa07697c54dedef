"""How runs and steps may end beside well, badly and cancelled: in part, and undone."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail
from holdfast.testing import events
from kernel.steps import DB, add_machine, claim, counts, node, settle

pytestmark = pytest.mark.one_server
RUN = """
queued:open     started         applying:held
applying:held   all_succeeded   applied:over=succeeded
applying:held   some_failed     partial:over=partial
applying:held   none_succeeded  failed:over=failed
applying:held   blocked         partial:over=partial
partial:over=partial    rolled_back  rolled_back:over=undone
applied:over=succeeded  rolled_back  rolled_back:over=undone
"""
STEP = """
queued:open     claimed    applying:held
applying:held   succeeded  applied:over=succeeded
applying:held   failed     failed:over=failed
applied:over=succeeded  rolled_back  rolled_back:over=undone
"""
UNDO = """
select holdfast.set_actor('system', 'rollback'),
       (select count(*) from holdfast.move_steps(
          array[(%s, null, 'rolled_back', null, null, null, null)::holdfast.step_move])),
       holdfast.set_actor()
"""


@pytest.fixture
def batch(db: DB) -> UUID:
    """A run of two targets and one that waits for both."""
    add_machine(db, "test.run", RUN, initial="queued:open", subject="run")
    add_machine(db, "test.target", STEP, initial="queued:open")
    plan: list[dict[str, Any]] = [node("a"), node("b"), node("c", "a", "b")]
    return run(db, calls.start_run("test.run", "prices", "test.target", steps=plan))[0]


def undo(db: DB, step_id: int) -> None:
    with db.transaction():
        db.execute(UNDO, [step_id])


def outcome(db: DB, run_id: UUID) -> str | None:
    return run(db, calls.run_results([run_id]))[0].outcome


def test_a_run_with_successes_and_failures_ends_in_part(db: DB, batch: UUID) -> None:
    a, b = claim(db, batch=2)
    settle(db, a, Done())
    settle(db, b, Fail("bad"))

    assert outcome(db, batch) == "partial"
    assert run(db, calls.violations()) == []


def test_what_is_undone_has_succeeded_in_its_runs_counts(db: DB, batch: UUID) -> None:
    """And lets in what waits for it once: when it succeeded."""
    a, b = claim(db, batch=2)
    settle(db, a, Done({"price": 1}))
    before = counts(db, batch)

    undo(db, a.step_id)

    assert counts(db, batch) == before
    (row,) = run(db, calls.step_results([a.step_id]))
    assert (row.outcome, row.result) == ("undone", {"price": 1})
    assert events(db, step=a.step_id)[-1] == "rolled_back"
    assert claim(db) == []
    settle(db, b, Done())
    (c,) = claim(db)
    settle(db, c, Done())
    assert outcome(db, batch) == "succeeded"
    undo(db, c.step_id)
    assert outcome(db, batch) == "succeeded"
    assert run(db, calls.violations()) == []


def test_a_run_is_undone_after_it_ended(db: DB, batch: UUID) -> None:
    a, b = claim(db, batch=2)
    settle(db, a, Done())
    settle(db, b, Fail("bad"))
    before = counts(db, batch)

    with db.transaction():
        db.execute("select holdfast.set_actor('system', 'rollback')")
        db.execute("select holdfast.move_runs(array[%s], 'rolled_back', holdfast.clock())", [batch])

    assert (outcome(db, batch), counts(db, batch)) == ("undone", before)


def test_a_step_is_undone_by_hand_too(db: DB, batch: UUID) -> None:
    a, _ = claim(db, batch=2)
    settle(db, a, Done())
    before = counts(db, batch)

    db.execute("update holdfast.steps set state = 'rolled_back' where id = %s", [a.step_id])

    assert counts(db, batch) == before
    assert run(db, calls.violations()) == []
