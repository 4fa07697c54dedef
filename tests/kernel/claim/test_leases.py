"""Leases: what they are while they last, and the fence that they are when they are lost."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock, events
from kernel.steps import (
    DB,
    LEASE,
    claim,
    claim_one,
    column,
    finish,
    node,
    notes,
    rescue,
    seconds,
    settle,
    start,
    start_flow,
    step_row,
    value,
)

PAST = LEASE + seconds(1)
OUTCOMES: list[Outcome] = [Done(1), Retry("e"), Fail("e"), Snooze(seconds(1)), Continue(1), Release()]


def leases(db: DB) -> list[datetime]:
    return [until for (until,) in db.execute("select lease_until from holdfast.steps order by id")]


def renew(db: DB, worker: str, *steps: ClaimedStep, lease: timedelta | None = LEASE, by_id: bool = False) -> list[int]:
    step_ids = [s.step_id for s in steps] if by_id else None
    return run(db, calls.renew_leases(worker, [s.lease_id for s in steps], lease=lease, step_ids=step_ids))


def taken_over(db: DB, clock: Clock, *, by: str = "b") -> tuple[ClaimedStep, ClaimedStep]:
    """A claim whose lease ran out, and the one that took its place."""
    start(db)
    old = claim_one(db, "a")
    clock.advance(PAST)
    assert rescue(db) == [(old.step_id, "expired")]
    return old, claim_one(db, by)


@pytest.mark.parametrize("by_id", [False, True], ids=["by lease", "by step"])
def test_a_renewal_counts_from_now(db: DB, clock: Clock, by_id: bool) -> None:
    """W-57 X-06"""
    now = clock.freeze()
    start(db)
    step = claim_one(db)
    clock.advance(seconds(20))

    assert renew(db, "a", step, by_id=by_id) == [step.lease_id]

    assert column(db, step.step_id, "lease_until") == now + seconds(20) + LEASE
    assert events(db, step=step.step_id) == ["claimed"]


def test_a_renewal_without_a_length_takes_the_kinds(db: DB, clock: Clock) -> None:
    db.execute("insert into holdfast.kinds (kind, lease) values ('slow', '1 hour')")
    now = clock.freeze()
    slow, other = start(db, "slow"), start(db, "other")

    assert len(renew(db, "a", *claim(db, batch=2), lease=None)) == 2

    assert [column(db, i, "lease_until") - now for i in (slow, other)] == [seconds(3600), seconds(300)]


@pytest.mark.parametrize("by_id", [False, True], ids=["by lease", "by step"])
def test_a_renewal_of_anothers_lease_is_left_out(db: DB, clock: Clock, by_id: bool) -> None:
    clock.freeze()
    start(db), start(db)
    mine, its = claim_one(db, "a"), claim_one(db, "b")
    clock.advance(seconds(10))

    assert renew(db, "a", mine, its, by_id=by_id) == [mine.lease_id]

    assert column(db, its.step_id, "lease_until") == its.lease_until


@pytest.mark.parametrize("by_id", [False, True], ids=["by lease", "by step"])
def test_a_renewal_of_a_lost_lease_is_left_out(db: DB, clock: Clock, by_id: bool) -> None:
    """R3 W-61"""
    old, new = taken_over(db, clock)

    assert renew(db, "a", old, by_id=by_id) == []

    assert column(db, new.step_id, "lease_until") == new.lease_until


def test_a_lease_that_ran_out_but_was_not_taken_is_still_the_workers(db: DB, clock: Clock) -> None:
    """C-61"""
    start(db)
    step = claim_one(db)
    clock.advance(PAST)

    assert renew(db, "a", step) == [step.lease_id]
    assert rescue(db) == []
    clock.advance(PAST)
    assert finish(db, [step]) == [step.step_id]


def test_a_task_far_longer_than_its_lease_is_executed_once_while_it_is_renewed(db: DB, clock: Clock) -> None:
    """W-57"""
    start(db)
    step = claim_one(db)

    for _ in range(9):
        clock.advance(LEASE / 3)
        assert renew(db, "a", step) == [step.lease_id]
        assert rescue(db) == []

    assert finish(db, [step]) == [step.step_id]
    assert events(db, step=step.step_id) == ["claimed", "succeeded"]


@pytest.mark.parametrize("by_id", [True, False])
def test_a_step_that_somebody_has_locked_holds_up_no_renewal(db: DB, dsn: str, clock: Clock, by_id: bool) -> None:
    """R8: it is still the worker's, and lengthened the next time; the others are lengthened now."""
    clock.freeze()
    start(db)
    start(db)
    locked, free = claim(db, batch=2)
    until = [locked.lease_until + seconds(10), free.lease_until + seconds(10)]
    clock.advance(seconds(10))
    db.execute("set lock_timeout = '10s'")

    with psycopg.connect(dsn) as other:
        other.execute("select from holdfast.steps where id = %s for update", [locked.step_id])
        held = renew(db, "a", locked, free, by_id=by_id)
        meanwhile = leases(db)
    again = renew(db, "a", locked, free, by_id=by_id)

    assert sorted(held) == sorted(again) == sorted([locked.lease_id, free.lease_id])
    assert meanwhile == [locked.lease_until, until[1]]
    assert leases(db) == until


def test_a_renewal_does_not_write_its_run(db: DB) -> None:
    """A run's row is hot; a heartbeat of one of its steps is none of its business"""
    run_id = start_flow(db, node("a"))
    step = claim_one(db)
    before = value(db, "select xmin::text from holdfast.runs where id = %s", run_id)

    assert renew(db, "a", step) == [step.lease_id]

    assert value(db, "select xmin::text from holdfast.runs where id = %s", run_id) == before


@pytest.mark.parametrize("by", ["b", "a"], ids=["by another", "by one of the same name"])
def test_who_lost_the_lease_settles_nothing(db: DB, clock: Clock, by: str) -> None:
    """R3 R4 W-61 C-62: also when host and name are the same, for it is the number that counts"""
    old, new = taken_over(db, clock, by=by)
    before = step_row(db, old.step_id)

    assert [settle(db, old, outcome) for outcome in OUTCOMES] == [[]] * 6

    assert step_row(db, old.step_id) == before
    assert settle(db, new, Done("second's")) == ["succeeded"]
    assert [settle(db, old, outcome) for outcome in OUTCOMES] == [[]] * 6
    assert column(db, old.step_id, "result") == "second's"
    assert notes(db, old.step_id) == []


@pytest.mark.parametrize("by", ["b", "a"], ids=["by another", "by one of the same name"])
def test_who_lost_the_lease_writes_no_note_and_is_told(db: DB, clock: Clock, by: str) -> None:
    """R3 R4 W-61"""
    old, new = taken_over(db, clock, by=by)

    with pytest.raises(errors.LeaseLost, match=f"{old.step_id} .*{old.lease_id}"):
        run(db, calls.note(old.step_id, old.lease_id, "info", "still here"))
    assert renew(db, by, old) == []

    run(db, calls.note(new.step_id, new.lease_id, "info", "mine"))
    assert notes(db, old.step_id) == [("info", "mine")]


def test_a_lost_lease_in_a_batch_costs_only_its_own_step(db: DB, clock: Clock) -> None:
    old, new = taken_over(db, clock)
    start(db)
    other = claim_one(db, "a")

    assert finish(db, [old, other]) == [other.step_id]

    assert column(db, new.step_id, "lease_id") == new.lease_id


def test_the_lease_of_one_step_opens_no_other(db: DB) -> None:
    start(db), start(db)
    one, two = claim(db, batch=2)
    crossed: Any = ClaimedStep(one.step_id, None, "mail", {}, 1, two.lease_id, two.lease_until, None)

    assert settle(db, crossed, Done()) == []
    assert settle(db, crossed, Fail("e")) == []

    assert sorted(finish(db, [one, two])) == [one.step_id, two.step_id]


def test_a_claim_in_an_old_transaction_gives_a_full_lease(db: DB, dsn: str, clock: Clock) -> None:
    """R17 C-72"""
    start(db)
    with Connection.connect(dsn, autocommit=True) as other, db.transaction():
        db.execute("select now()")
        Clock(other).advance(seconds(2))
        before = clock.now()

        step = claim_one(db)

        assert step.lease_until >= before + LEASE
        assert renew(db, "a", step) == [step.lease_id]
        assert column(db, step.step_id, "lease_until") >= before + LEASE
