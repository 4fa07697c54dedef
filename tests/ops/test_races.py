"""What happens to runs at the same moment: many workers, one queue; many callers, one key; the monitor and an event."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.testing import Clock
from kernel.steps import PATIENCE, at_once, seconds, until_blocked
from ops.runs import called, claim, event, finish, queue, refused, run, status, value

DB = Connection[Any]


def test_three_workers_get_the_first_three_of_five_runs(db: DB, dsn: str) -> None:
    """O-35, O-42: the document's concurrency example, with a barrier"""
    runs = [queue(db) for _ in range(5)]

    got = at_once(dsn, *(partial(claim, worker=f"worker-00{n}") for n in (1, 2, 3)))

    assert sorted(run_id for run_id in got if run_id is not None) == sorted(runs[:3])
    assert [run(db, run_id)["claimed_by"] for run_id in got if run_id] == ["worker-001", "worker-002", "worker-003"]
    assert [(status(db, run_id), run(db, run_id)["claimed_by"]) for run_id in runs[3:]] == [("queued", None)] * 2


def test_a_claim_passes_over_a_run_that_another_session_has_locked(db: DB, dsn: str) -> None:
    """O-30, O-34"""
    first, second = queue(db), queue(db)
    with psycopg.connect(dsn) as other:
        other.execute("select from holdfast.steps where id = %s for update", [run(db, first)["step_id"]])

        with db.transaction():
            db.execute("set local lock_timeout = '1s'")
            assert claim(db) == second


def test_twenty_calls_with_one_key_queue_one_run(db: DB, dsn: str) -> None:
    """O-79, C-34"""
    got = at_once(dsn, *[partial(queue, key="deploy-1") for _ in range(20)])

    assert len(set(got)) == 1
    assert db.execute("select count(*) from ops.runs").fetchall() == [(1,)]


def test_twenty_equal_events_at_once_are_one(db: DB, dsn: str) -> None:
    """O-53, C-33"""
    run_id = queue(db)
    claim(db)

    got = at_once(dsn, *[partial(event, run_id=run_id) for _ in range(20)])

    assert len(set(got)) == 1
    assert db.execute("select count(*) from ops.run_events where message = 'Run started'").fetchall() == [(1,)]
    assert db.execute("select count(*) from holdfast.notes").fetchall() == [(1,)]


def test_first_uses_of_an_environment_at_once_register_it_once(db: DB, dsn: str) -> None:
    got = at_once(dsn, *[partial(queue) for _ in range(8)])

    assert len(set(got)) == 8
    assert db.execute("select count(*) from ops.environments").fetchall() == [(1,)]


def stale_run(db: DB, clock: Clock) -> str:
    clock.freeze()
    run_id = queue(db)
    claim(db)
    clock.advance(seconds(299))
    return run_id


def sweep(db: DB) -> Any:
    return value(db, "cancel_stale_runs")


def printed(db: DB) -> int:
    return db.execute(
        "update ops.runs set status = 'cancelled', finished_at = now() where status = 'claimed' "
        "and started_at < holdfast.clock() - interval '5 minutes'"
    ).rowcount


@pytest.mark.parametrize("way", [sweep, printed], ids=["monitor", "printed UPDATE"])
def test_a_run_that_starts_before_the_monitor_gets_to_it_goes_on(db: DB, dsn: str, clock: Clock, way: Any) -> None:
    """O-97, C-36: the event is not committed yet when the monitor reads the run as stale"""
    run_id = stale_run(db, clock)
    with psycopg.connect(dsn) as worker:
        event(worker, run_id)
        clock.advance(seconds(2))
        answers: list[Any] = []
        with psycopg.connect(dsn, autocommit=True) as monitor:
            thread = threading.Thread(target=lambda: answers.append(way(monitor)))
            thread.start()
            if way is printed:  # it waits for the run's lock; the monitor passes over it
                until_blocked(db, monitor.info.backend_pid)
            else:
                thread.join(PATIENCE)
                assert answers
            worker.commit()
            thread.join(PATIENCE)

    assert answers in ([{"cancelled": 0}], [0])
    assert status(db, run_id) == "running"


@pytest.mark.parametrize("way", [sweep, printed], ids=["monitor", "printed UPDATE"])
def test_a_run_that_the_monitor_gets_to_first_takes_no_event(db: DB, dsn: str, clock: Clock, way: Any) -> None:
    """O-97, the other way round"""
    run_id = stale_run(db, clock)
    clock.advance(seconds(2))
    answers: list[Any] = []
    with psycopg.connect(dsn) as monitor, psycopg.connect(dsn, autocommit=True) as worker:
        assert way(monitor) in ({"cancelled": 1}, 1)
        thread = threading.Thread(target=lambda: answers.append(refused(worker, "append_event", run_id, "info", "x")))
        thread.start()
        until_blocked(db, worker.info.backend_pid)
        monitor.commit()
        thread.join(PATIENCE)

    assert answers == ["RN010"]
    assert status(db, run_id) == "cancelled"


@pytest.mark.own_database
def test_an_approval_in_time_stands_though_the_monitor_read_it_as_expired(db: DB, dsn: str, clock: Clock) -> None:
    """It is committed after the monitor's snapshot, and before the monitor locks the run"""
    clock.freeze()
    called(db, "define_environment", p_project_id="proj-123", p_env="staging", p_needs_approval=True)
    run_id = queue(db, p_actor="ada")
    clock.advance(timedelta(hours=23))
    with psycopg.connect(dsn) as approver, psycopg.connect(dsn, autocommit=True) as monitor:
        assert value(approver, "decide_approval", run_id, "approved", "good", "eva") == "approved"
        db.execute(
            """create or replace function holdfast.matches_any(wanted text[], value text) returns boolean
               language plpgsql immutable as $$
               begin
                 perform pg_advisory_xact_lock_shared(17);
                 return matches_any.wanted is null or matches_any.value = any (matches_any.wanted);
               end $$"""
        )
        db.execute("select pg_advisory_lock(17)")
        clock.advance(timedelta(hours=2))
        thread = threading.Thread(target=lambda: value(monitor, "cancel_stale_runs"))
        thread.start()
        until_blocked(db, monitor.info.backend_pid)
        approver.commit()
        db.execute("select pg_advisory_unlock(17)")
        thread.join(PATIENCE)

    assert status(db, run_id) == "queued"
    assert db.execute("select decision from ops.approvals").fetchall() == [("approved",)]


def test_a_finish_and_a_cancel_at_once_leave_one_end(db: DB, dsn: str) -> None:
    """O-03, O-15, C-36"""
    for _ in range(20):
        run_id = queue(db)
        claim(db)
        event(db, run_id, run_id)
        ends = at_once(
            dsn,
            lambda one, r=run_id: refused(one, "finish_run", r, "success"),
            lambda two, r=run_id: refused(two, "cancel_run", r, None, None),
        )

        assert sorted(ends, key=str) in ([None, "RN010"], ["RN010", None])
        assert status(db, run_id) == ("success" if ends[0] is None else "cancelled")


def drained(dsn: str, workers: int, amount: int) -> list[list[str]]:
    """Let workers claim and finish all runs; what each of them had."""

    def work(db: DB, name: str) -> list[str]:
        had = []
        while (run_id := claim(db, name)) is not None:
            assert finish(db, run_id, "success", worker=name)
            had.append(run_id)
        return had

    had = at_once(dsn, *(partial(work, name=f"worker-{n:03}") for n in range(workers)))
    assert sum(map(len, had)) == amount
    return had


def many(db: DB, amount: int) -> None:
    db.execute("select count(*) from generate_series(1, %s) n, ops.queue_run('p', 'e', 'sha' || n, 'main')", [amount])


@pytest.mark.own_database
@pytest.mark.timeout(900)
def test_many_workers_claim_each_run_once(db: DB, dsn: str, request: pytest.FixtureRequest) -> None:
    """O-06, O-43: 50 workers and 10 000 runs with --faults, else fewer; no errors, no retries"""
    workers, amount = (50, 10_000) if request.config.getoption("--faults") else (12, 400)
    many(db, amount)

    had = drained(dsn, workers, amount)

    assert max(Counter(run_id for each in had for run_id in each).values()) == 1
    assert db.execute("select status, count(*) from ops.runs group by status").fetchall() == [("success", amount)]
    assert db.execute("select message, count(*) from ops.run_events group by message order by message").fetchall() == [
        ("Run claimed by worker", amount),
        ("Run finished: success", amount),
        ("Run queued", amount),
        ("Run started", amount),
    ]
