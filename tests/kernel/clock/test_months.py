"""Months of the journal and the notes are dropped whole, without making anybody wait for long."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from holdfast import errors
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.retention import days, keep, removal, sweep, task
from kernel.steps import DB, at_once, claim_one, start, value, violations

pytestmark = pytest.mark.own_database


def months(db: DB) -> list[str]:
    rows = db.execute(
        "select c.relname from pg_inherits i join pg_class c on c.oid = i.inhrelid"
        " where i.inhparent in ('holdfast.journal'::regclass, 'holdfast.notes'::regclass) order by 1"
    )
    return [name for (name,) in rows]


def month_of(db: DB) -> str:
    month: str = value(db, "select to_char(holdfast.clock() at time zone 'UTC', 'YYYYMM')")
    return month


def drop_all(db: DB) -> list[str]:
    dropped = []
    while (month := run(db, retention_calls.drop_month())[0]) is not None:
        dropped.append(month)
    return dropped


def to_the_next_month(db: DB, clock: Clock, months: int) -> None:
    """Set the clock to the first moment of the month so many months from now."""
    clock.set(value(db, "select (date_trunc('month', holdfast.clock() at time zone 'UTC') + %s * interval '1 month')"
                        " at time zone 'UTC'", months))  # fmt: skip


@pytest.fixture
def first(db: DB, clock: Clock) -> str:
    """The first month, in which one task was done."""
    clock.freeze()
    task(db)
    return month_of(db)


def test_a_month_goes_when_all_of_it_is_six_months_old(db: DB, clock: Clock, first: str) -> None:
    """X-16: whole months of both, and not a moment earlier."""
    to_the_next_month(db, clock, 7)
    clock.set(clock.now() - days(0.0001))
    assert (sweep(db).months, drop_all(db)) == (0, [])

    to_the_next_month(db, clock, 1)

    assert sweep(db).months == 2
    assert drop_all(db) == [f"journal_{first}", f"notes_{first}"]
    assert f"journal_{first}" not in months(db)
    run(db, calls.upkeep())
    assert violations(db) == []


def test_a_rule_keeps_the_journal_longer_or_forever(db: DB, clock: Clock, first: str) -> None:
    to_the_next_month(db, clock, 12)
    keep(db, None, what="journal")
    assert drop_all(db) == []

    keep(db, "1 year", what="journal")
    assert drop_all(db) == []

    to_the_next_month(db, clock, 1)
    assert drop_all(db) == [f"journal_{first}", f"notes_{first}"]


def test_nothing_is_dropped_before_the_first_sweep(db: DB, clock: Clock, first: str) -> None:
    to_the_next_month(db, clock, 8)
    db.execute("update holdfast.retention_sweep set begins_at = holdfast.clock() + interval '1 second'")

    assert drop_all(db) == []


def test_it_is_no_longer_known_that_what_the_journal_forgot_was_there(db: DB, clock: Clock) -> None:
    clock.freeze()
    step_id = task(db)
    clock.advance(days(31))
    sweep(db)
    assert removal(db, step_id) is not None

    to_the_next_month(db, clock, 8)
    drop_all(db)

    assert removal(db, step_id) is None
    with pytest.raises(errors.NotFound):
        run(db, calls.retry(str(step_id)))


def test_who_reads_the_journal_is_waited_for_a_tenth_of_a_second(dsn: str, db: DB, clock: Clock, first: str) -> None:
    """Neither the drop nor a claim that queues up behind it waits until the reader ends; the month is dropped later."""
    to_the_next_month(db, clock, 7)
    start(db)
    with psycopg.connect(dsn) as reader:
        reader.execute("select count(*) from holdfast.journal")

        dropped, claimed = at_once(
            dsn, lambda one: run(one, retention_calls.drop_month()), lambda two: len(run(two, calls.claim_steps("w")))
        )

        assert (dropped, claimed, reader.info.transaction_status) == ([None], 1, TransactionStatus.INTRANS)
        blocked = db.execute("select blocked_month, blocked_at is not null from holdfast.retention_sweep")
        assert blocked.fetchone() == (f"journal_{first}", True)
    ((limit,),) = db.execute("select proconfig from pg_proc where oid = 'holdfast.drop_month'::regproc").fetchall()
    assert "lock_timeout=100ms" in limit
    assert drop_all(db) == [f"journal_{first}", f"notes_{first}"]
    assert value(db, "select blocked_month is null from holdfast.retention_sweep")


def test_a_month_is_dropped_in_a_transaction_of_its_own(db: DB, clock: Clock, first: str) -> None:
    """Not after upkeep, which has journaled by then: the lock would be held until that transaction ends."""
    to_the_next_month(db, clock, 8)
    start(db)
    with db.transaction():
        run(db, calls.claim_steps("w"))
        with pytest.raises(errors.WrongState), db.transaction():
            run(db, retention_calls.drop_month())

    assert f"journal_{first}" in months(db)


def test_a_story_that_began_in_a_dropped_month_is_sound(db: DB, clock: Clock) -> None:
    """A task that is older than its journal."""
    clock.freeze()
    step_id = start(db)
    run(db, calls.claim_steps("w"))
    to_the_next_month(db, clock, 8)
    run(db, calls.rescue_steps())
    drop_all(db)

    assert violations(db) == []
    run(db, calls.claim_steps("w"))
    assert run(db, calls.step_status([step_id]))[0].attempts == 2


def test_upkeep_makes_the_month_of_a_clock_that_was_set_back(db: DB, clock: Clock) -> None:
    """A worker that drains would otherwise fail to journal its claims, and never end"""
    clock.set(clock.now() - days(800))
    start(db)
    with pytest.raises(psycopg.errors.CheckViolation):
        claim_one(db)

    (done,) = run(db, calls.measured_upkeep("w"))

    assert done.partitions > 0
    assert claim_one(db).attempt == 1
    assert run(db, calls.measured_upkeep("w"))[0].partitions == 0
