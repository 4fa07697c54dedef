"""Requests for a task by plain SQL: what null means, which contexts are taken, and a run that never gets steps."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from flow.asking import rows
from holdfast.errors import BadInput
from holdfast.kernel import bulk, calls
from holdfast.kernel.db import run, translated
from holdfast.testing import Clock
from kernel.steps import node, seconds, value, violations

pytestmark = pytest.mark.one_server

DB = Connection[Any]
SCHEMA = {"type": "object", "required": ["order_id"]}
INITIALIZE = "select flow.initialize_task('o', %s, %s, about => %s)"
START = "select flow.start_task('o', %s)"
PLAN = Jsonb([node("a")])
WRONG = [Jsonb(None), Jsonb([]), Jsonb(["order_id"]), Jsonb("order_id"), Jsonb(7)]  # none is an object


@pytest.fixture
def defined(db: DB) -> DB:
    db.execute("select flow.define_flow('o', %s, context_schema => %s)", [PLAN, Jsonb(SCHEMA)])
    return db


@pytest.mark.parametrize("steps", [None, *WRONG])
def test_a_task_without_a_plan_of_steps_is_refused(db: DB, steps: Any) -> None:
    """T-18, T-23, C-57: also by the kernel's own function; nothing is stored"""
    functions = ["flow.initialize_task('o', %s)"]
    if steps is None or steps.obj != []:  # with [] the kernel makes a run whose steps are staged
        functions.append("holdfast.start_run('flow.task', 'o', 'flow.step', %s)")
    for function in functions:
        with pytest.raises(BadInput), translated():
            db.execute(f"select {function}", [steps])

    assert value(db, "select count(*) from holdfast.runs") == 0


@pytest.mark.parametrize("context", [None, *WRONG, Jsonb({})])
def test_a_start_without_the_required_fields_is_refused(defined: DB, context: Any) -> None:
    """T-16: null is an empty context; a list or text that holds the field's name has no field"""
    with pytest.raises(BadInput) as refused, translated():
        defined.execute(START, [context])

    assert ("order_id" if context is None or context.obj == {} else "context") in str(refused.value)
    assert value(defined, "select count(*) from holdfast.runs") == 0


@pytest.mark.parametrize("wrong", WRONG)
def test_a_context_and_what_is_said_about_a_task_are_objects(db: DB, wrong: Any) -> None:
    """T-16"""
    for context, about in ((wrong, Jsonb({})), (Jsonb({}), wrong)):
        with pytest.raises(BadInput), translated():
            db.execute(INITIALIZE, [PLAN, context, about])

    assert value(db, "select count(*) from holdfast.runs") == 0


def test_null_says_nothing_and_takes_nothing_away(db: DB) -> None:
    """T-16: of the context and of what is said about the task"""
    db.execute(INITIALIZE, [PLAN, Jsonb({"order_id": 1}), None])
    db.execute(INITIALIZE, [PLAN, None, Jsonb({"reason": "test"})])

    assert rows(db, "select context, reason from flow.tasks order by requested_at, task_id") == [
        {"context": {"order_id": 1}, "reason": None},
        {"context": {}, "reason": "test"},
    ]


def test_a_bulk_start_of_a_run_without_steps_is_refused(db: DB) -> None:
    """C-57: and the run is not there"""
    with pytest.raises(BadInput):
        bulk.start_steps(db, [], machine="flow.task", name="o", step_machine="flow.step")

    assert value(db, "select count(*) from holdfast.runs") == 0


@pytest.mark.unsound
def test_a_run_that_gets_no_steps_is_a_violation_after_an_hour(db: DB, clock: Clock) -> None:
    """C-57, X-13: until then its steps may be staged; cancelled, it is over"""
    clock.freeze()
    (run_id,) = run(db, calls.start_run("flow.task", "o", "flow.step", steps=[]))
    clock.advance(seconds(3600))
    early = violations(db)
    clock.advance(seconds(1))
    late = violations(db)
    run(db, calls.cancel(str(run_id)))

    assert early == []
    assert late == [("run_has_steps", f"run {run_id}")]
    assert violations(db) == []
