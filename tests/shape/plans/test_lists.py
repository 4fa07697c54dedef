"""What people look at costs the same beside 200 000 rows as beside ten: reads are counted, not timed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from holdfast.flow import reads as flow_look
from holdfast.flow import run_list as flows
from holdfast.flow.run_list import TasksWanted
from holdfast.kernel.query import moment_ago, query
from holdfast.reads import dead_letter, queues_workers, run_detail, run_list
from holdfast.reads.run_list import Position, Wanted
from holdfast.testing import Template
from shape.plans.crowd import furnish
from shape.plans.reading import counted, stock_connection

DB = Connection[Any]
RUN = UUID("00000000-0000-7000-8000-000000000001")
# In the order of time: old tasks that are done, a few of them dead; one large run; tasks that are due, a few held.
LOAD = f"""
insert into holdfast.steps (machine, kind, state, last_event, queue, created_at, finished_at, error)
select 'work.task', 'mail', case when g % 1000 = 0 then 'error' else 'done' end,
       case when g % 1000 = 0 then 'failed' else 'succeeded' end, 'q', now() - interval '2 days', now(),
       case when g % 1000 = 0 then '{{"type": "ValueError", "message": "no user 17"}}'::jsonb end
  from generate_series(1, 80000) g;
insert into holdfast.runs (id, machine, name, state, total, live, created_at)
values ('{RUN}', 'flow.task', 'large', 'pending', 60000, 60000, now() - interval '1 day');
insert into holdfast.steps (machine, kind, state, queue, run_id, due_at, created_at)
select 'flow.step', 'part', 'pending', 'q', '{RUN}', now(), now() - interval '1 day' from generate_series(1, 60000) g;
insert into holdfast.run_steps select run_id, id from holdfast.steps where run_id is not null;
insert into holdfast.steps (machine, kind, state, queue, created_at, lease_id, lease_owner, lease_until, attempt)
select 'work.task', 'mail', 'running', 'q', now() - interval '1 hour', g, 'w', now() + interval '1 hour', 1
  from generate_series(1, 20) g;
insert into holdfast.steps (machine, kind, state, queue, due_at, created_at)
select 'work.task', 'mail', 'pending', 'q', now() + (g % 2) * interval '1 day', now() from generate_series(1, 60000) g;
insert into holdfast.queues (queue, top_priority, created_at) values ('q', 0, now());
"""


@pytest.fixture(scope="module", params=["without statistics", "with statistics"])
def crowd(template: Template, request: pytest.FixtureRequest) -> Iterator[DB]:
    with template.clone() as dsn:
        with psycopg.connect(dsn, autocommit=True) as loader:
            furnish(loader)
            loader.execute("set session_replication_role = replica")
            loader.execute(LOAD)
            if request.param == "with statistics":
                loader.execute("vacuum (analyze) holdfast.steps, holdfast.runs, holdfast.run_steps, holdfast.queues")
        with stock_connection(dsn) as db:
            yield db


def newest(db: DB, begin: Position | None = None, **wanted: Any) -> run_list.Page:
    return run_list.newest(db, Wanted(**wanted), begin or Position(), limit=50)


@pytest.mark.parametrize(
    ("job", "most"),
    [
        (newest, 1_000),
        (lambda db: newest(db, Position(step=100_000)), 60_000),  # past the steps of a run, which are no tasks
        (lambda db: newest(db, is_failed=True), 1_000),
        (lambda db: newest(db, states=["held"]), 1_000),
        (lambda db: newest(db, states=["no handler"]), 1_000),
        (lambda db: newest(db, since=moment_ago(db, timedelta(minutes=10))), 60_000),
        (lambda db: newest(db, name="nobody"), 2 * run_list.LOOK_AT + 10_000),
        (lambda db: run_list.position(db, step=None, run=RUN), 1_000),
        (lambda db: query(db, dead_letter.listed(dead_letter.Scope(), limit=50)), 1_000),
        (lambda db: dead_letter.report(db, dead_letter.Scope()), 1_000),
        (lambda db: query(db, dead_letter.snapshot(dead_letter.Scope(kind="mail"))), 1_000),
        (lambda db: query(db, run_detail.recent_ids()), 4_000),
        (lambda db: run_detail.step(db, 140_001), 1_000),
        (lambda db: query(db, queues_workers.queues()), 6 * queues_workers.CAP),
        (lambda db: run_detail.run_steps(db, RUN, each=5), 5 * run_detail.STEPS_LOOKED_AT),
        (lambda db: flows.newest_tasks(db, TasksWanted(), limit=50), 1_000),
        (lambda db: flows.newest_tasks(db, TasksWanted(states=["error"], name="large"), limit=50), 1_000),
        (flows.definitions, 1_000),
        (lambda db: flow_look.history(db, RUN, limit=50), 1_000),
        (lambda db: flow_look.steps(db, RUN), 5 * flow_look.STEPS_LOOKED_AT),
    ],
    ids=[
        "newest", "newest below a run", "failed", "held", "no handler", "since", "a name that is rare", "a place",
        "dead", "report", "snapshot", "recent", "step", "queues", "steps of a run", "tasks of flows",
        "failed tasks of a flow", "definitions", "history of a task", "steps of a task",
    ],
)  # fmt: skip
def test_a_look_reads_a_bounded_number_of_rows(crowd: DB, job: Callable[[DB], Any], most: int) -> None:
    """X: a list at 200 000 rows, never a COUNT over everything."""
    _, read = counted(crowd, lambda: job(crowd))

    assert read.rows["steps"] <= most, read.most
    assert read.rows.total() <= 3 * most, read.most


def test_what_the_bounded_looks_find_is_right(crowd: DB) -> None:
    """A bound that loses rows would be no use."""
    failed = newest(crowd, is_failed=True)
    held = newest(crowd, states=["held"])

    assert (len(failed.rows), {row.state for row in failed.rows}) == (50, {"error"})
    assert (len(held.rows), held.next) == (20, None)
    assert len(query(crowd, dead_letter.snapshot(dead_letter.Scope()))) == 80
    assert [(g.fingerprint, g.count) for g in dead_letter.report(crowd, dead_letter.Scope()).groups] == [
        ("no user N", 80)
    ]
    (queue,) = query(crowd, queues_workers.queues())
    assert (queue.due, queue.later) == (queues_workers.CAP + 1, queues_workers.CAP + 1)


def test_a_page_that_ends_early_says_how_far_it_got_and_goes_on_there(crowd: DB) -> None:
    """Page by page every task is found, though each page looks at a bounded number."""
    page = newest(crowd, states=["done"])
    looks = 1
    while not page.rows:
        assert page.next is not None
        assert page.looked_until is not None
        page, looks = newest(crowd, page.next, states=["done"]), looks + 1

    assert (len(page.rows), looks) == (50, 3)
