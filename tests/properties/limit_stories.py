"""Short stories about limits that each hold one property (see scenarios.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from threading import Thread
from typing import Any, TypeVar

import psycopg

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Release, Settlement
from holdfast.testing import Clock
from properties.guards import login_for, refused
from properties.scenarios import DB, claim, claim_one, start, value

T = TypeVar("T")
SECOND = timedelta(seconds=1)
THROTTLED = {"type": "RateLimited", "message": "429"}


def limit(db: DB, name: str = "api", **rule: Any) -> None:
    run(db, limit_calls.define_limit(name, **rule))


def bucket(db: DB, burst: int, per: timedelta = SECOND) -> None:
    Clock(db).freeze()
    limit(db, rate=1, per=per, burst=burst)


def tasks(db: DB, *weights: int) -> list[int]:
    return [start(db, limits=["api"], weight=weight) for weight in weights]


def ids(steps: list[Any]) -> list[int]:
    return [step.step_id for step in steps]


@contextmanager
def meanwhile(db: DB, act: Callable[[DB], T]) -> Iterator[Callable[[], T]]:
    """Let another session act until it ends or waits for a lock; give what fetches its answer."""
    answers: list[T] = []
    with psycopg.connect(db.info.dsn, autocommit=True) as other:
        thread = Thread(target=lambda: answers.append(act(other)))
        thread.start()
        while thread.is_alive() and not value(
            db, "select cardinality(pg_blocking_pids(%s)) > 0", other.info.backend_pid
        ):
            pass

        def answer() -> T:
            thread.join()
            return answers[0]

        yield answer
        thread.join()


def overlapping(db: DB, first: Callable[[DB], Any], second: Callable[[DB], T]) -> T:
    """Let `second` begin while `first` has not committed."""
    with psycopg.connect(db.info.dsn, autocommit=True) as one, ExitStack() as stack:
        with one.transaction():
            first(one)
            answer = stack.enter_context(meanwhile(db, second))
        return answer()


def two_claims_share_one_slot(db: DB) -> None:
    limit(db, concurrency=1)
    tasks(db, 1, 1)
    run(db, limit_calls.pause_limit("api"))  # the limit has been met: two that meet it first wait for each other anyway
    run(db, limit_calls.resume_limit("api"))
    assert overlapping(db, lambda one: claim(one, "a"), lambda two: claim(two, "b")) == []
    assert value(db, "select count(*) from holdfast.steps where lease_id is not null") == 1


def a_limit_is_held_by_no_more_than_it_says(db: DB) -> None:
    limit(db, concurrency=2)
    tasks(db, 1, 1, 1)
    assert len(claim(db, batch=3)) == 2


def a_claim_counts_what_it_took_before(db: DB) -> None:
    limit(db, concurrency=1)
    limit(db, "shut", concurrency=0)
    start(db, limits=["shut"])
    tasks(db, 1, 1)
    assert len(claim(db, batch=2)) == 1


def a_rescue_gives_the_slot_back(db: DB) -> None:
    limit(db, concurrency=1)
    first, second = tasks(db, 1, 1)
    assert ids(claim(db, batch=2)) == [first]
    Clock(db).advance(timedelta(seconds=31))
    run(db, calls.rescue_steps())
    assert ids(claim(db)) == [second]


def a_slot_that_is_freed_while_a_step_is_parked_is_used(db: DB) -> None:
    """The settle waits for the claim that parks the step, and must see it parked."""
    limit(db, concurrency=1)
    _, second = tasks(db, 1, 1)
    step = claim_one(db)
    done = Settlement(step.step_id, step.lease_id, Done())
    overlapping(db, lambda one: claim(one, "a"), lambda two: run(two, calls.settle_steps([done])))
    assert ids(claim(db, "b")) == [second]


def a_bucket_gives_no_more_than_it_has(db: DB) -> None:
    bucket(db, burst=2)
    tasks(db, 1, 1, 1)
    assert len(claim(db, batch=3)) == 2


def a_claim_leaves_alone_what_was_charged_after_its_time(db: DB) -> None:
    bucket(db, burst=10)
    limit(db, "shop:*", concurrency=1)
    (later,) = tasks(db, 1)
    first = start(db, limits=["shop:a"], priority=9)
    run(db, limit_calls.pause_limit("api"))
    run(db, limit_calls.resume_limit("api"))
    db.execute("update holdfast.limit_states set tokens = 5, filled_at = holdfast.clock() + interval '1 s'")
    assert ids(claim(db, batch=2)) == [first]
    assert ids(claim(db, batch=2)) == [later]  # which waits for the limit, and is charged at its time


def time_alone_opens_a_limit(db: DB) -> None:
    bucket(db, burst=1)
    first, second = tasks(db, 1, 1)
    assert ids(claim(db, batch=2)) == [first]
    Clock(db).advance(SECOND)
    assert ids(claim(db)) == [second]


def a_sleeper_is_told_when_a_limit_opens(db: DB) -> None:
    bucket(db, burst=1)
    tasks(db, 1, 1)
    claim(db, batch=2)
    assert run(db, calls.mark_asleep("a")) == [SECOND]


def a_light_step_waits_behind_a_heavy_one_of_its_claim(db: DB) -> None:
    bucket(db, burst=5)
    tasks(db, 3)
    claim(db)
    tasks(db, 5, 1)
    assert claim(db, batch=2) == []


def a_light_step_waits_behind_a_heavy_one_that_is_parked(db: DB) -> None:
    bucket(db, burst=5)
    tasks(db, 3, 5)
    assert len(claim(db, batch=2)) == 1
    tasks(db, 1)
    assert claim(db, batch=2) == []


def a_step_under_two_limits_is_not_behind_later_ones(db: DB) -> None:
    limit(db, "left", concurrency=1)
    limit(db, "right", concurrency=1)
    held = [start(db, limits=[name]) for name in ("left", "right")]
    first = start(db, limits=["left", "right"])
    for names in (["left", "right"], ["right"], ["right"]):
        start(db, limits=names)
    busy = claim(db, batch=10)
    assert ids(busy) == held
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done()) for step in busy]))

    assert ids(claim(db, batch=1)) == [first]


def a_tight_limit_gives_no_more_than_free_handlers(db: DB) -> None:
    limit(db, concurrency=5)
    limited, other = tasks(db, 1, 1, 1, 1), start(db)
    assert ids(claim(db, batch=5, free=1)) == [limited[0], other]
    assert ids(claim(db, batch=5)) == limited[1:]


def breaker_that_waits_for_its_probe(db: DB) -> None:
    Clock(db).freeze()
    limit(db, breaker_after=1, breaker_for=SECOND)
    tasks(db, 1)
    step = claim_one(db)
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail(THROTTLED))]))
    tasks(db, 1, 1, 1)
    Clock(db).advance(SECOND)


def an_open_breaker_admits_one_probe(db: DB) -> None:
    breaker_that_waits_for_its_probe(db)
    assert len(claim(db, batch=3)) == 1
    assert claim(db, "b", batch=3) == []


def two_claims_share_one_probe(db: DB) -> None:
    breaker_that_waits_for_its_probe(db)
    assert overlapping(db, lambda one: claim(one, "a"), lambda two: claim(two, "b")) == []


def a_new_rule_counts_a_claim_under_way(db: DB) -> None:
    tasks(db, 1, 1)
    overlapping(db, lambda one: claim(one, "a"), lambda two: limit(two, concurrency=1))
    assert claim(db, "b") == []


def tokens_of_what_was_not_tried_come_back(db: DB) -> None:
    bucket(db, burst=1)
    tasks(db, 1)
    step = claim_one(db)
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Release())]))
    assert ids(claim(db)) == [step.step_id]


def a_pause_is_not_shortened(db: DB) -> None:
    Clock(db).freeze()
    tasks(db, 1, 1, 1)
    for step, seconds in zip(claim(db, batch=2), (9, 3), strict=True):
        head = {"step_id": step.step_id, "lease_id": step.lease_id, "outcome": "snooze"}
        outcome = {**head, "retry_after": f"{seconds} s", "pause": "api"}
        db.execute("select holdfast.settle_steps(%s)", [psycopg.types.json.Jsonb([outcome])])
    Clock(db).advance(8 * SECOND)
    assert claim(db, batch=3) == []


def charged(db: DB, step: Any, weight: int = 1) -> timedelta | None:
    return run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", weight))[0]


def a_charge_takes_no_more_than_the_bucket_has(db: DB) -> None:
    bucket(db, burst=2)
    tasks(db, 1)
    step = claim_one(db)
    assert (charged(db, step), charged(db, step)) == (None, SECOND)


def two_charges_share_one_token(db: DB) -> None:
    bucket(db, burst=3)
    tasks(db, 1, 1)
    one, two = claim(db, batch=2)
    assert overlapping(db, lambda first: charged(first, one), lambda second: charged(second, two)) == SECOND


def who_lost_its_lease_charges_nothing(db: DB) -> None:
    bucket(db, burst=5)
    tasks(db, 1)
    step = claim_one(db)
    Clock(db).advance(timedelta(seconds=31))
    run(db, calls.rescue_steps())
    with refused(errors.LeaseLost):
        charged(db, step)


def a_login_charges_and_limits_for_its_own_tenants(db: DB) -> None:
    start(db, tenant="theirs", limits=["api"])
    step = claim_one(db)
    with login_for(db, "hf_worker", "ours") as worker:
        with refused(errors.LeaseLost):
            charged(worker, step)
        with refused(errors.TenantRefused):
            run(worker, limit_calls.define_limit("api", concurrency=0, tenant="theirs"))
        with refused(errors.TenantRefused):
            run(worker, limit_calls.define_limit("api", concurrency=0, tenant="*"))


def what_a_person_set_outlasts_a_worker_that_connects(db: DB) -> None:
    """A worker that connects again repeats the rules of its app, and undoes nothing that a person did since."""
    limit(db, concurrency=5, of_app=True)
    limit(db, concurrency=0)

    limit(db, concurrency=5, of_app=True)

    assert value(db, "select concurrency from holdfast.limits where name = 'api'") == 0
