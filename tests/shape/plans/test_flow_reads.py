"""One task of a crowd is read by its own rows, whatever the planner knows: reads are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection

from holdfast.flow import calls as flow
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry, Settlement
from holdfast.testing import Template
from shape.plans.crowd import furnish
from shape.plans.reading import Reading, counted, reading, stock_connection
from shape.plans.test_lists import LOAD

DB = Connection[Any]
# Beside it a crowd of tasks, each with three steps and a story.
CROWD = """
insert into holdfast.runs (id, machine, name, state, total, succeeded, created_at, finished_at)
select ('00000000-0000-7000-8002-' || lpad(to_hex(r), 12, '0'))::uuid, 'flow.task', 'small', 'complete',
       3, 3, now(), now()
  from generate_series(1, 20000) r;
insert into holdfast.steps (id, machine, kind, state, last_event, run_id, created_at, finished_at)
select 10000000 + 3 * r + k, 'flow.step', 'part', 'complete', 'succeeded',
       ('00000000-0000-7000-8002-' || lpad(to_hex(r), 12, '0'))::uuid, now(), now()
  from generate_series(1, 20000) r, generate_series(1, 3) k;
insert into holdfast.run_steps select run_id, id, 's' || id from holdfast.steps where id > 10000000;
insert into holdfast.edges select id, id + 1 from holdfast.steps where id > 10000000 and id % 3 > 0;
insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, step_id, run_id)
select now(), 'default', 'flow.step', 'pending', 'claimed', 'in_progress', 'worker', 'w', s.id, s.run_id
  from holdfast.steps s, generate_series(1, 2) where s.id > 10000000;
insert into holdfast.journal (at, tenant, machine, from_state, event, to_state, actor_kind, actor, run_id)
select now(), 'default', 'flow.task', 'pending', 'started', 'in_progress', 'worker', 'w', r.id from holdfast.runs r;
select setval('holdfast.step_ids', 20000000);
"""


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def crowded(template: Template, request: pytest.FixtureRequest) -> Iterator[tuple[DB, UUID, int]]:
    """A connection, a task of three steps that is under way, and its first step."""
    with template.clone() as dsn:
        with psycopg.connect(dsn, autocommit=True) as loader:
            furnish(loader)
            loader.execute("set session_replication_role = replica")
            loader.execute(LOAD)
            loader.execute(CROWD)
            if request.param == "with statistics":
                loader.execute("vacuum (analyze)")
        with stock_connection(dsn) as db:
            plan = [{"kind": name, "name": name, "queue": "own"} for name in "ab"]
            plan.append({"kind": "c", "name": "c", "after": ["a"], "queue": "own"})
            (task_id,) = run(db, calls.start_run("flow.task", "order", "flow.step", steps=plan))
            a, b = run(db, calls.claim_steps("w", "own", batch=2))
            outcomes = [Settlement(a.step_id, a.lease_id, Done()), Settlement(b.step_id, b.lease_id, Retry())]
            run(db, calls.settle_steps(outcomes))
            yield db, task_id, a.step_id


@pytest.mark.parametrize(
    ("question", "answers"),
    [
        ("select * from flow.tasks where task_id = %(task)s", 1),
        ("select * from flow.steps where task_id = %(task)s", 3),
        ("select * from flow.steps where task_id = %(task)s and name = 'a'", 1),
        ("select * from flow.steps where step_id = %(step)s", 1),
        ("select * from flow.step_dag where task_id = %(task)s", 3),
        ("select * from flow.task_transitions where task_id = %(task)s", 2),
        ("select * from flow.task_transitions where task_id = %(task)s and most_recent", 1),
        ("select * from flow.step_transitions where step_id = %(step)s", 3),
        ("select * from flow.step_transitions where step_id = %(step)s and most_recent", 1),
        ("select * from flow.get_step_readiness_status(%(task)s)", 3),
        ("select * from flow.get_step_readiness_status(%(task)s, array[%(step)s]::bigint[])", 1),
        ("select * from flow.get_step_readiness_status_batch(array[%(task)s]::uuid[])", 3),
        ("select * from flow.get_task_execution_context(%(task)s)", 1),
        ("select * from flow.calculate_dependency_levels(%(task)s)", 3),
        ("select * from flow.states_from_history(%(task)s)", 4),
    ],
)
def test_a_question_about_one_task_reads_that_task(crowded: tuple[DB, UUID, int], question: str, answers: int) -> None:
    """T-30, T-135, C-88: beside 260 000 steps and 20 000 tasks; by an index that the journal has for it"""
    db, task_id, step_id = crowded
    arguments = {"task": task_id, "step": step_id}
    calls_function = "flow.get_" in question or "flow.calculate_" in question or "flow.states_" in question
    db.execute(
        f"set jit = {'on' if calls_function else 'off'}"
    )  # a view cannot keep its reader's plan from being compiled

    found, read = counted(db, lambda: db.execute(question, arguments).fetchall())

    assert len(found) == answers
    assert read.rows.total() <= 600, read.most
    assert read.blocks.total() <= 1500, read.blocks.most_common(6)


@pytest.mark.parametrize("ask", [flow.touched_tasks, flow.settled_tasks, flow.closed_tasks])
def test_what_a_settle_asks_for_its_subscribers_does_not_grow_with_the_task(
    crowded: tuple[DB, UUID, int], ask: Callable[[str, list[int]], Call[Any]]
) -> None:
    """Fifty steps of one with 1 000 and of one with 4 000, in the middle of it: done, failed and to be tried again."""
    db, _, _ = crowded
    reads = [_settled_and_asked(db, ask, width) for width in (1000, 4000)]

    narrow, wide = (read.rows.total() for read in reads)
    assert wide <= 1.5 * narrow + 20, reads[1].most
    assert wide <= 2000, reads[1].most
    assert reads[1].blocks.total() <= 1.5 * reads[0].blocks.total() + 100, reads[1].blocks.most_common(6)


def _settled_and_asked(db: DB, ask: Callable[[str, list[int]], Call[Any]], width: int) -> Reading:
    queue = str(uuid4())
    names = [f"step {number}" for number in range(width)]
    plan = [{"kind": "part", "name": name, "queue": queue} for name in names]
    run(db, calls.start_run("flow.task", "fan", "flow.step", steps=[*plan, {"kind": "join", "after": names}]))
    for _ in range(4):
        steps = run(db, calls.claim_steps("w", queue, batch=50))
        held = run(db, calls.claim_steps("w", queue, batch=50))
        outcomes = [(Done(), Retry(), Fail())[number % 3] for number in range(len(steps))]
        settlements = [Settlement(s.step_id, s.lease_id, o) for s, o in zip(steps, outcomes, strict=True)]
        assert len(run(db, calls.settle_steps(settlements))) == len(held) == 50
    return reading(db, ask("w", [step.step_id for step in steps]))[1]


def test_the_health_of_all_reads_no_finished_step(crowded: tuple[DB, UUID, int]) -> None:
    """T-66: the runs, and what is due, held or parked"""
    db, _, _ = crowded

    (health,), read = counted(db, lambda: db.execute("select * from flow.get_system_health_counts()").fetchall())

    assert health is not None
    assert (read.rows["steps"], read.rows["steps_pkey"]) == (0, 0), read.most
