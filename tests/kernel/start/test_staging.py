"""Bulk starts by COPY: staged, checked by set, and taken over all or none."""

from __future__ import annotations

import threading
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import sql

from holdfast import errors
from holdfast.kernel import bulk, calls
from holdfast.kernel.db import run
from holdfast.models import Done
from holdfast.testing import Clock, events
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
    run_row,
    seconds,
    settle,
    stage,
    start,
    start_flow,
    until_blocked,
    value,
)


def reserve(db: DB, amount: int) -> list[int]:
    return [i for (i,) in db.execute("select holdfast.reserve_step_ids(%s)", [amount])]


def put(db: DB, *steps: dict[str, Any], edges: tuple[tuple[int, int], ...] = ()) -> None:
    """Stage steps with any columns, and edges."""
    run(db, calls.stage_steps())
    for step in steps:
        given = {"kind": "mail", **step}
        db.execute(
            sql.SQL("insert into pg_temp.staged_steps ({}) values ({})").format(
                sql.SQL(", ").join(map(sql.Identifier, given)), sql.SQL(", ").join(sql.Placeholder() * len(given))
            ),
            list(given.values()),
        )
    for edge in edges:
        db.execute("insert into pg_temp.staged_edges values (%s, %s)", edge)


def take(db: DB, run_id: UUID | None = None, machine: str = "flow.step", **options: Any) -> int:
    """Take over what is staged."""
    return run(db, calls.take_staged(machine, run_id=run_id, **options))[0]


def start_staged(
    db: DB,
    *steps: dict[str, Any],
    edges: tuple[tuple[int, int], ...] = (),
    run_id: UUID | None = None,
    machine: str = "work.task",
) -> int:
    """Stage and take over in one transaction."""
    with db.transaction():
        put(db, *steps, edges=edges)
        return take(db, run_id, machine)


def test_copied_rows_become_tasks(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    db.execute("insert into holdfast.kinds (kind, policy, queue) values ('print', 'rules.429', 'paper')")

    assert stage(db, [("mail", '{"n": 1}'), ("print", '{"n": 2}')]) == 2

    rows = db.execute(
        "select machine, state, kind, input, queue, policy, due_at, run_id from holdfast.steps order by id"
    )
    assert rows.fetchall() == [
        ("work.task", "pending", "mail", {"n": 1}, "default", None, now, None),
        ("work.task", "pending", "print", {"n": 2}, "paper", "rules.429", now, None),
    ]
    assert [s.kind for s in claim(db, batch=5)] == ["mail"]
    assert [s.kind for s in claim(db, queue="paper", batch=5)] == ["print"]


def test_the_bulk_functions_start_tasks_and_a_run(db: DB) -> None:
    assert bulk.start_tasks(db, (bulk.Start(f"k{n}", "{}") for n in range(3)), tenant="t") == 3
    pairs = (bulk.Start("page", f'{{"n": {n}}}') for n in range(1000))
    run_id = bulk.start_steps(db, pairs, machine="flow.task", name="feed", step_machine="flow.step")

    assert counts(db, run_id) == {"total": 1000, "live": 1000}
    assert len(finish(db, claim(db, batch=2000))) == 1003
    assert run_row(db, run_id)["state"] == "complete"
    assert value(db, "select array_agg(distinct tenant order by tenant) from holdfast.steps") == ["default", "t"]


def test_each_column_of_a_staged_step_is_taken(db: DB, clock: Clock) -> None:
    later = clock.freeze() + seconds(60)
    with db.transaction():
        put(db, {"queue": "q", "priority": 7, "due_at": later, "unique_key": "u", "policy": "flow.sql"})
        assert take(db, machine="work.task", tenant="t") == 1

    row = db.execute("select queue, priority, due_at, unique_key, policy, tenant from holdfast.steps").fetchone()
    assert row == ("q", 7, later, "u", "flow.sql", "t")
    clock.advance(seconds(60))
    assert len(claim(db, queue="q")) == 1


def test_staged_edges_make_steps_of_a_run_wait(db: DB) -> None:
    run_id = start_flow(db)
    a, b, c = reserve(db, 3)
    with db.transaction():
        put(db, {"id": c}, {"id": a, "name": "a"}, {"id": b}, edges=((a, c), (b, c), (a, b)))
        take(db, run_id)

    assert counts(db, run_id) == {"total": 3, "live": 1}
    assert ids_by_name(db, run_id)["a"] == a
    order = [finish(db, claim(db, batch=10)) for _ in range(3)]
    assert order == [[a], [b], [c]]
    assert run_row(db, run_id)["state"] == "complete"


def test_a_staged_step_may_wait_for_one_that_is_in_the_run(db: DB) -> None:
    """For one that is done it does not wait"""
    run_id = start_flow(db, node("a"), node("b"))
    done = claim_one(db)
    finish(db, [done])
    open_ = ids_by_name(db, run_id)["b"]
    first, second = reserve(db, 2)
    with db.transaction():
        put(db, {"id": first}, {"id": second}, edges=((done.step_id, first), (done.step_id, second), (open_, second)))
        take(db, run_id)

    assert (column(db, first, "waits"), column(db, second, "waits")) == (0, 1)
    while steps := claim(db, batch=10):
        finish(db, steps)
    assert run_row(db, run_id)["state"] == "complete"


def test_a_step_staged_while_its_parent_is_being_settled_is_not_forgotten(db: DB, dsn: str) -> None:
    """The run is locked by a third: whoever comes to it first, the child sees its parent done or is seen by it"""
    run_id = start_flow(db, node("a"), node("b"))
    parent = claim_one(db)
    (child,) = reserve(db, 1)

    def add(own: DB) -> None:
        start_staged(own, {"id": child}, edges=((parent.step_id, child),), run_id=run_id, machine="flow.step")

    with psycopg.connect(dsn, autocommit=True) as one, psycopg.connect(dsn, autocommit=True) as two:
        threads = [threading.Thread(target=add, args=[one]), threading.Thread(target=finish, args=[two, [parent]])]
        with db.transaction():
            db.execute("select from holdfast.runs for update")
            for thread, connection in zip(threads, (one, two), strict=True):
                thread.start()
                until_blocked(db, connection.info.backend_pid)
        for thread in threads:
            thread.join()

    assert (column(db, child, "waits"), column(db, child, "due_at") is None) == (0, False)


def test_a_step_added_while_its_parent_is_being_settled_is_not_forgotten(db: DB, dsn: str) -> None:
    run_id = start_flow(db, node("a"), node("b"))
    parent = claim_one(db)
    with psycopg.connect(dsn, autocommit=True) as other:
        adder = threading.Thread(target=add_steps, args=(other, run_id, node("c", "a")))
        with db.transaction():
            settle(db, parent, Done())
            adder.start()
            until_blocked(db, other.info.backend_pid)
        adder.join()

    child = ids_by_name(db, run_id)["c"]
    assert (column(db, child, "waits"), column(db, child, "due_at") is None) == (0, False)


def test_staged_steps_that_are_rolled_back_leave_nothing(db: DB) -> None:
    before = fingerprint(db)

    with db.transaction(force_rollback=True):
        put(db, {})
        take(db, machine="work.task")

    assert fingerprint(db) == before


def test_staging_twice_in_one_transaction_adds_to_what_is_staged(db: DB) -> None:
    with db.transaction():
        put(db, {})
        put(db, {})
        assert take(db, machine="work.task") == 2
        put(db, {})
        assert take(db, machine="work.task") == 1

    assert len(claim(db, batch=10)) == 3


def test_nothing_staged_is_nothing_to_take(db: DB) -> None:
    with pytest.raises(errors.BadInput, match="staged"):
        take(db, machine="work.task")


@pytest.mark.parametrize("name", ["staged_steps", "staged_edges"])
def test_a_callers_own_table_of_that_name_is_refused(db: DB, name: str) -> None:
    """Its defaults and triggers would run as the owner"""
    other = {"staged_steps": "staged_edges", "staged_edges": "staged_steps"}[name]
    db.execute(f"create temporary table {name} (like holdfast.steps)")

    with pytest.raises(errors.BadInput):
        run(db, calls.stage_steps())
    db.execute(f"create temporary table {other} (like holdfast.steps)")
    with pytest.raises(errors.BadInput):
        take(db, machine="work.task")


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([{"priority": 10}], errors.BadInput),
        ([{"priority": -1}], errors.BadInput),
        ([{"kind": ""}], errors.BadInput),
        ([{"kind": "k" * 201}], errors.BadInput),
        ([{"policy": "nowhere"}], errors.BadInput),
        ([{"id": 10**9}], errors.BadInput),
        ([{"id": 0}], errors.BadInput),
        ([{"id": 1}], errors.BadInput),
        ([{"unique_key": "u"}, {"unique_key": "u"}], errors.KeyConflict),
        ([{"unique_key": "open"}], errors.KeyConflict),
        ([{"input": '"' + "x" * 10**7 + '"'}], errors.TooLarge),
    ],
    ids=lambda value: str(value)[:40],
)
def test_one_bad_step_refuses_all_that_is_staged(db: DB, steps: list[dict[str, Any]], error: type) -> None:
    """10 MB of input, ids that were not given out or are used, keys that are taken"""
    start(db, unique_key="open")
    before = fingerprint(db)

    with pytest.raises(error):
        start_staged(db, {}, *steps)

    assert fingerprint(db) == before


def test_an_input_that_compresses_well_is_measured_as_it_is(db: DB) -> None:
    """One mebibyte is the limit by whatever way it comes"""
    with pytest.raises(errors.TooLarge):
        start(db, given="x" * 1_100_000)
    with pytest.raises(errors.TooLarge):
        stage(db, [("mail", '"' + "x" * 1_100_000 + '"')])

    assert stage(db, [("mail", '"' + "x" * 1_000_000 + '"')]) == 1


def test_edges_join_steps_of_one_run(db: DB) -> None:
    mine, other = start_flow(db, node("a")), start_flow(db, node("a"))
    task = start(db)
    fresh = reserve(db, 1)[0]
    theirs, own = ids_by_name(db, other)["a"], ids_by_name(db, mine)["a"]
    before = fingerprint(db)

    for edge in ((theirs, fresh), (task, fresh), (fresh, own), (fresh, theirs), (10**9, fresh), (fresh, 10**9)):
        with pytest.raises(errors.BadInput):
            start_staged(db, {"id": fresh}, edges=(edge,), run_id=mine, machine="flow.step")
    with pytest.raises(errors.CycleFound):
        start_staged(db, {"id": fresh}, edges=((fresh, fresh),), run_id=mine, machine="flow.step")

    assert fingerprint(db) == before


def test_tasks_have_no_edges(db: DB) -> None:
    one, two = reserve(db, 2)

    with pytest.raises(errors.BadInput, match="its run"):
        start_staged(db, {"id": one}, {"id": two}, edges=((one, two),))


def test_steps_are_not_added_to_a_run_that_is_over_unknown_or_anothers(db: DB) -> None:
    over = start_flow(db, node("a"))
    finish(db, claim(db))
    theirs = start_flow(db, node("a"), tenant="t")

    for run_id, error in ((over, errors.WrongState), (UUID(int=0), errors.NotFound), (theirs, errors.NotFound)):
        with pytest.raises(error):
            start_staged(db, {}, run_id=run_id, machine="flow.step")
    with pytest.raises(errors.BadInput, match="no machine"):
        start_staged(db, {}, machine="nowhere")

    assert events(db, run=over)[-1] == "all_succeeded"
