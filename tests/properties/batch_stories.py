"""Short stories about steps that share calls (see scenarios.py)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

import psycopg

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Retry, Settlement
from holdfast.testing import Clock
from properties.limit_stories import limit, overlapping
from properties.scenarios import DB, claim, refused, start, value


def batch(db: DB, keys: str, size: int = 4) -> list[int]:
    """Start one step per letter, which is its key."""
    run(db, calls.define_kind("push", batch=size, batch_by="key"))
    return [start(db, "push", content={"key": key}) for key in keys]


def sizes(steps: Sequence[ClaimedStep]) -> list[int]:
    """How many steps each call has."""
    numbered: defaultdict[int | None, int] = defaultdict(int)
    for step in steps:
        numbered[step.call] += 1
    return sorted(numbered.values())


def claim_beside(db: DB, step_id: int, batch: int = 10) -> list[ClaimedStep]:
    """Claim while another transaction has a step locked."""
    db.execute("set lock_timeout = '2s'")
    try:
        with psycopg.connect(db.info.dsn) as other:
            other.execute("select from holdfast.steps where id = %s for update", [step_id])
            return claim(db, batch=batch)
    except (psycopg.Error, errors.HoldfastError) as error:
        raise AssertionError("it waits for another claim") from error
    finally:
        db.execute("reset lock_timeout")


def a_claim_ends_between_two_keys(db: DB) -> None:
    batch(db, "aabbb")
    assert sizes(claim(db, batch=4)) == [2]


def a_claim_passes_what_another_has(db: DB) -> None:
    first, second = batch(db, "ab")
    taken = overlapping(db, lambda one: claim(one, "a"), lambda two: claim(two, "b"))
    assert [step.step_id for step in taken] == [second]
    assert first != second


def no_limit_joins_keys_of_two_priorities(db: DB) -> None:
    """Calls are numbered through a whole claim, also where limits are charged."""
    limit(db, "shop", concurrency=1000)
    run(db, calls.define_kind("push", batch=4, batch_by="key", limits=["shop"]))
    for priority, keys in ((5, "aaaabb"), (0, "ccdd")):
        for key in keys:
            start(db, "push", content={"key": key}, priority=priority)
    keys_of: defaultdict[int | None, set[str | None]] = defaultdict(set)
    for step in claim(db, batch=100):
        keys_of[step.call].add(step.batch_key)
    assert sorted(map(sorted, keys_of.values())) == [["a"], ["b"], ["c"], ["d"]], keys_of


def a_key_is_taken_by_one_claim(db: DB) -> None:
    first, *_ = batch(db, "aab")
    assert [step.batch_key for step in claim_beside(db, first)] == ["b"]


def keys_that_others_have_leave_room_for_the_next(db: DB) -> None:
    """A claim beside another takes as many steps as it may."""
    first, *_ = batch(db, "abcd")
    assert [step.batch_key for step in claim_beside(db, first, batch=2)] == ["b", "c"]


def a_lost_step_is_not_settled_with_its_call(db: DB) -> None:
    Clock(db).freeze()
    batch(db, "aa")
    call = claim(db, batch=10)
    run(db, calls.renew_leases("a", [call[1].lease_id], lease=timedelta(hours=3)))
    Clock(db).advance(timedelta(hours=1))
    run(db, calls.rescue_steps())
    Clock(db).advance(timedelta(hours=1))
    assert [step.step_id for step in claim(db, "b", batch=10)] == [call[0].step_id]
    settled = run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done()) for step in call]))
    assert [row.step_id for row in settled] == [call[1].step_id]


def steps_that_ran_out_of_time_share_no_call(db: DB) -> None:
    Clock(db).freeze()
    batch(db, "a")
    (late,) = claim(db)
    batch(db, "aa")
    outcome = Retry("late", timedelta(minutes=1))
    run(db, calls.settle_steps([Settlement(late.step_id, late.lease_id, outcome, alone=True)]))
    Clock(db).advance(timedelta(hours=1))
    assert sizes(claim(db, batch=3)) == [1, 2]


def steps_of_a_lost_worker_share_no_call(db: DB) -> None:
    Clock(db).freeze()
    batch(db, "aaa")
    claim(db, batch=10)
    Clock(db).advance(timedelta(hours=1))
    run(db, calls.rescue_steps())
    Clock(db).advance(timedelta(hours=1))
    assert sizes(claim(db, batch=10)) == [1, 1, 1]


def a_call_is_charged_once(db: DB) -> None:
    Clock(db).freeze()
    limit(db, rate=1, per=timedelta(hours=1), burst=100)
    run(db, calls.define_kind("push", batch=4, batch_by="key", limits=["api"], call_weight=10))
    for _ in range(3):
        start(db, "push", content={"key": "a"})
    assert sizes(claim(db, batch=10)) == [3]
    assert value(db, "select tokens from holdfast.limit_states where name = 'api'") == 100 - 10 - 3


def a_call_that_raises_counts_once_for_a_breaker(db: DB) -> None:
    Clock(db).freeze()
    limit(db, breaker_after=2, breaker_for=timedelta(minutes=1))
    run(db, calls.define_kind("push", batch=4, batch_by="key", limits=["api"]))
    for _ in range(3):
        start(db, "push", content={"key": "a"})
    first, *rest = claim(db, batch=10)
    error = Fail({"type": "RateLimited", "message": "429"})
    run(db, calls.settle_steps([
        Settlement(step.step_id, step.lease_id, error, raised_with=first.step_id) for step in [first, *rest]
    ]))  # fmt: skip
    assert value(db, "select failures from holdfast.limit_states where name = 'api'") == 1


def limited(db: DB, keys: str, slots: int) -> list[int]:
    """Start one step per letter under a limit."""
    limit(db, concurrency=slots)
    run(db, calls.define_kind("push", batch=4, batch_by="key", limits=["api"]))
    return [start(db, "push", content={"key": key}) for key in keys]


def a_used_up_limit_does_not_cut_a_key(db: DB) -> None:
    limited(db, "aaabb", 4)
    assert sizes(claim(db, batch=10)) == [3]


def a_key_leaves_the_queue_of_a_limit_whole(db: DB) -> None:
    limited(db, "ddddaabbb", 5)
    run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Fail("no")) for s in claim(db, batch=10)]))
    assert sizes(claim(db, batch=4)) == [2]


def a_key_of_a_limit_is_taken_by_one_claim(db: DB) -> None:
    *_, first, _, _ = limited(db, "ddddaab", 4)
    run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Fail("no")) for s in claim(db, batch=10)]))
    assert [step.batch_key for step in claim_beside(db, first)] == ["b"]


def a_key_that_no_index_holds_is_refused(db: DB) -> None:
    with refused(errors.BadInput):
        batch(db, "a", size=4)
        start(db, "push", content={"key": "x" * 401})
    assert value(db, "select count(*) from holdfast.steps") == 1
