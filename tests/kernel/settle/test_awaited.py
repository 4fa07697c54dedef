"""Steps that a held step plans and then waits for."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Rollback

from holdfast.errors import CycleFound, LeaseLost, WrongState
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Continue, Settlement
from holdfast.testing import Clock
from kernel.steps import DB, LEASE, claim, column, finish, node, seconds, start_flow, value, violations


def spread(db: DB, *names: str, awaited: list[str] | None = None) -> Any:
    """Start a run of a step and one that waits for it; claim the first, and let it plan others in one transaction."""
    run_id = start_flow(db, node("open"), node("close", "open"))
    (opened,) = claim(db)
    with db.transaction():
        run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node(name) for name in names], awaited))
        run(db, calls.settle_steps([Settlement(opened.step_id, opened.lease_id, Continue({"planned": len(names)}))]))
    return run_id, opened


def test_a_step_waits_for_what_it_planned_and_comes_again_when_all_is_done(db: DB) -> None:
    _, opened = spread(db, "a", "b")
    planned = claim(db, batch=9)
    assert [step.kind for step in planned] == ["a", "b"]

    finish(db, planned[:1])
    assert claim(db) == []
    finish(db, planned[1:])

    (again,) = claim(db)
    assert (again.step_id, again.attempt, again.cursor) == (opened.step_id, 2, {"planned": 2})


def test_it_waits_only_for_those_that_it_names(db: DB) -> None:
    _, opened = spread(db, "a", "b", awaited=["b"])
    (b,) = claim(db, batch=1, kinds=["b"])

    finish(db, [b])

    assert column(db, opened.step_id, "waits") == 0
    assert column(db, opened.step_id, "due_at") is not None


def test_one_whose_lease_is_lost_plans_nothing(db: DB, clock: Clock) -> None:
    """R10: the fence"""
    start_flow(db, node("open"))
    (opened,) = claim(db)
    clock.advance(LEASE + seconds(1))
    run(db, calls.rescue_steps())

    with pytest.raises(LeaseLost):
        run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node("a")]))

    assert value(db, "select count(*) from holdfast.steps") == 1


def test_a_run_that_was_cancelled_takes_no_more_steps(db: DB) -> None:
    run_id = start_flow(db, node("open"))
    (opened,) = claim(db)
    db.execute("update holdfast.runs set moving = null where id = %s", [run_id])
    run(db, calls.cancel(str(run_id)))

    with pytest.raises((LeaseLost, WrongState)):
        run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node("a")]))


def test_what_is_not_committed_with_the_settle_was_not_planned(db: DB) -> None:
    start_flow(db, node("open"))
    (opened,) = claim(db)
    with db.transaction() as transaction:
        run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node("a")]))
        raise Rollback(transaction)

    assert value(db, "select count(*) from holdfast.steps") == 1
    assert column(db, opened.step_id, "waits") == 0


def test_a_circle_through_what_was_planned_is_refused(db: DB) -> None:
    """T-23: a planned step cannot wait for what waits for its planner, nor can that be written by hand"""
    start_flow(db, node("open"), node("close", "open"))
    (opened,) = claim(db)
    with pytest.raises(CycleFound), db.transaction():
        run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node("a", "close")]))

    run(db, calls.add_awaited(opened.step_id, opened.lease_id, [node("a")]))
    a = value(db, "select step_id from holdfast.run_steps where name = 'a'")
    close = value(db, "select step_id from holdfast.run_steps where name = 'close'")
    with pytest.raises(Exception, match="each other"):
        db.execute("insert into holdfast.edges values (%s, %s)", [close, a])
    assert violations(db) == []
