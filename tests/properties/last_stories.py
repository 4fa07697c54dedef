"""Stories about claims that lease their steps first and charge the limits last (see limit_stories.py).

In each, a claim has found plenty of room and leased its step, and waits for another session that takes the room away.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from datetime import datetime
from typing import Any

import psycopg

from holdfast.kernel import limit_calls
from holdfast.kernel.db import run
from holdfast.models import Fail, Release
from holdfast.testing import Clock
from properties.limit_stories import SECOND, THROTTLED, bucket, charged, ids, limit, meanwhile, overlapping, tasks
from properties.scenarios import DB, claim, claim_one, settle, start, value


def met(db: DB) -> None:
    """Make the limit's state, because a claim that makes it waits for nobody; and let each step take 1."""
    db.execute("update holdfast.kinds set call_weight = null")  # the kinds of earlier stories stay
    run(db, limit_calls.pause_limit("api"))
    run(db, limit_calls.resume_limit("api"))


def while_it_waits(db: DB, first: Callable[[DB], Any], then: Callable[[DB], Any]) -> list[Any]:
    """Let a claim wait for what another session did and has not committed; `then` that does more and commits."""
    with psycopg.connect(db.info.dsn, autocommit=True) as other, ExitStack() as stack:
        with other.transaction():
            first(other)
            answer = stack.enter_context(meanwhile(db, lambda two: claim(two, "b")))
            then(other)
        return answer()


def claimed_at(db: DB, step: Any) -> datetime:
    moment: datetime = value(db, "select claimed_at from holdfast.steps where id = %s", step.step_id)
    return moment


def slots_are_taken_meanwhile(db: DB) -> None:
    limit(db, concurrency=10)
    met(db)
    tasks(db, *[1] * 11)
    assert overlapping(db, lambda one: claim(one, "a", batch=10), lambda two: claim(two, "b")) == []
    assert value(db, "select count(*) from holdfast.steps where lease_id is not null") == 10


def tokens_are_taken_meanwhile(db: DB) -> None:
    bucket(db, burst=10)
    met(db)
    tasks(db, *[1] * 11)
    assert overlapping(db, lambda one: claim(one, "a", batch=10), lambda two: claim(two, "b")) == []


def tokens_that_come_meanwhile_are_not_spent_before(db: DB) -> None:
    """Ten tokens now, five more in five seconds: an eleventh step is charged after them, not now."""
    bucket(db, burst=10)
    met(db)
    tasks(db, *[1] * 11)
    held: list[Any] = []

    def later(other: DB) -> None:
        Clock(db).advance(5 * SECOND)
        assert charged(other, held[0]) is None

    (step,) = while_it_waits(db, lambda one: held.extend(claim(one, "a", batch=10)), later)

    assert claimed_at(db, step) - claimed_at(db, held[0]) == 5 * SECOND


def a_step_is_parked_meanwhile(db: DB) -> None:
    bucket(db, burst=20)
    met(db)
    db.execute("update holdfast.limit_states set tokens = 15, filled_at = holdfast.clock()")
    (heavy,) = tasks(db, 18)
    assert overlapping(db, lambda one: claim(one, "a"), lambda two: (tasks(two, 1), claim(two, "b"))[1]) == []
    assert value(db, "select parked_for from holdfast.steps where id = %s", heavy) == "limit"


def the_limit_is_paused_meanwhile(db: DB) -> None:
    limit(db, concurrency=100)
    met(db)
    tasks(db, 1)
    assert overlapping(db, lambda one: run(one, limit_calls.pause_limit("api")), lambda two: claim(two, "b")) == []


def the_breaker_opens_meanwhile(db: DB) -> None:
    limit(db, breaker_after=1, breaker_for=10 * SECOND)
    met(db)
    tasks(db, 1, 1)
    step = claim_one(db)
    assert overlapping(db, lambda one: settle(one, step, Fail(THROTTLED)), lambda two: claim(two, "b")) == []


def the_state_is_removed_meanwhile(db: DB) -> None:
    limit(db, concurrency=100)
    met(db)
    tasks(db, 1)
    got = overlapping(db, lambda one: one.execute("select holdfast.forget_idle_limits(9)"), lambda two: claim(two, "b"))
    assert len(got) == 1
    assert value(db, "select held from holdfast.limit_states where name = 'api'") == 1


def the_bucket_is_made_meanwhile(db: DB) -> None:
    """A bucket gives back what was charged since it was made, so it is not charged for a time before that."""
    bucket(db, burst=100)
    start(db)
    held = claim_one(db)
    met(db)
    tasks(db, 1)

    def later(other: DB) -> None:
        Clock(db).advance(SECOND)
        assert charged(other, held) is None

    (step,) = while_it_waits(db, lambda one: one.execute("select from holdfast.limit_states for update"), later)
    settle(db, step, Release())
    assert value(db, "select tokens from holdfast.limit_list where name = 'api'") == 99


def a_claim_that_charges_again_keeps_the_order(db: DB) -> None:
    limit(db, concurrency=100)
    met(db)
    first, _ = tasks(db, 1, 1)
    removed = "select holdfast.forget_idle_limits(9)"
    assert ids(overlapping(db, lambda one: one.execute(removed), lambda two: claim(two, "b"))) == [first]
