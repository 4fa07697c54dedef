"""The functions and views of ops read what they need and no more, beside many runs that are over and many that wait.

Counted are the rows and index entries that the server really read (`reading.py`): on a connection that planned while
the tables were empty, on a new one, and after ANALYZE.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.testing import Template
from ops.runs import claim, event, finish, queue, value
from shape.plans.reading import counted, stock_connection

DB = Connection[Any]
WARM, NEW, ANALYZED = "planned on empty tables", "new, no statistics", "new, statistics"
OVER, WAITING, NOTES = 40_000, 5_000, 3_000
LOAD = f"""
set session_replication_role = replica;
insert into holdfast.steps (machine, state, kind, queue, created_at, claimed_at, finished_at, last_event, attempt)
select 'ops.run', 'success', 'ops:deploy', 'ops', c.at, c.at, c.at, 'succeeded', 1
  from generate_series(1, {OVER}) n, lateral (select holdfast.clock() - n * interval '1 minute' as at) c;
insert into holdfast.steps (machine, state, kind, queue, created_at, due_at)
select 'ops.run', 'queued', 'ops:deploy', 'ops', holdfast.clock(), holdfast.clock() from generate_series(1, {WAITING});
insert into ops.run_facts (run_id, step_id, status, queued_at, started_at, finished_at, updated_at, tenant, kind,
                           claimed_by, env_id)
select 'run-' || gen_random_uuid(), s.id, s.state, s.created_at, s.claimed_at, s.finished_at, s.created_at, 'default',
       'deploy', case when s.finished_at is not null then 'w' end, 'e'
  from holdfast.steps s
 where not exists (select from ops.run_facts f where f.step_id = s.id);
insert into holdfast.notes (at, tenant, step_id, attempt, level, message)
select holdfast.clock() - interval '1 minute', 'default', {{step}}, 1, 'info', 'line ' || n
  from generate_series(1, {NOTES}) n;
reset session_replication_role
"""


@pytest.fixture(scope="module")
def crowded(template: Template) -> Iterator[tuple[str, DB, str]]:
    """A DSN, a connection that was used before the load, and a run with many notes."""
    with template.clone() as dsn, stock_connection(dsn) as warmed:
        for table in ("holdfast.steps", "ops.run_facts", "ops.run_approvals"):
            warmed.execute(f"alter table {table} set (autovacuum_enabled = off)")
        for _ in range(8):
            run_id = queue(warmed)
            claim(warmed)
            event(warmed, run_id)
            finish(warmed, run_id, "success")
            value(warmed, "cancel_stale_runs")
        noisy = queue(warmed)
        claim(warmed, "noisy")
        event(warmed, noisy)
        ((step,),) = warmed.execute("select step_id from ops.runs where run_id = %s", [noisy]).fetchall()
        with psycopg.connect(dsn, autocommit=True) as loader:
            for statement in LOAD.format(step=step).split(";"):
                loader.execute(statement)
        yield dsn, warmed, noisy


@pytest.fixture(scope="module", params=[WARM, NEW, ANALYZED])
def db(request: pytest.FixtureRequest, crowded: tuple[str, DB, str]) -> Iterator[DB]:
    dsn, warmed, _ = crowded
    if request.param == WARM:
        yield warmed
        return
    if request.param == ANALYZED:
        with psycopg.connect(dsn, autocommit=True) as analyst:
            analyst.execute("analyze holdfast.steps; analyze ops.run_facts; analyze holdfast.notes")
    with stock_connection(dsn) as connection:
        yield connection


def rows_read(db: DB, job: Any) -> tuple[Any, int, str]:
    answer, read = counted(db, job)
    return answer, sum(read.rows.values()), read.most


def test_queue_claim_report_and_finish_read_a_few_rows(db: DB) -> None:
    run_id, amount, most = rows_read(db, lambda: queue(db, key=f"k{id(db)}"))
    assert amount <= 200, f"queue_run read {most}"
    claimed, amount, most = rows_read(db, lambda: claim(db))
    assert amount <= 300, f"claim_next_run read {most}"
    _, amount, most = rows_read(db, lambda: event(db, claimed))
    assert amount <= 300, f"append_event read {most}"
    _, amount, most = rows_read(db, lambda: finish(db, claimed, "success"))
    assert amount <= 400, f"finish_run read {most}"  # the machines of all faces are in it
    _, amount, most = rows_read(db, lambda: value(db, "cancel_stale_runs"))
    assert amount <= 300, f"cancel_stale_runs read {most}"
    assert run_id != claimed


def test_the_check_for_duplicates_reads_the_notes_of_ten_seconds(db: DB, crowded: tuple[str, DB, str]) -> None:
    """O-50: the run has thousands of older ones"""
    _, _, noisy = crowded
    for n in range(5):
        event(db, noisy, f"recent {n} {id(db)}")

    _, amount, most = rows_read(db, lambda: event(db, noisy, f"new {id(db)}"))

    assert amount <= 400, f"append_event read {most}"


def test_runs_are_read_by_status_and_by_day(db: DB) -> None:
    """O-99 to O-102: the printed queries and the views beside many runs that are over"""
    answer, amount, most = rows_read(
        db, lambda: db.execute("select count(*) from ops.runs where status in ('claimed', 'running')").fetchone()
    )
    assert amount <= 300, most
    answer, amount, most = rows_read(
        db, lambda: db.execute("select count(*) from ops.runs where created_at > now() - interval '1 hour'").fetchone()
    )
    assert answer is not None
    assert amount <= 3 * answer[0] + 300, most
    answer, amount, most = rows_read(db, lambda: db.execute("select success_count from ops.success_rate").fetchone())
    assert answer is not None
    assert 1000 < answer[0] < 2000
    assert amount <= 3 * answer[0] + WAITING + 300, most  # by day: those that wait came today as well
    _, amount, most = rows_read(db, lambda: db.execute("select * from ops.worker_utilization").fetchall())
    assert amount <= 300, most


def test_a_runs_events_are_read_by_the_run(db: DB, crowded: tuple[str, DB, str]) -> None:
    ((run_id,),) = db.execute("select run_id from ops.runs where status = 'success' limit 1").fetchall()

    _, amount, most = rows_read(
        db, lambda: db.execute("select * from ops.run_events where run_id = %s", [run_id]).fetchall()
    )

    assert amount <= 200, most
