"""Outside systems that push back: pauses and breakers of limits."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry, Snooze
from holdfast.testing import Clock
from kernel.limits import LIMITED, fail_limited, ids, limit, settled
from kernel.steps import (
    DB,
    claim,
    claim_one,
    rescue,
    seconds,
    settle,
    start,
    value,
)

pytestmark = pytest.mark.one_server


@pytest.fixture(autouse=True)
def frozen(clock: Clock) -> None:
    clock.freeze()


def test_an_outcome_pauses_a_limit_for_all_and_never_shortens_a_pause(db: DB, clock: Clock) -> None:
    for _ in range(3):
        start(db, limits=["shop:acme"])
    one, two = claim(db, batch=2)

    settled(db, one, "retry", error=LIMITED, retry_after="7 s", pause="shop:acme")
    settled(db, two, "snooze", retry_after="3 s", pause="shop:acme")

    assert claim(db, "b") == []
    clock.advance(seconds(6.9))
    assert claim(db, "b", batch=5) == []
    clock.advance(seconds(0.1))
    assert len(claim(db, "b", batch=5)) == 3


def test_rate_limited_pauses_those_limits_that_have_a_rate_or_a_breaker(db: DB, clock: Clock) -> None:
    """A-55"""
    limit(db, "shop:*", rate=100, per=seconds(1))
    limit(db, "slots", concurrency=9)
    start(db, limits=["shop:acme", "slots"])
    step = claim_one(db)

    settle(db, step, Retry(LIMITED, seconds(7)))

    rows = db.execute("select name from holdfast.limit_list where paused_by is not null").fetchall()
    assert rows == [("shop:acme",)]
    start(db, limits=["shop:acme"])
    free = start(db, limits=["slots"])
    assert ids(claim(db, batch=9)) == [free]


def test_a_pause_asked_for_is_capped_by_the_policy(db: DB, clock: Clock) -> None:
    run(db, calls.define_policy("short", longest_retry_after=seconds(5)))
    run(db, calls.define_kind("mail", policy="short"))
    start(db, limits=["api"])
    settled(db, claim_one(db), "retry", retry_after="1 day", pause="api")
    start(db, limits=["api"])

    clock.advance(seconds(5))

    assert len(claim(db, batch=5)) == 2


def test_the_breaker_opens_after_failures_in_a_row_and_a_success_begins_anew(db: DB) -> None:
    """A-59, A-60"""
    limit(db, "api", breaker_after=6, breaker_for=seconds(60))
    fail_limited(db, 5)
    start(db, limits=["api"])
    settle(db, claim_one(db), Done())
    fail_limited(db, 5)
    start(db, limits=["api"])
    settle(db, claim_one(db), Fail({"type": "ValueError", "message": "a bug"}))
    assert value(db, "select breaker from holdfast.limit_list where name = 'api'") == "closed"

    fail_limited(db, 1)

    assert value(db, "select breaker from holdfast.limit_list where name = 'api'") == "open"
    start(db, limits=["api"])
    assert claim(db, "b") == []


@pytest.mark.parametrize(
    ("outcome", "state", "again"),
    [(Done(), "closed", 0), (Fail("x"), "open", 120), (Snooze(seconds(1)), "half-open", 0), (None, "open", 120)],
)
def test_one_probe_decides_what_becomes_of_an_open_breaker(
    db: DB, clock: Clock, outcome: Any, state: str, again: int
) -> None:
    """A-60: after the pause one probe first"""
    limit(db, "api", breaker_after=1, breaker_for=seconds(60))
    fail_limited(db, 1)
    for _ in range(3):
        start(db, limits=["api"])
    clock.advance(seconds(59.9))
    assert claim(db, batch=3) == []
    clock.advance(seconds(0.1))

    (probe,) = claim(db, batch=3)
    assert claim(db, "b", batch=3) == []
    if outcome is None:
        clock.advance(seconds(31))
        rescue(db)
    else:
        settle(db, probe, outcome)

    assert value(db, "select breaker from holdfast.limit_list where name = 'api'") == state
    if again:
        clock.advance(seconds(again - 0.1))
        assert claim(db, batch=3) == []
        clock.advance(seconds(0.1))
        assert len(claim(db, batch=3)) == 1
    else:
        assert len(claim(db, batch=3)) == (1 if state == "half-open" else 2)


def test_a_parked_step_says_which_limit_refused_it_and_until_when(db: DB, clock: Clock) -> None:
    """Slots come back at no known time; tokens, a pause and a probe do."""
    minute = clock.now() + seconds(60)
    limit(db, "api", breaker_after=1, breaker_for=seconds(60))
    fail_limited(db, 1)
    limit(db, "slots", concurrency=0)
    limit(db, "rate", rate=1, per=seconds(60), burst=1)
    limit(db, "shop:*", concurrency=9)
    run(db, limit_calls.pause_limit("shop:*", until=minute))
    run(db, limit_calls.pause_limit("news"))
    names = ("api", "slots", "rate", "rate", "shop:acme", "news")
    tasks = {start(db, limits=[name]): name for name in names}
    (taken,) = claim(db, batch=9)

    rows = db.execute(
        "select id, standing, limited_by, limited_until from holdfast.step_list where finished_at is null"
    )

    assert {(standing, name, until) for step, standing, name, until in rows if step != taken.step_id} == {
        ("breaker open", "api", minute),
        ("limited", "slots", None),
        ("limited", "rate", minute),
        ("upstream paused", "shop:acme", minute),
        ("upstream paused", "news", None),
    }
    assert tasks[taken.step_id] == "rate"


def test_people_pause_and_resume_limits_and_each_change_is_kept(db: DB, clock: Clock) -> None:
    limit(db, "shop:*", concurrency=5)
    limit(db, "shop:*", concurrency=5)
    start(db, limits=["shop:acme"])
    run(db, limit_calls.pause_limit("shop:*", reason="sale"))
    assert claim(db) == []
    run(db, limit_calls.resume_limit("shop:*"))
    run(db, limit_calls.pause_limit("shop:acme", until=clock.now() + seconds(5)))
    assert claim(db) == []
    clock.advance(seconds(5))
    assert len(claim(db)) == 1
    run(db, limit_calls.forget_limit("shop:*"))

    rows = db.execute("select event, name, reason from holdfast.limit_changes order by id").fetchall()
    assert rows == [
        ("defined", "shop:*", None),
        ("paused", "shop:*", "sale"),
        ("resumed", "shop:*", None),
        ("paused", "shop:acme", None),
        ("forgotten", "shop:*", None),
    ]
    with pytest.raises(Exception, match="append-only"):
        db.execute("delete from holdfast.limit_changes")


@pytest.mark.parametrize(("error", "closes"), [("RateLimited", True), ("Unavailable", False), ("ValueError", False)])
def test_only_a_rate_limit_error_closes_the_limits_of_its_step(db: DB, error: str, closes: bool) -> None:
    """A-54, A-57: a 500 that asks for a pause delays its own step, keeps its name, and closes nothing."""
    limit(db, "api", rate=100, per=seconds(1))
    start(db, limits=["api"])
    step = claim_one(db)

    settle(db, step, Retry({"type": error, "message": "no"}, seconds(7)))

    assert value(db, "select count(*) from holdfast.limit_changes where event = 'paused'") == int(closes)
    assert value(db, "select error ->> 'type' from holdfast.steps where id = %s", step.step_id) == error
    start(db, limits=["api"])
    assert len(claim(db, batch=9)) == int(not closes)


def test_a_rate_limit_error_with_a_time_delays_its_step_by_exactly_that(db: DB, clock: Clock) -> None:
    """A-55: seven seconds, to the millisecond, for the step and for its limit"""
    limit(db, "api", rate=100, per=seconds(1))
    for _ in range(2):
        start(db, limits=["api"])
    first = claim_one(db)
    settle(db, first, Retry(LIMITED, seconds(7)))

    clock.advance(seconds(6.999))
    assert claim(db, batch=9) == []
    clock.advance(seconds(0.001))
    assert len(claim(db, batch=9)) == 2


def test_rate_limit_errors_without_a_time_wait_longer_each_time_and_use_up_the_tries(db: DB, clock: Clock) -> None:
    """A-56, A-58: 16, 32 and 64 seconds; the fourth 429 in a row is final by default"""
    run(db, calls.define_policy("calm", tries=4, base=seconds(16), longest=seconds(64), jitter=0))
    run(db, calls.define_kind("mail", policy="calm"))
    limit(db, "api", rate=100, per=seconds(1))
    step_id = start(db, limits=["api"])

    waits = []
    for _ in range(3):
        settle(db, claim_one(db), Retry(LIMITED))
        waits.append(value(db, "select due_at - holdfast.clock() from holdfast.steps where id = %s", step_id))
        clock.advance(waits[-1])

    assert waits == [seconds(16), seconds(32), seconds(64)]
    assert settle(db, claim_one(db), Retry(LIMITED)) == ["failed"]


def test_a_rate_limit_that_is_not_to_count_is_snoozed_without_end(db: DB, clock: Clock) -> None:
    """A-58: configured off, as a handler does by its outcome; the limit is closed all the same"""
    limit(db, "api", rate=100, per=seconds(1))
    step_id = start(db, limits=["api"])

    for _ in range(20):
        assert settle(db, claim_one(db), Snooze(seconds(7), pause="api")) == ["snoozed"]
        assert claim(db) == []
        clock.advance(seconds(7))

    assert settle(db, claim_one(db), Done()) == ["succeeded"]
    assert value(db, "select failures from holdfast.steps where id = %s", step_id) == 0


def test_a_breaker_is_shared_by_all_workers_of_its_tenant_and_outlasts_them(dsn: str, db: DB, clock: Clock) -> None:
    """A-59, A-60: what one worker opened stops the others, and those that start later; other limits go on"""
    limit(db, "shop:*", breaker_after=6, breaker_for=seconds(60), breaker_counts=["RateLimited"])
    for _ in range(7):
        start(db, limits=["shop:acme"])
    for _ in range(5):
        settle(db, claim_one(db, "one"), Fail(LIMITED))
    with psycopg.connect(dsn, autocommit=True) as other:
        settle(other, claim_one(other, "two"), Fail(LIMITED))

    with psycopg.connect(dsn, autocommit=True) as later:
        assert claim(later, "three", batch=9) == []
        free = start(later, limits=["shop:other"])
        assert ids(claim(later, "three", batch=9)) == [free]
        clock.advance(seconds(60))
        assert len(claim(later, "three", batch=9)) == 1
