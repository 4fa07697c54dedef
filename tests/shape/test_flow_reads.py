"""One task of a crowd is read by its own rows, whatever the planner knows: reads are counted, not timed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Retry, Settlement
from holdfast.testing import Template
from shape.crowd import furnish
from shape.reading import counted
from shape.test_lists import LOAD

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
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as db:
        furnish(db)
        db.execute("set session_replication_role = replica")
        db.execute(LOAD)
        db.execute(CROWD)
        db.execute("set session_replication_role = origin")
        if request.param == "with statistics":
            db.execute("vacuum (analyze)")
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

    found, read = counted(db, lambda: db.execute(question, arguments).fetchall())

    assert len(found) == answers
    assert read.rows.total() <= 600, read.most
    assert read.blocks.total() <= 1500, read.blocks.most_common(6)


def test_the_health_of_all_reads_no_finished_step(crowded: tuple[DB, UUID, int]) -> None:
    """T-66: the runs, and what is due, held or parked"""
    db, _, _ = crowded

    (health,), read = counted(db, lambda: db.execute("select * from flow.get_system_health_counts()").fetchall())

    assert health is not None
    assert (read.rows["steps"], read.rows["steps_pkey"]) == (0, 0), read.most
