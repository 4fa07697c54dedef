"""What `doctor` finds wrong with runs of feeds, the log that stays, and leases that expire."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import Continue, Done
from holdfast.testing import Clock
from ingest.runs import DB, claim, consolidate, define, page, put, run_of, settle
from kernel.steps import seconds, violations

BROKEN = {
    "run_has_facts": "delete from ingest.run_facts",
    "facts_have_a_run": "update ingest.run_facts set run_id = gen_random_uuid()",
    "facts_agree_with_the_run": "update ingest.run_facts set state = 'failed', completed_at = null,"
    " watermark_after = null",
    "workers_are_counted": "update ingest.run_facts set expected_workers = 3, completed_workers = 2,"
    " failed_workers = 1, forced = true",
    "partition_agrees_with_its_step": "update ingest.partitions set completed = false, status = 'running'",
    "watermark_is_of_a_completed_run": "update ingest.feed_watermarks set last_updated_at = '2020-01-01'",
    "completed_run_left_no_record": "update ingest.sightings set consolidated = false",
    "quarantined_is_counted": "update ingest.run_facts set quarantined = 0",
    "record_has_both_rows": "delete from ingest.payloads",
}


def completed(db: DB) -> None:
    """A completed run of two records, one of which was rejected."""
    define(db, max_rejects=1)
    run_of(db, 1)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, ["a", None])
        settle(db, step, Done({"records": 2}))
    consolidate(db)


@pytest.mark.one_server
@pytest.mark.unsound
@pytest.mark.parametrize("invariant", BROKEN)
def test_each_broken_invariant_is_listed(db: DB, invariant: str) -> None:
    """X-13"""
    completed(db)
    assert violations(db) == []

    db.execute("set session_replication_role = replica")
    db.execute(BROKEN[invariant])
    db.execute("reset session_replication_role")

    assert invariant in {name for name, _ in violations(db)}


def test_every_invariant_of_the_face_is_broken_here(db: DB) -> None:
    """X-13"""
    row = db.execute("select prosrc from pg_proc where oid = 'ingest.violations()'::regprocedure").fetchone()
    assert row is not None
    assert {text for text in row[0].split("'")[1::2] if text in BROKEN} == set(BROKEN)
    assert row[0].count("union all") + 1 == len(BROKEN)


def test_events_are_written_once(db: DB) -> None:
    """X-07: with the run's trace and the time, by nobody changed; they go with a run that is over"""
    define(db)
    run_of(db, 1)
    (step,) = claim(db, "page")
    for change in (
        "update ingest.event_log set event = 'x'",
        "delete from ingest.event_log",
        "truncate ingest.event_log",
        "update ingest.events set event = 'x'",
    ):
        with pytest.raises(psycopg.Error) as caught:
            db.execute(change)
        assert caught.value.sqlstate == ("RN005" if "events" in change else "RN008"), change
    page(db, step, ["a"])
    consolidate(db)
    missing = "select count(*) from ingest.events where trace_id is null or at is null or run_id is null"
    assert db.execute(missing).fetchone() == (0,)
    db.execute("delete from ingest.event_log")  # as retention does


@pytest.mark.parametrize("kind", ["plan", "page", "consolidate", "batch"])
def test_a_lease_that_expires_is_recovered_and_its_holder_fenced_off(db: DB, clock: Clock, kind: str) -> None:
    """X-02, X-06, P-155: owner, expiry, renewal and number, for each kind of message"""
    define(db)
    if kind == "plan":
        db.execute("select ingest.start('nivoda')")
    else:
        run_of(db, 1)
    if kind in ("consolidate", "batch"):
        page(db, claim(db, "page")[0], ["a"])
    if kind == "batch":
        (step,) = claim(db, "consolidate")
        with db.transaction():
            db.execute("select ingest.begin_consolidation(%s, %s)", [step.step_id, step.lease_id])
            settle(db, step, Continue({"batches": 1}, step.cursor))
    (first,) = claim(db, kind)
    clock.advance(seconds(200))
    make(db, calls.renew_leases("w1", [first.lease_id], lease=seconds(300), step_ids=[first.step_id]))
    clock.advance(seconds(200))
    assert make(db, calls.rescue_steps(batch=10)) == []
    clock.advance(seconds(200))
    assert len(make(db, calls.rescue_steps(batch=10))) == 1
    assert settle(db, first, Done(None)) == []
    clock.advance(seconds(30))
    (second,) = claim(db, kind, worker="w2")
    assert (second.step_id, second.lease_id > first.lease_id) == (first.step_id, True)
