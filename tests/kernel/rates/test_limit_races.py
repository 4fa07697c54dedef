"""Limits when several claims, settles and changes of rules happen at the same moment."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import psycopg
import pytest

from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry, Settlement
from holdfast.testing import Clock
from kernel.steps import DB, at_once, claim, claim_one, finish, seconds, settle, start, until_blocked, value, violations

pytestmark = pytest.mark.one_server


@contextmanager
def session(dsn: str) -> Iterator[DB]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def limit(db: DB, name: str, **rule: Any) -> None:
    run(db, limit_calls.define_limit(name, **rule))


def held(db: DB) -> int:
    count: int = value(db, "select count(*) from holdfast.steps where lease_id is not null")
    return count


def test_the_last_slot_goes_to_one_of_two_claims(dsn: str, db: DB) -> None:
    """One claim holds the limit's lock, uncommitted; the other waits for it and then finds the slot taken."""
    limit(db, "api", concurrency=1)
    for _ in range(2):
        start(db, limits=["api"])
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            assert len(claim(one, "a")) == 1
            got = at_once_with(two, lambda: claim(two, "b"), db)
        assert got() == []
    assert (held(db), violations(db)) == (1, [])


def at_once_with(blocked: DB, act: Any, watcher: DB) -> Any:
    """Run `act` in a thread until it waits for a lock; give what fetches its answer."""
    answers: list[Any] = []
    thread = Thread(target=lambda: answers.append(act()))
    thread.start()
    until_blocked(watcher, blocked.info.backend_pid)

    def answer() -> Any:
        thread.join()
        return answers[0]

    return answer


def test_a_slot_that_is_freed_while_a_claim_parks_a_step_is_not_lost(dsn: str, db: DB) -> None:
    """The claim finds the limit full and parks; the settle waits for it, and then sees who is parked."""
    limit(db, "api", concurrency=1)
    start(db, limits=["api"])
    first = claim_one(db)
    waiting = start(db, limits=["api"])
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            assert claim(one, "a") == []
            got = at_once_with(two, lambda: finish(two, [first]), db)
        assert got() == [first.step_id]

    assert [step.step_id for step in claim(db)] == [waiting]


def test_a_slot_that_is_freed_before_a_waiting_claim_parks_is_used(dsn: str, db: DB) -> None:
    """The settle has the limit's lock; the claim waits for it and must read what it left."""
    limit(db, "api", concurrency=1)
    start(db, limits=["api"])
    first = claim_one(db)
    waiting = start(db, limits=["api"])
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            finish(one, [first])
            got = at_once_with(two, lambda: claim(two, "b"), db)
        assert [step.step_id for step in got()] == [waiting]


def test_two_that_free_slots_at_once_leave_nobody_asleep(dsn: str, db: DB) -> None:
    limit(db, "api", concurrency=2)
    for _ in range(4):
        start(db, limits=["api"])
    one, two = claim(db, batch=4)

    at_once(dsn, lambda c: finish(c, [one]), lambda c: finish(c, [two]))

    assert len(claim(db, batch=4)) == 2


def test_one_probe_is_admitted_by_two_claims(dsn: str, db: DB, clock: Clock) -> None:
    clock.freeze()
    limit(db, "api", breaker_after=1, breaker_for=seconds(10))
    start(db, limits=["api"])
    settle(db, claim_one(db), Fail({"type": "RateLimited"}))
    for _ in range(3):
        start(db, limits=["api"])
    clock.advance(seconds(10))
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            assert len(claim(one, "a")) == 1
            got = at_once_with(two, lambda: claim(two, "b", batch=3), db)
        assert got() == []
    assert held(db) == 1


def test_a_new_rule_waits_for_a_claim_under_way_and_counts_it(dsn: str, db: DB) -> None:
    start(db, limits=["api"])
    later = start(db, limits=["api"])
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            assert len(claim(one, "a")) == 1
            got = at_once_with(two, lambda: limit(two, "api", concurrency=1), db)
        got()

    assert claim(db, "b") == []
    assert value(db, "select limited_by is not null from holdfast.steps where id = %s", later)


def test_a_start_in_an_open_transaction_stops_no_claim(dsn: str, db: DB) -> None:
    limit(db, "api", concurrency=2, rate=1, per=seconds(1), burst=9)
    start(db, limits=["api"])
    with session(dsn) as open_one, open_one.transaction():
        start(open_one, limits=["api"])
        db.execute("set lock_timeout = '2s'")
        assert len(claim(db, batch=5)) == 1


def test_a_claim_counts_a_limit_whose_state_another_claim_makes_meanwhile(dsn: str, db: DB) -> None:
    """R2 under limits: both meet the limit for the first time; the second has looked for its state too early."""
    limit(db, "shop:*", concurrency=2)
    for _ in range(4):
        start(db, limits=["shop:a"])
    db.execute("alter function holdfast.add_limit_states set schema public")
    db.execute("""
        create function holdfast.add_limit_states(names text[], tenants text[], has_exact boolean) returns int
        language plpgsql as $$
        begin
          perform pg_advisory_xact_lock_shared(77);  -- between the look for the states and their making
          return public.add_limit_states(names, tenants, has_exact);
        end $$""")
    with session(dsn) as one, session(dsn) as two:
        one.execute("select pg_advisory_lock(77)")
        with one.transaction():  # its steps stay locked, so that the other takes the rest
            assert len(claim(one, "a", batch=2)) == 2
            got = at_once_with(two, lambda: claim(two, "b", batch=2), db)
        one.execute("select pg_advisory_unlock(77)")
        assert got() == []
    assert (held(db), violations(db)) == (2, [])


def test_many_workers_never_hold_more_than_the_limits_and_finish_everything(dsn: str, db: DB) -> None:
    """R1, R2 under limits: three shops with two slots each, and one limit over all."""
    limit(db, "shop:*", concurrency=2)
    limit(db, "queue:default", concurrency=5)
    tasks = [start(db, limits=[f"shop:{n % 3}"]) for n in range(120)]
    most: list[int] = []

    def work(connection: DB) -> list[int]:
        done: list[int] = []
        worker, idle = str(connection.info.backend_pid), 0
        while idle < 40:
            steps = claim(connection, worker, batch=4)
            idle = 0 if steps else idle + 1
            rows = connection.execute(
                "select max(count) from (select count(*) from holdfast.steps where lease_id is not null "
                "group by limits) c"
            ).fetchone()
            most.append(rows[0] or 0 if rows else 0)
            done += finish(connection, steps)
        return done

    finished = at_once(dsn, work, work, work)

    left = len(tasks)
    while batch := claim(db, batch=10):  # what the three left when they all happened to find nothing
        finished.append(finish(db, batch))
        left -= 1
        assert left
    assert sorted(step for steps in finished for step in steps) == tasks
    assert max(most) <= 2
    assert violations(db) == []
    assert value(db, "select sum(held) + sum(parked) from holdfast.limit_states") == 0


def test_what_is_done_and_what_is_not_settle_together(db: DB) -> None:
    limit(db, "shop:*", concurrency=3)
    for n in range(6):
        start(db, limits=[f"shop:{n % 2}"])
    steps = claim(db, batch=6)
    outcomes = [Done() if n % 2 else Fail("no") for n in range(6)]

    settled = run(
        db, calls.settle_steps([Settlement(s.step_id, s.lease_id, o) for s, o in zip(steps, outcomes, strict=True)])
    )

    assert len(settled) == 6
    assert value(db, "select sum(held) from holdfast.limit_states") == 0


def test_a_pause_is_recorded_when_it_takes_effect(dsn: str, db: DB) -> None:
    """A settle reads the clock and waits; the claim that passes meanwhile did not break the pause that follows."""
    limit(db, "api", concurrency=2, rate=100, per=seconds(1))
    for _ in range(2):
        start(db, limits=["api"])
    first = claim_one(db)
    with session(dsn) as one, session(dsn) as two:
        with one.transaction():
            one.execute("select from holdfast.steps where id = %s for update", [first.step_id])
            refused = Retry({"type": "RateLimited"}, after=10)
            got = at_once_with(two, lambda: settle(two, first, refused), db)
            second = claim_one(db)
        assert got() == ["retried"]

    claimed_at = value(db, "select claimed_at from holdfast.steps where id = %s", second.step_id)
    assert value(db, "select at from holdfast.limit_changes where event = 'paused'") > claimed_at
