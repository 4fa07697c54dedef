"""Steps that share calls: their keys, how claims take them whole, and what keeps a step alone."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Release, Retry, Settlement
from holdfast.testing import Clock
from kernel.steps import DB, claim, column, finish, node, rescue, seconds, start, start_flow, step_row

SIZE = 4


def define(db: DB, kind: str = "push", batch: int = SIZE, by: str | None = "product", **options: Any) -> None:
    run(db, calls.define_kind(kind, batch=batch, batch_by=by, **options))


def push(db: DB, keys: str, **options: Any) -> list[int]:
    """Start one step per letter, which is its key."""
    return [start(db, "push", {"product": key}, **options) for key in keys]


def calls_of(steps: Sequence[ClaimedStep]) -> list[str]:
    """The keys of each call, in the order of the calls."""
    numbered: defaultdict[int, str] = defaultdict(str)
    for step in steps:
        assert step.call is not None
        numbered[step.call] += step.batch_key or "-"
    return [numbered[number] for number in sorted(numbered)]


def test_sql_fills_in_the_key_from_the_kind_for_every_start(db: DB) -> None:
    define(db)
    define(db, "any", by=None)
    alone = start(db, "push", {"product": "a"})
    number = start(db, "push", {"product": 7.5})
    truth = start(db, "push", {"product": True})
    whole = start(db, "any")
    plain = start(db, "mail")
    run(db, calls.start_tasks([{"name": "push", "input": {"product": "b"}}]))
    start_flow(db, node("push", input={"product": "c"}))
    with db.transaction():
        run(db, calls.stage_steps())
        with (
            db.cursor() as cursor,
            cursor.copy("copy pg_temp.staged_steps (kind, input, batch_key) from stdin") as copy,
        ):
            copy.write_row(("push", json.dumps({"product": "d"}), None))
            copy.write_row(("push", json.dumps({"product": "d"}), "given"))
            copy.write_row(("mail", "{}", None))
        run(db, calls.take_staged("work.task"))

    keys = [column(db, step_id, "batch_key") for step_id in (alone, number, truth, whole, plain)]
    rest = db.execute("select batch_key from holdfast.steps where id > %s order by id", [plain]).fetchall()

    assert keys == ["a", "7.5", "true", "", None]
    assert [key for (key,) in rest] == ["b", "c", "d", "given", None]


def test_a_claim_ends_between_two_keys(db: DB) -> None:
    define(db)
    push(db, "aaabbbc")

    first, second = claim(db, batch=5), claim(db, batch=5)

    assert calls_of(first) == ["aaa"]
    assert calls_of(second) == ["bbb", "c"]


def test_scattered_steps_of_a_key_come_together(db: DB) -> None:
    define(db)
    start(db)
    push(db, "abcabcaa")

    steps = claim(db, batch=5)

    assert [step.call for step in steps if step.batch_key is None] == [None]
    assert calls_of([step for step in steps if step.batch_key]) == ["aaaa"]


@pytest.mark.parametrize(("keys", "batch", "expected"), [
    ("a" * 3, 2, ["aa"]),  # larger than the claim
    ("b" + "a" * 3, 2, ["b"]),  # the next claim takes what fits
    ("a" * 6, 6, ["aaaa", "aa"]),  # larger than a call
    ("a" * 9, 6, ["aaaa"]),  # a call that does not fit is left to the next claim
])  # fmt: skip
def test_a_key_that_fits_no_call_is_cut(db: DB, keys: str, batch: int, expected: list[str]) -> None:
    define(db)
    push(db, keys)

    assert calls_of(claim(db, batch=batch)) == expected


def test_without_a_field_all_steps_of_a_kind_and_tenant_share_calls(db: DB) -> None:
    define(db, "push", by=None)
    define(db, "pull", by=None)
    for n in range(3):
        start(db, "push", {"n": n})
        start(db, "pull", {"n": n})
        start(db, "push", {"n": n}, tenant="b")

    steps = claim(db, batch=100)
    together = defaultdict(set)
    for step in steps:
        together[step.call].add((step.kind, step.tenant))

    assert sorted(map(sorted, together.values())) == [[("pull", "default")], [("push", "b")], [("push", "default")]]


def test_a_claim_counts_calls(db: DB) -> None:
    define(db)
    start(db)
    push(db, "aabbcc")
    start(db)

    first, second = claim(db, batch=100, calls=2), claim(db, batch=100, calls=9)

    assert [step.batch_key for step in first] == [None, "a", "a"]
    assert [step.batch_key for step in second] == ["b", "b", "c", "c", None]
    with pytest.raises(errors.BadInput) as refused:
        claim(db, calls=0)
    assert refused.value.where == "calls"


def test_what_is_cut_off_does_not_wait_for_lower_priorities(db: DB) -> None:
    define(db)
    push(db, "abbb", priority=5)
    start(db)

    assert calls_of(claim(db, batch=3)) == ["a"]


def test_of_two_claims_one_takes_a_key_whole(db: DB, dsn: str) -> None:
    define(db)
    first, *_ = push(db, "aabbb")
    with psycopg.connect(dsn) as other:
        other.execute("select from holdfast.steps where id = %s for update", [first])

        steps = claim(db, batch=10)  # another claim has the first step of the key

        assert calls_of(steps) == ["bbb"]
    assert calls_of(claim(db, batch=10)) == ["aa"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(keys=st.text("abcdef", max_size=40), batch=st.integers(1, 12), most=st.none() | st.integers(1, 4))
def test_no_key_that_fits_a_call_and_the_claim_is_split(db: DB, keys: str, batch: int, most: int | None) -> None:
    """R11: each step is claimed once, in whole calls."""
    define(db)
    push(db, keys)
    sizes = {key: keys.count(key) for key in keys}
    seen: list[str] = []
    while steps := claim(db, batch=batch, calls=most):
        assert len(steps) <= batch
        for call in calls_of(steps):
            assert len(set(call)) == 1
            assert len(call) <= SIZE
            if sizes[call[0]] <= min(SIZE, batch):
                assert len(call) == sizes[call[0]]
            seen.append(call)
        assert most is None or len(calls_of(steps)) <= most
        finish(db, steps)

    assert sorted("".join(seen)) == sorted(keys)


def test_steps_that_lost_their_worker_or_their_time_run_alone(db: DB, clock: Clock) -> None:
    """R24: one bad item does not take the others of its call to the dead letter."""
    clock.freeze()
    define(db)
    push(db, "aaaaab")
    lost = claim(db, batch=SIZE)
    clock.advance(seconds(31))
    rescue(db)
    (late,) = claim(db, batch=1)
    run(db, calls.settle_steps([Settlement(late.step_id, late.lease_id, Retry("late"), alone=True)]))
    clock.advance(seconds(3600))
    push(db, "aa")

    steps = claim(db, batch=100)

    alone = {step.step_id for step in steps if step.is_alone}
    assert alone == {step.step_id for step in [*lost, late]}
    assert sorted(map(len, calls_of(steps))) == [1] * (SIZE + 2) + [2]


def test_one_settle_takes_mixed_outcomes(db: DB) -> None:
    define(db)
    push(db, "aaa")
    one, two, three = claim(db, batch=10)
    stale = three.lease_id + 1000

    settled = run(db, calls.settle_steps([
        Settlement(one.step_id, one.lease_id, Done({"sent": 1})),
        Settlement(two.step_id, two.lease_id, Retry("busy")),
        Settlement(three.step_id, stale, Done()),
    ]))  # fmt: skip

    assert {(row.step_id, row.event) for row in settled} == {(one.step_id, "succeeded"), (two.step_id, "retried")}
    assert step_row(db, three.step_id)["lease_id"] == three.lease_id


@pytest.mark.parametrize(
    ("given_input", "where"),
    [
        ({}, "product"),
        ({"product": None}, "product"),
        ({"product": ["a"]}, "product"),
        ({"product": "x" * 401}, "product"),
    ],
)
def test_a_start_without_a_usable_key_is_refused(db: DB, given_input: Any, where: str) -> None:
    define(db)

    with pytest.raises(errors.BadInput) as refused:
        start(db, "push", given_input)

    assert refused.value.where == "product"
    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)


@pytest.mark.parametrize(
    ("batch", "by", "where"), [(0, None, "batch"), (10_001, None, "batch"), (None, "a", "batch_by")]
)
def test_a_kind_with_an_impossible_batch_is_refused(db: DB, batch: int | None, by: str | None, where: str) -> None:
    with pytest.raises(errors.BadInput) as refused:
        run(db, calls.define_kind("push", batch=batch, batch_by=by))

    assert refused.value.where == where


def test_a_worker_of_the_last_release_leaves_the_batch_of_a_kind(db: DB) -> None:
    """R32: it does not name the new parameters."""
    define(db)

    run(db, calls.define_kind("push", queue="default"))
    assert db.execute("select batch, batch_by from holdfast.kinds").fetchall() == [(SIZE, "product")]
    run(db, calls.define_kind("push", batch=1))
    assert db.execute("select batch, batch_by from holdfast.kinds").fetchall() == [(1, None)]


class EarlierStep(NamedTuple):
    """The columns that a claim had before there were batches. Workers of that release read them by position."""

    step_id: int
    run_id: UUID | None
    kind: str
    input: Any
    attempt: int
    lease_id: int
    lease_until: datetime
    cursor: Any


def test_a_worker_of_the_last_release_serves_the_steps_of_a_call_one_by_one(db: DB) -> None:
    """R32: it names none of the new parameters and knows none of the new columns."""
    define(db)
    ids = push(db, "aabb")
    arguments = {"worker": "elder", "queue": "default", "kinds": ["push"], "batch": 3, "lease": None, "tenants": None}

    taken = run(db, Call("claim_steps", EarlierStep, arguments))

    assert [(step.step_id, step.kind, step.attempt, step.cursor) for step in taken] == [
        (step_id, "push", 1, None) for step_id in ids[:2]
    ]
    assert [step.input["product"] for step in taken] == ["a", "a"]
    settled = run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done()) for step in taken]))
    assert [row.event for row in settled] == ["succeeded"] * 2
    assert [step.step_id for step in claim(db, batch=3)] == ids[2:]


def limit(db: DB, **rule: Any) -> None:
    run(db, limit_calls.define_limit("shop", **rule))


def tokens(db: DB) -> float:
    row = db.execute("select tokens from holdfast.limit_list where name = 'shop'").fetchone()
    return float(row[0]) if row else 0.0


def test_a_limit_charges_weight_per_step_and_call_weight_per_call(db: DB, clock: Clock) -> None:
    """A call of many steps is charged once, whoever forms it."""
    clock.freeze()
    limit(db, rate=1, per=seconds(3600), burst=1000)
    define(db, limits=["shop"], weight="0.5", call_weight=10)
    push(db, "aaaaaabb")

    steps = claim(db, batch=100)

    assert sorted(calls_of(steps)) == ["aa", "aaaa", "bb"]
    assert tokens(db) == 1000 - 3 * 10 - 8 * 0.5
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Release()) for step in steps]))
    assert tokens(db) == 1000


def test_a_limit_that_is_used_up_does_not_cut_a_key(db: DB) -> None:
    limit(db, concurrency=5)
    define(db, limits=["shop"])
    start(db)
    push(db, "ababab")

    first = claim(db, batch=100)
    assert calls_of([step for step in first if step.batch_key]) == ["aaa"]
    assert claim(db, batch=100) == []  # two slots are left, and the limit's first call has three steps
    finish(db, first[-1:])

    assert calls_of(claim(db, batch=100)) == ["bbb"]


def test_a_bucket_does_not_cut_a_key(db: DB, clock: Clock) -> None:
    clock.freeze()
    limit(db, rate=1, per=seconds(1), burst=10)
    define(db, limits=["shop"], call_weight=2)
    push(db, "aaaabbb")

    assert calls_of(claim(db, batch=100)) == ["aaaa"]
    clock.advance(seconds(0.9))
    assert claim(db, batch=100) == []  # 4.9 tokens are left of 5
    clock.advance(seconds(0.1))

    assert calls_of(claim(db, batch=100)) == ["bbb"]


def test_a_limit_that_binds_counts_the_calls_of_idle_handlers(db: DB) -> None:
    limit(db, concurrency=8)
    define(db, limits=["shop"])
    push(db, "aaabbbcc")

    assert calls_of(claim(db, batch=100, free=2)) == ["aaa", "bbb"]
    assert calls_of(claim(db, batch=100, free=1)) == ["cc"]


def test_the_probe_of_a_breaker_is_a_call_of_one(db: DB, clock: Clock) -> None:
    """A-60: the limit may still be closed, so no more than one step is tried."""
    limit(db, breaker_after=1, breaker_for=seconds(60))
    define(db, limits=["shop"])
    push(db, "a")
    (step,) = claim(db)
    limited = Fail({"type": "RateLimited", "message": "429"})
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, limited)]))
    push(db, "aabb")
    clock.advance(seconds(60))

    (probe,) = claim(db, batch=10)
    assert claim(db, batch=10) == []
    run(db, calls.settle_steps([Settlement(probe.step_id, probe.lease_id, Done())]))

    assert calls_of(claim(db, batch=10)) == ["a", "bb"]


def test_a_claim_takes_keys_whole_from_the_queue_of_a_limit(db: DB) -> None:
    limit(db, concurrency=6)
    define(db, limits=["shop"])
    push(db, "ddddaaabbb")
    first = claim(db, batch=100)
    finish(db, first)

    assert calls_of(first) == ["dddd"]
    assert calls_of(claim(db, batch=5)) == ["aaa"]
    assert calls_of(claim(db, batch=5)) == ["bbb"]


def test_of_two_claims_one_takes_a_key_from_the_queue_of_a_limit(db: DB, dsn: str) -> None:
    limit(db, concurrency=4)
    define(db, limits=["shop"])
    _, _, _, _, parked, *_ = push(db, "ddddaabb")
    finish(db, claim(db, batch=100))
    with psycopg.connect(dsn) as other:
        other.execute("select from holdfast.steps where id = %s for update", [parked])

        steps = claim(db, batch=100)  # another claim has the first step of the key

        assert calls_of(steps) == ["bb"]
    assert calls_of(claim(db, batch=100)) == ["aa"]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    keys=st.text("abcdef", max_size=30),
    batch=st.integers(1, 12),
    concurrency=st.integers(1, 9),
    burst=st.integers(3, 12),
    most=st.none() | st.integers(1, 4),
    places=st.lists(st.integers(0, 20), max_size=30),
)
def test_no_limit_splits_a_key_that_it_can_take_whole(
    db: DB, clock: Clock, keys: str, batch: int, concurrency: int, burst: int, most: int | None, places: list[int]
) -> None:
    """R11, R19: under slots, tokens and bounded claims each step is claimed once, and nothing waits forever."""
    clock.freeze()
    db.execute("delete from holdfast.steps; delete from holdfast.limit_states; delete from holdfast.limits")
    limit(db, concurrency=concurrency, rate=1, per=seconds(10), burst=burst)
    define(db, limits=["shop"], call_weight=2)
    push(db, keys)
    whole = min(SIZE, batch, concurrency, burst - 2)
    held: list[ClaimedStep] = []
    seen = ""
    for turn in range(1000):
        steps = claim(db, batch=batch, calls=most, free=most)
        for call in calls_of(steps):
            assert len(set(call)) == 1
            assert len(call) == keys.count(call[0]) or keys.count(call[0]) > whole, "a key that fits was split"
            seen += call
        held += steps
        assert len(held) <= concurrency
        if not steps and not held and len(seen) == len(keys):
            break
        chosen = held.pop(places[turn % len(places)] % len(held)) if held and places else None
        finish(db, [chosen] if chosen else held)
        held = held if chosen else []
        clock.advance(seconds(10 if turn % 2 else 200))
        assert db.execute("select * from holdfast.violations() where invariant <> 'lease_was_rescued'").fetchall() == []

    assert sorted(seen) == sorted(keys)


def test_a_limit_smaller_than_a_call_cuts_it(db: DB) -> None:
    limit(db, concurrency=2)
    define(db, limits=["shop"])
    push(db, "aaaaa")

    sizes = []
    while steps := claim(db, batch=100):
        sizes.append(list(map(len, calls_of(steps))))
        finish(db, steps)

    assert sizes == [[2], [2], [1]]
