"""Stories of ingest in which two transactions meet at the same row."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg

from holdfast.models import Continue, Done, Retry
from ingest.runs import DB, claim, consolidate, events, facts, page, put, run_of, settle

WAITING = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"


def partitions_that_end_together_decide_once(db: DB, number: int = 2) -> None:
    """P-09, P-73, P-76, C-17: each is settled in a transaction of its own, all of them at the same time"""
    run_id = run_of(db, number)
    steps = claim(db, "page", batch=number)
    with ExitStack() as stack:
        others = [stack.enter_context(psycopg.connect(db.info.dsn, autocommit=True)) for _ in steps]
        last = stack.enter_context(ThreadPoolExecutor(number))
        with db.transaction():  # while it is open, all of them wait to count, and not for a foreign key before that
            db.execute("select from ingest.run_facts where run_id = %s for no key update", [run_id])
            ended = [
                last.submit(settle, other, step, Done({"records": 1}))
                for other, step in zip(others, steps, strict=True)
            ]
            while db.execute(WAITING).fetchone() != (number,):
                db.execute("select pg_stat_clear_snapshot()")
        assert [len(each.result()) for each in ended] == [1] * number
    counts = facts(db, run_id)
    assert (counts["completed_workers"], counts["state"]) == (number, "consolidation_triggered")
    assert counts["records"] == number
    assert len(events(db, run_id, "CONSOLIDATE")) == 1
    assert len(events(db, run_id, "WORK_DONE")) == number


def beside(db: DB, first: Callable[[], Any], second: Callable[[DB], Any]) -> Any:
    """Do the first in a transaction; commit it once the second, in another one, waits for a lock or is over."""
    with psycopg.connect(db.info.dsn, autocommit=True) as other, ThreadPoolExecutor(1) as pool:
        with db.transaction():
            first()
            begun: Future[Any] = pool.submit(second, other)
            while db.execute(WAITING).fetchone() != (1,) and not begun.done():
                db.execute("select pg_stat_clear_snapshot()")
        return begun.result()


def batches_that_fail_together_alert_once(db: DB) -> None:
    """P-142, C-29: one alert at the first failure"""
    db.execute("""update ingest.known_feeds set settings = settings || '{"batch": 2}'""")
    run_id = run_of(db, 1)
    (step,) = claim(db, "page")
    page(db, step, ["a", "b", "c", "d"])
    (step,) = claim(db, "consolidate")
    with db.transaction():
        db.execute("select ingest.begin_consolidation(%s, %s)", [step.step_id, step.lease_id])
        settle(db, step, Continue({"end": True}, step.cursor))
    one, two = claim(db, "batch", batch=2)
    outcome = Retry({"type": "Unavailable", "message": "the table is locked"})
    settled = beside(db, lambda: settle(db, one, outcome), lambda other: settle(other, two, outcome))
    assert len(settled) == 1
    assert len(events(db, run_id, "alert")) == 1


def a_record_that_comes_back_while_it_is_aged_stays(db: DB) -> None:
    """P-40: a page that revives it commits between the look of retention and its delete"""
    run_of(db, 1)
    (step,) = claim(db, "page")
    page(db, step, ["a", "b"])
    consolidate(db)
    db.execute("update ingest.payloads set deleted = true, changed_at = holdfast.clock() - interval '40 days'")
    run_of(db, 1)
    (step,) = claim(db, "page")
    aged = beside(db, lambda: put(db, step, ["a"]), lambda other: other.execute("select ingest.age_rows(9)").fetchone())
    assert aged == (1,)
    assert db.execute("select key, deleted from ingest.raw_nivoda").fetchall() == [("a", False)]
