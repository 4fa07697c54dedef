"""Bad plans, rows and outcomes: cycles, strangers, states that are not initial. Refused, and nothing touched."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg.types.json import Jsonb

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translate
from holdfast.models import Done
from kernel.steps import (
    DB,
    add_steps,
    claim,
    claim_one,
    column,
    counts,
    fingerprint,
    finish,
    ids_by_name,
    node,
    settle,
    start,
    start_flow,
)


def refused(db: DB, error: type[errors.RefusedError], statement: str, *arguments: Any) -> str:
    """Run a statement that must be refused, see that all is as it was; what it was told."""
    before = fingerprint(db)
    with pytest.raises(psycopg.Error) as caught:
        db.execute(statement, arguments)
    assert fingerprint(db) == before
    ours = translate(caught.value)
    assert type(ours) is error
    return str(ours)


def refused_plan(db: DB, error: type[errors.RefusedError], *steps: Any) -> str:
    return refused(db, error, "select holdfast.start_run('flow.task', 'order', 'flow.step', %s)", Jsonb(steps))


def chain(db: DB, length: int) -> tuple[UUID, list[int]]:
    """A run of steps that each wait for the one before."""
    plan = [node("s0"), *(node(f"s{n}", f"s{n - 1}") for n in range(1, length))]
    run_id = start_flow(db, *plan)
    return run_id, list(ids_by_name(db, run_id).values())


def test_a_cycle_in_a_plan_is_refused(db: DB) -> None:
    """RN006: itself, two, three, three the other way round, a diamond's foot, two hundred"""
    for plan in (
        [node("a", "a")],
        [node("a", "b"), node("b", "a")],
        [node("a", "c"), node("b", "a"), node("c", "b")],
        [node("c", "b"), node("b", "a"), node("a", "c")],
        [node("root"), node("a", "root", "d"), node("b", "a"), node("c", "a"), node("d", "b", "c")],
        [node("s0", "s199"), *(node(f"s{n}", f"s{n - 1}") for n in range(1, 200))],
    ):
        assert "would wait for" in refused_plan(db, errors.CycleFound, *plan)


def test_a_plan_may_name_its_steps_in_any_order(db: DB) -> None:
    """Last first: every edge leads to a lower id, and none is a cycle"""
    run_id = start_flow(db, *(node(f"s{n}", f"s{n - 1}") for n in range(100, 0, -1)), node("s0"))

    assert counts(db, run_id) == {"total": 101, "live": 1}
    assert claim_one(db).kind == "s0"


def test_a_cycle_made_by_inserting_edges_is_refused(db: DB) -> None:
    """Long ones too, and by edges that lead to a higher id"""
    _, ids = chain(db, 50)
    insert = "insert into holdfast.edges values (%s, %s)"

    refused(db, errors.CycleFound, insert, ids[49], ids[0])
    refused(db, errors.CycleFound, insert, ids[1], ids[0])
    refused(db, errors.CycleFound, insert, ids[7], ids[7])


@pytest.mark.unsound
def test_an_ascending_edge_that_closes_an_old_descending_one_is_refused(db: DB) -> None:
    run_id = start_flow(db, *(node(name) for name in "abcd"))
    a, b, c, d = ids_by_name(db, run_id).values()
    db.execute("insert into holdfast.edges values (%s, %s), (%s, %s)", [d, b, b, c])

    refused(db, errors.CycleFound, "insert into holdfast.edges values (%s, %s)", c, d)
    refused(db, errors.CycleFound, "insert into holdfast.edges values (%s, %s), (%s, %s)", a, c, b, d)
    db.execute("insert into holdfast.edges values (%s, %s)", [a, d])


def test_edges_between_strangers_are_refused(db: DB) -> None:
    _, (one, *_) = chain(db, 2)
    _, (two, *_) = chain(db, 2)
    task, other = start(db), start(db)

    for edge in ((one, two), (one, task), (task, one), (task, other), (one, 10**9), (10**9, one)):
        refused(db, errors.BadInput, "insert into holdfast.edges values (%s, %s)", *edge)


def test_a_plan_that_cannot_be_carried_out_is_refused(db: DB) -> None:
    """Unknown parents, names twice, steps without a kind"""
    odd: list[list[Any]] = [
        [node("a", "nowhere")],
        [node("a"), {"kind": "b", "after": [None]}],
        [node("a"), {"kind": "b", "after": "a"}],
        [node("a"), {"kind": "b", "after": {"a": 1}}],
        [node("a"), node("a")],
        [{"name": "a"}],
        [{"kind": ""}],
        [{"kind": "k" * 201}],
        ["a"],
        [None],
        [node("a", priority=10)],
        [node("a", priority="high")],
        [node("a", policy="nowhere")],
        [node("a", due_at="someday")],
    ]
    for steps in odd:
        refused_plan(db, errors.BadInput, node("fine"), *steps)


def test_a_plan_is_an_array(db: DB) -> None:
    for plan in ("{}", "1", '"a"', "null"):
        said = refused(db, errors.BadInput, "select holdfast.start_run('flow.task', 'o', 'flow.step', %s)", plan)
        assert "steps" in said


def test_nulls_in_a_plan_are_as_if_they_were_left_out(db: DB) -> None:
    nothing = {"name": None, "after": None, "queue": None, "priority": None, "policy": None, "due_at": None}

    start_flow(db, {"kind": "a", **nothing}, {"kind": "b", **nothing})

    assert len(finish(db, claim(db, batch=10))) == 2


def test_added_steps_are_checked_against_those_of_the_run(db: DB) -> None:
    run_id = start_flow(db, node("a"))
    before = fingerprint(db)

    for steps in ([node("a")], [node("b", "c")], [node("b", "b")]):
        with pytest.raises(psycopg.Error) as caught:
            add_steps(db, run_id, *steps)
        assert isinstance(translate(caught.value), errors.BadInput | errors.CycleFound)

    assert fingerprint(db) == before


def test_a_run_of_an_unknown_machine_is_refused(db: DB) -> None:
    """Also a step's machine for a run, and a run's for a step"""
    steps = Jsonb([node("a")])
    start_run = "select holdfast.start_run(%s, 'order', %s, %s)"

    for machines in (("nowhere", "flow.step"), ("flow.task", "nowhere"), ("work.task", "flow.step"),
                     ("flow.task", "flow.task"), ("flow.task", None)):  # fmt: skip
        assert "there is no machine" in refused(db, errors.BadInput, start_run, *machines, steps)


def test_a_run_of_a_run_that_is_not_there_is_refused(db: DB) -> None:
    refused(db, errors.NotFound, "select holdfast.start_run('flow.task', 'o', 'flow.step', of_run => %s)", UUID(int=0))


def test_the_same_key_with_another_input_is_refused(db: DB) -> None:
    """RN003 R22"""
    start(db, key="k")
    start_flow(db, node("a"), input={"n": 1}, key="r")

    said = refused(db, errors.KeyConflict, "select holdfast.start_task('mail', '{\"to\": \"b\"}', key => 'k')")
    refused(
        db, errors.KeyConflict, "select holdfast.start_tasks(%s)", Jsonb([{"name": "x"}, {"name": "x", "key": "k"}])
    )
    refused(db, errors.KeyConflict, "select holdfast.start_run('flow.task', 'order', 'flow.step', key => 'r')")

    assert all(word in said.split() for word in ("k", "1;"))  # the key, and what it started


def test_a_step_begins_in_an_initial_state_only(db: DB) -> None:
    """RN007"""
    insert = "insert into holdfast.steps (machine, state, kind, created_at) values (%s, %s, 'mail', holdfast.clock())"

    for machine, state in (
        ("work.task", "running"), ("work.task", "done"), ("work.task", "error"), ("work.task", "cancelled"),
        ("work.task", "nonsense"), ("nowhere", "pending"), ("flow.step", "in_progress"), ("ops.run", "claimed"),
    ):  # fmt: skip
        said = refused(db, errors.NotInitial, insert, machine, state)
        assert f"{machine} step cannot begin as {state}" in said


def test_a_step_begins_free_and_untried(db: DB) -> None:
    """RN007"""
    for names, values in (
        ("attempt", "1"),
        ("failures", "1"),
        ("finished_at", "holdfast.clock()"),
        ("lease_id, lease_owner, lease_until", "1, 'me', holdfast.clock()"),
    ):
        refused(
            db,
            errors.NotInitial,
            f"""insert into holdfast.steps (machine, state, kind, created_at, {names})
                values ('work.task', 'pending', 'mail', holdfast.clock(), {values})""",
        )


def test_a_run_begins_in_an_initial_state_only(db: DB) -> None:
    """RN007"""
    insert = (
        "insert into holdfast.runs (id, machine, name, state, created_at) values (%s, %s, 'x', %s, holdfast.clock())"
    )

    for machine, state in (("flow.task", "complete"), ("flow.task", "nonsense"), ("nowhere", "pending")):
        refused(db, errors.NotInitial, insert, UUID(int=1), machine, state)


def test_outcomes_that_cannot_be_read_are_refused_with_their_whole_batch(db: DB) -> None:
    start(db)
    step = claim_one(db)
    done = f'{{"step_id": {step.step_id}, "lease_id": {step.lease_id}, "outcome": "done"}}'

    for odd in (
        "1", "null", "[]", "{}", '{"step_id": 1, "outcome": "done"}', '{"lease_id": 1, "outcome": "done"}',
        '{"step_id": 1, "lease_id": 1}', '{"step_id": 1, "lease_id": 1, "outcome": "perhaps"}',
        '{"step_id": 1, "lease_id": 1, "outcome": null}', '{"step_id": "x", "lease_id": 1, "outcome": "fail"}',
        '{"step_id": -1, "lease_id": 1, "outcome": "fail"}', '{"step_id": 1.5, "lease_id": 1, "outcome": "fail"}',
        '{"step_id": 99999999999999999999, "lease_id": 1, "outcome": "fail"}',
        '{"step_id": 1, "lease_id": 1, "outcome": "retry", "retry_after": "later"}',
    ):  # fmt: skip
        refused(db, errors.BadInput, "select holdfast.settle_steps(%s)", f"[{done}, {odd}]")
        refused(db, errors.BadInput, "select holdfast.settle_batch('{}', '{}', '{}', %s)", f"[{odd}]")
    for odd in ("{}", "null", "1", '"done"'):
        refused(db, errors.BadInput, "select holdfast.settle_steps(%s)", odd)

    assert settle(db, step, Done()) == ["succeeded"]


def test_one_step_settled_twice_in_a_batch_is_settled_once(db: DB) -> None:
    start(db), start(db)
    one, two = claim(db, batch=2)

    settled = db.execute(
        "select step_id, event from holdfast.settle_steps(%s)",
        [Jsonb([{"step_id": s.step_id, "lease_id": s.lease_id, "outcome": o}
                for s, o in ((one, "done"), (one, "done"), (one, "fail"), (two, "fail"), (two, "release"))])],
    ).fetchall()  # fmt: skip

    assert sorted(step_id for step_id, _ in settled) == [one.step_id, two.step_id]
    assert column(db, one.step_id, "state") == "done"
    assert run(db, calls.violations()) == []
