"""What the random moves found, each told in the shortest way."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events

DB = Connection[Any]


def flow(db: DB, kind: str, priority: int = 0) -> int:
    """Start a workflow of one step, and give the step."""
    plan = [{"name": "s", "kind": kind, "priority": priority}]
    (run_id,) = run(db, calls.start_run("flow.task", "found", "flow.step", steps=plan))
    ((step_id,),) = db.execute("select step_id from holdfast.run_steps where run_id = %s", [run_id])
    return int(step_id)


def test_a_batch_goes_on_to_lower_priorities_where_it_passed_over_a_kind_of_others(db: DB, clock: Clock) -> None:
    """The steps of a run, sorted before those without one, hid where the look had come to."""
    clock.freeze()
    low = flow(db, "mail")
    (first,) = run(db, calls.start_task("mail", priority=1))
    run(db, calls.start_task("page", priority=1))
    last = flow(db, "mail", priority=1)

    claimed = run(db, calls.claim_steps("a", kinds=["mail"], batch=3))

    assert sorted(c.step_id for c in claimed) == sorted([low, first, last])


def test_a_step_that_a_person_put_back_into_error_is_tried_again(db: DB) -> None:
    """It had not failed by the count, and was taken for one whose machine has no way on."""
    step_id = flow(db, "mail")
    db.execute(
        """update holdfast.steps
              set state = 'in_progress', due_at = null, lease_id = nextval('holdfast.lease_ids'), lease_owner = 'hand',
                  lease_until = holdfast.clock()"""
    )
    db.execute(
        """update holdfast.steps
              set state = 'error', due_at = holdfast.clock(), lease_id = null, lease_owner = null, lease_until = null"""
    )

    claimed = run(db, calls.claim_steps("a"))

    assert [c.step_id for c in claimed] == [step_id]
    assert events(db, step=step_id) == ["by_hand", "by_hand", "reopened", "claimed"]


@pytest.mark.parametrize("state", ["running", "cancelled"])
def test_a_parked_step_moved_by_hand_leaves_what_it_was_parked_for(db: DB, state: str) -> None:
    """Put back later, it was due although it was held or over, and each claim from its queue failed on it."""
    (step_id,) = run(db, calls.start_task("page"))
    assert run(db, calls.claim_steps("a", kinds=["mail"])) == []

    with pytest.raises(psycopg.errors.CheckViolation, match="parked_only_when_free"):
        db.execute(
            """update holdfast.steps
                  set state = %(state)s, finished_at = case when %(state)s = 'cancelled' then holdfast.clock() end,
                      lease_id = case when %(state)s = 'running' then nextval('holdfast.lease_ids') end,
                      lease_owner = case when %(state)s = 'running' then 'hand' end,
                      lease_until = case when %(state)s = 'running' then holdfast.clock() end""",
            {"state": state},
        )

    assert [c.step_id for c in run(db, calls.claim_steps("b"))] == [step_id]
