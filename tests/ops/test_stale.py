"""Runs whose worker fell silent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run as ran
from holdfast.testing import Clock
from kernel.steps import seconds
from ops.runs import claim, event, events, finish, queue, refused, run, status, value

DB = Connection[Any]
CLAIMED = "Stale run (claimed for >5 minutes without events)"
RUNNING = "Stale run (running without heartbeat)"


def test_a_claimed_run_without_events_is_cancelled_after_five_minutes(db: DB, clock: Clock) -> None:
    """O-13, O-32, O-65, O-92, O-93, O-95"""
    clock.freeze()
    run_id = queue(db)
    claim(db)
    clock.advance(seconds(299))
    assert value(db, "cancel_stale_runs") == {"cancelled": 0}
    assert status(db, run_id) == "claimed"
    clock.advance(seconds(2))

    assert value(db, "cancel_stale_runs") == {"cancelled": 1}

    after = run(db, run_id)
    assert after["status"] == "cancelled"
    assert {k: after["metadata"][k] for k in ("cancelled_by", "reason", "original_worker")} == {
        "cancelled_by": "system",
        "reason": CLAIMED,
        "original_worker": "worker-001",
    }
    assert after["metadata"]["claimed_at"].startswith(after["started_at"].isoformat()[:19])
    assert events(db, run_id)[-1] == ("warn", "Run finished: cancelled")


def test_the_kernels_rescue_leaves_the_same_metadata(db: DB, clock: Clock) -> None:
    """O-91, O-98, C-40: usually it gets there before the monitor"""
    clock.freeze()
    claimed, running = queue(db), queue(db)
    claim(db, "a"), claim(db, "b")
    event(db, running)
    clock.advance(seconds(301))

    ran(db, calls.rescue_steps(batch=10))

    assert {key: run(db, claimed)["metadata"][key] for key in ("reason", "original_worker")} == {
        "reason": CLAIMED, "original_worker": "a"}  # fmt: skip
    assert {key: run(db, running)["metadata"][key] for key in ("reason", "original_worker")} == {
        "reason": RUNNING, "original_worker": "b"}  # fmt: skip
    assert refused(db, "append_event", running, "info", "still here") == "RN010"
    assert value(db, "cancel_stale_runs") == {"cancelled": 0}


def test_the_monitor_cancels_running_runs_whose_lease_ran_out(db: DB, clock: Clock) -> None:
    """O-98: nobody else may be there to rescue them"""
    clock.freeze()
    run_id = queue(db)
    claim(db)
    event(db, run_id)
    clock.advance(seconds(301))

    assert value(db, "cancel_stale_runs") == {"cancelled": 1}

    assert (status(db, run_id), run(db, run_id)["metadata"]["reason"]) == ("cancelled", RUNNING)


def test_events_and_heartbeats_keep_a_run_but_rewrite_its_lease_only_after_a_third(db: DB, clock: Clock) -> None:
    """O-90, X-06"""
    clock.freeze()
    run_id = queue(db)
    claim(db)
    event(db, run_id, "1")
    before = leased_until(db)
    clock.advance(seconds(99))
    event(db, run_id, "2")
    assert leased_until(db) == before
    clock.advance(seconds(2))
    event(db, run_id, "3")
    assert leased_until(db) - before == seconds(101)
    for _ in range(10):
        clock.advance(seconds(250))
        assert value(db, "heartbeat", run_id, "worker-001") is True
        assert value(db, "cancel_stale_runs") == {"cancelled": 0}
    assert status(db, run_id) == "running"


def test_a_session_that_dies_inside_a_call_leaves_nothing_half_done(db: DB, dsn: str) -> None:
    """O-03, X-02: neither a status without its event nor the reverse"""
    run_id = queue(db)

    def die_in(job: Callable[[DB], Any]) -> None:
        before = (run(db, run_id), events(db, run_id))
        with psycopg.connect(dsn) as dying:
            job(dying)
            dying.rollback()
        assert (run(db, run_id), events(db, run_id)) == before
        job(db)
        assert (run(db, run_id), events(db, run_id)) != before

    die_in(claim)
    die_in(lambda each: event(each, run_id))
    die_in(lambda each: value(each, "add_artifact", run_id, "image", "x"))
    die_in(lambda each: finish(each, run_id, "failed", {"error": "no"}))


def leased_until(db: DB) -> Any:
    ((until,),) = db.execute("select lease_until from holdfast.steps").fetchall()
    return until
