"""A worker that is killed at each point of a run: nothing is lost, and nothing is counted twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.testing import Clock, drain, on_database
from ingest.killed_app import ROWS, feed, hf
from ingest.shop import DB, TABLE
from kernel.steps import seconds, violations

# Where: before the first page is stored, in its transaction, at its commit and after it; the cut, a batch, the end.
SHORT = ["page_written@2", "after_commit@4", "batch_written@2", "run_ending@1"]
WHOLE = [
    "page_fetched@1", "page_fetched@3", "before_commit@1", "before_commit@2", "before_commit@9", "after_commit@1",
    "after_commit@2", "after_commit@13", "run_cut@1", "batch_written@1", "batch_written@4", "before_commit@15",
]  # fmt: skip


def killed(dsn: str, place: str) -> int:
    """Let a worker of its own process work until it is killed there."""
    name, _, turn = place.partition("@")
    here = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", "worker", "--app", "ingest.killed_app:hf", "--burst", "-c", "1"],
        env={**os.environ, "HOLDFAST_DSN": dsn, "HOLDFAST_FAILPOINT": f"{name}:kill9@{turn}", "PYTHONPATH": here},
        cwd=here,
        capture_output=True,
        timeout=120,
    )
    return done.returncode


def backends(db: DB) -> set[int]:
    """Return the server's processes that serve the database."""
    rows = db.execute("select pid from pg_stat_activity where datname = current_database() and pid is not null")
    return {pid for (pid,) in rows}


@pytest.mark.one_server
@pytest.mark.parametrize("place", [*SHORT, *(pytest.param(each, marks=pytest.mark.long) for each in WHOLE)])
def test_a_killed_worker_loses_nothing_and_counts_nothing_twice(dsn: str, db: DB, clock: Clock, place: str) -> None:
    """P-79, P-81, P-83, P-155: the next worker continues once the lease has run out"""
    db.execute(TABLE.replace("cents bigint, ", ""))
    with on_database(hf, dsn):
        run = feed.start()
        before = backends(db)
        assert killed(dsn, place) == -signal.SIGKILL
        while backends(db) - before:  # a claim that the worker sent may still be made, with a lease by the later clock
            db.execute("select pg_stat_clear_snapshot()")
        clock.advance(seconds(900))
        drain(hf)
        clock.advance(seconds(60))
        drain(hf)
        summary = run.result(timeout=10)

        assert summary.records == ROWS
        assert db.execute("select count(*), count(deleted_at) from public.orders").fetchone() == (ROWS, 0)
        assert db.execute("select count(*) from ingest.raw_orders where consolidated").fetchone() == (ROWS,)
        workers = db.execute("select completed_workers = expected_workers, failed_workers from ingest.run_metadata")
        assert workers.fetchall() == [(True, 0)]
        done = db.execute("select count(*), count(distinct partition_id) from ingest.events where event = 'WORK_DONE'")
        assert len(set(done.fetchone() or ())) == 1
        once = db.execute("select count(*) from ingest.events where event = 'CONSOLIDATE'").fetchone()
        assert once == (1,)
        assert violations(db) == []
