"""The document's six figures, counted as work happens, and states that are rebuilt from the journal."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run as made
from holdfast.models import Retry, Settlement
from holdfast.testing.kit import Clock
from kernel.steps import rescue, value
from rules.plans import LEASE, applied, called, claim, define, fails, ids, preview, previewed, row, statuses, work

DB = Connection[Any]
THROTTLED = {"message": "slow down", "class": "RATE_LIMIT"}
NAMES = {"rules.apply.count": ("runs", "counter"), "rules.apply.duration_ms": ("milliseconds", "histogram"),
         "rules.apply.success_rate": ("percent", "gauge"), "rules.dlq.size": ("targets", "gauge"),
         "rules.target.retries": ("retries", "counter"), "rules.429.count": ("errors", "counter")}  # fmt: skip


def figures(db: DB, channel: str = "shop") -> dict[str, Any]:
    """Read the figures of a channel by their names."""
    return dict(db.execute("select name, value from rules.metrics where channel = %s", [channel]).fetchall())


def one_run(db: DB, number: int, *failing: str) -> UUID:
    """Apply a run of one item."""
    run_id = UUID(str(preview(db, [row(f"SKU-{number}")])["run_id"]))
    applied(db, run_id)
    work(db, fails(*failing))
    return run_id


def throttle(db: DB, *, calls_of: int) -> None:
    """Let all targets that are due be throttled, as calls of so many."""
    steps = claim(db)
    settlements = [
        Settlement(step.step_id, step.lease_id, Retry(THROTTLED),
                   raised_with=steps[place // calls_of * calls_of].step_id)
        for place, step in enumerate(steps)
    ]  # fmt: skip
    made(db, calls.settle_steps(settlements))


def test_the_figures_have_the_documents_names_and_units(db: DB) -> None:
    """A-90 … A-95"""
    previewed(db, 1)
    assert figures(db) == {}
    applied(db, previewed(db, 1, channel="outlet"))
    rows = db.execute("select name, unit, kind, channel, tenant_id from rules.metrics").fetchall()
    assert {name: (unit, kind) for name, unit, kind, _, _ in rows} == NAMES
    assert {(channel, tenant) for *_, channel, tenant in rows} == {("outlet", "default")}


def test_runs_and_their_durations_are_counted(db: DB) -> None:
    """A-90, A-91: three runs are three; a run that is retried is no new apply, and ends once more"""
    define(db)
    clock = Clock(db)
    clock.freeze()
    for number, seconds in ((1, 3), (2, 30), (3, 3)):
        run_id = UUID(str(preview(db, [row(f"SKU-{number}")])["run_id"]))
        applied(db, run_id)
        clock.advance(timedelta(seconds=seconds))
        work(db, fails("SKU-3", error={"message": "down", "class": "SERVER_ERROR"}))
    assert (figures(db)["rules.apply.count"], figures(db)["rules.apply.duration_ms"]) == (3, 36_000)
    called(db, "retry_failed", run_id=run_id)
    clock.advance(timedelta(seconds=4))
    work(db)
    assert (figures(db)["rules.apply.count"], figures(db)["rules.apply.duration_ms"]) == (3, 40_000)
    buckets = value(db, "select buckets from rules.metrics where name = 'rules.apply.duration_ms'")
    assert buckets["count"] == 4
    assert {bound: count for bound, count in buckets["atMost"].items() if count} == {"5000": 3, "60000": 1}


def test_the_success_rate_is_that_of_the_last_run(db: DB) -> None:
    """A-92, A-122, C-16: 97 of 100 are 97; a run without targets has no sample"""
    define(db)
    one_run(db, 1)
    assert figures(db)["rules.apply.success_rate"] == 100
    run_id = UUID(str(preview(db, [row(f"SKU-{number}") for number in range(1, 101)])["run_id"]))
    applied(db, run_id)
    work(db, fails("SKU-1", "SKU-2", "SKU-3"))
    assert figures(db)["rules.apply.success_rate"] == 97
    applied(db, UUID(str(preview(db, [])["run_id"])))
    assert (figures(db)["rules.apply.success_rate"], figures(db)["rules.apply.count"]) == (97, 3)


def test_the_dead_letter_is_counted_while_nobody_has_dealt_with_it(db: DB) -> None:
    """A-93, C-06: equals the unresolved failed targets, after a retry, a resolve and a rollback"""
    run_id = previewed(db, 4)
    applied(db, run_id)
    work(db, fails("SKU-1", "SKU-2", "SKU-3", error={"message": "down", "class": "SERVER_ERROR"}))
    assert figures(db)["rules.dlq.size"] == 3
    called(db, "retry_failed", run_id=run_id, only_ids=ids(db, run_id)[:1])
    assert figures(db)["rules.dlq.size"] == 2
    work(db)
    called(db, "resolve", run_id=run_id, targets=ids(db, run_id)[1:2])
    assert figures(db)["rules.dlq.size"] == 1
    called(db, "rollback", run_id=run_id, apply=True)
    work(db)
    assert figures(db)["rules.dlq.size"] == 0


def test_retries_are_counted(db: DB) -> None:
    """A-94: an always failing target is retried three times; a lease that ran out is a retry too"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    clock = Clock(db)
    clock.freeze()
    for _ in range(4):
        work(db, fails("SKU-1", error={"message": "down", "class": "SERVER_ERROR"}, final=False))
        clock.advance(timedelta(seconds=20))
    assert (statuses(db, run_id), figures(db)["rules.target.retries"]) == (["FAILED"], 3)
    called(db, "retry_failed", run_id=run_id)
    claim(db)
    clock.advance(2 * LEASE)
    rescue(db)
    assert figures(db)["rules.target.retries"] == 4
    assert figures(db)["rules.429.count"] == 0


def test_rate_limits_are_counted_per_call(db: DB) -> None:
    """A-95: two 429s are two, whatever the number of their targets; the last try counts too"""
    run_id = previewed(db, 6)
    applied(db, run_id)
    clock = Clock(db)
    clock.freeze()
    for number in range(1, 5):
        throttle(db, calls_of=3)
        assert figures(db)["rules.429.count"] == 2 * number
        clock.advance(timedelta(minutes=5))
    assert (set(statuses(db, run_id)), figures(db)["rules.target.retries"]) == ({"FAILED"}, 18)


def test_connections_count_apart_and_retention_adds_up(db: DB, dsn: str) -> None:
    """A-90: nobody waits for anybody, and what connections counted that are gone stays"""
    define(db)
    one_run(db, 1)
    with psycopg.connect(dsn, autocommit=True) as other:
        one_run(other, 2, "SKU-2")
    before = db.execute("select name, value, buckets from rules.metrics order by name").fetchall()
    assert value(db, "select count(*) from rules.figures") == 2
    for _ in range(2):
        db.execute("select rules.age_rows(100)")
        assert db.execute("select slot from rules.figures").fetchall() == [(0,)]
        assert db.execute("select name, value, buckets from rules.metrics order by name").fetchall() == before
    one_run(db, 3)
    assert (figures(db)["rules.apply.count"], figures(db)["rules.apply.success_rate"]) == (3, Decimal(100))


def test_states_are_rebuilt_from_the_journal(db: DB) -> None:
    """A-124: also of what was retried, rolled back or never moved, and a gap shows"""
    run_id = previewed(db, 4)
    applied(db, run_id, without_ids=ids(db, run_id)[3:])
    work(db, fails("SKU-2"))
    called(db, "rollback", run_id=run_id, apply=True)
    work(db)
    rebuilt = called(db, "states_from_history", run_id=run_id)
    assert [each["status"] for each in rebuilt] == ["ROLLED_BACK", *statuses(db, run_id)]
    assert [each["status"] for each in rebuilt[1:]] == ["ROLLED_BACK", "FAILED", "ROLLED_BACK", "PREVIEW"]
    assert all(each["is_whole"] for each in rebuilt)
    assert [each["moves"] for each in rebuilt] == [5, 4, 3, 4, 0]
    assert called(db, "states_from_history", run_id=UUID(int=1)) == []
    with db.transaction(force_rollback=True):
        db.execute("set local session_replication_role = replica")
        db.execute("delete from holdfast.journal where step_id = %s and event = 'claimed'", [ids(db, run_id)[0]])
        gap = called(db, "states_from_history", run_id=run_id)
        assert [each["is_whole"] for each in gap] == [True, False, True, True, True]
