"""The one backoff, with the figures of each preset; chance is given, so nothing here is random."""

from __future__ import annotations

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Retry
from holdfast.testing import Clock, events
from kernel.steps import DB, claim_one, column, seconds, settle, start, value

MIDDLE = 0.5  # no jitter: neither up nor down


def backoff(db: DB, policy: str, failure: int, chance: float = MIDDLE) -> float:
    seconds_: float = value(db, "select extract(epoch from holdfast.backoff(%s, %s, %s))", policy, failure, chance)
    return float(seconds_)


def waits(db: DB, policy: str, failures: range, chance: float = MIDDLE) -> list[float]:
    return [backoff(db, policy, n, chance) for n in failures]


def test_each_preset_waits_as_its_document_says(db: DB) -> None:
    """X-05 C-30 README 2.7: without jitter, from the first failure on"""
    assert waits(db, "rules.target", range(1, 9)) == [2, 4, 8, 16, 32, 64, 64, 64]
    assert waits(db, "rules.429", range(1, 6)) == [16, 32, 64, 64, 64]
    assert waits(db, "ops.in_place", range(1, 4)) == [5, 10, 20]
    assert waits(db, "flow.step", range(1, 7)) == [1, 2, 4, 8, 16, 32]
    assert waits(db, "flow.sql", range(1, 7)) == [2, 4, 8, 16, 30, 30]
    assert waits(db, "work.task", range(1, 4)) == [0, 0, 0]
    assert waits(db, "ingest.queue", range(1, 7)) == [1, 2, 4, 8, 16, 20]
    assert waits(db, "idle_poll", range(1, 9)) == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10, 10]
    assert waits(db, "error_wait", range(1, 4)) == [5, 5, 5]


def test_each_preset_gives_up_after_as_many_executions_as_its_document_says(db: DB) -> None:
    """C-30 README 2.7: executions, the first included"""
    tries = dict(db.execute("select policy, tries from holdfast.policies").fetchall())

    assert tries == {
        "rules.target": 4, "rules.429": 4, "flow.step": 3, "flow.sql": 3, "work.task": 3,
        "ops.run": 1, "ops.in_place": 3, "ingest.page": 3, "ingest.queue": 3,
        "idle_poll": None, "error_wait": None,
    }  # fmt: skip


def test_no_failure_is_no_wait(db: DB) -> None:
    """T-104"""
    policies = [policy for (policy,) in db.execute("select policy from holdfast.policies")]

    assert {backoff(db, policy, n) for policy in policies for n in (0, -1, -(10**6))} == {0}


def test_a_flow_step_waits_by_squares_beyond_its_list_up_to_the_cap(db: DB) -> None:
    """T-105 T-106 T-107"""
    assert waits(db, "flow.step", range(7, 9)) == [49, 64]
    assert [backoff(db, "flow.step", n) for n in (16, 17, 18, 19, 1000, 2**31 - 1)] == [256, 289, 300, 300, 300, 300]


@pytest.mark.parametrize(
    ("failure", "found"),
    [(1, {1}), (2, {2}), (3, {4}), (4, {7, 8, 9}), (6, set(range(29, 36))), (7, set(range(44, 55)))],
)
def test_the_jitter_of_a_flow_step_is_in_whole_seconds(db: DB, failure: int, found: set[int]) -> None:
    """T-108: halves away from zero, inclusive at both ends, at least a second"""
    assert {backoff(db, "flow.step", failure, n / 200) for n in range(200)} == found


def test_jitter_comes_after_the_cap(db: DB) -> None:
    """T-108: 300 ⇒ 270 to 330; README 2.7: 64 s before jitter"""
    seen = {backoff(db, "flow.step", 18, n / 1000) for n in range(1000)}

    assert (min(seen), max(seen), len(seen)) == (270, 330, 61)
    assert backoff(db, "rules.target", 9, 0) == pytest.approx(51.2)
    assert backoff(db, "rules.target", 9, 0.999999) == pytest.approx(76.799)


def test_a_wait_of_five_is_spread_by_one_away_from_zero(db: DB) -> None:
    """T-108: round(0.5) is 1, not 0"""
    db.execute(
        """insert into holdfast.policies (policy, base, growth, jitter, jitter_in_seconds)
           values ('five', '5 s', 1, 0.1, true)"""
    )

    assert {backoff(db, "five", 1, n / 100) for n in range(100)} == {4, 5, 6}


def test_the_jitter_of_a_rule_is_a_fifth_either_way_in_milliseconds(db: DB) -> None:
    """README 2.7: ±20 %, continuous, floor ms"""
    assert [backoff(db, "rules.target", 1, chance) for chance in (0, 0.25, 0.5, 0.75)] == [1.6, 1.8, 2, 2.2]
    assert backoff(db, "rules.target", 1, 0.123456) == 1.698


def test_the_same_chance_gives_the_same_wait(db: DB, clock: Clock) -> None:
    """X-03"""
    clock.fix_chance(0.123456)

    drawn = value(db, "select extract(epoch from holdfast.backoff('rules.target', 1))")

    assert float(drawn) == backoff(db, "rules.target", 1, 0.123456)


def test_the_longest_of_failures_does_not_overflow(db: DB) -> None:
    policies = [policy for (policy,) in db.execute("select policy from holdfast.policies")]

    assert all(backoff(db, policy, 2**31 - 1) < 4e9 for policy in policies)


@pytest.mark.parametrize(
    ("policy", "delays"),
    [
        ("rules.target", [2, 4, 8]),
        ("rules.429", [16, 32, 64]),
        ("ops.in_place", [5, 10]),
        ("flow.step", [1, 2]),
        ("flow.sql", [2, 4]),
        ("work.task", [0, 0]),
        ("ops.run", []),
    ],
)
def test_a_task_is_executed_as_often_and_as_late_as_its_policy_says(
    db: DB, clock: Clock, policy: str, delays: list[int]
) -> None:
    """C-30 T-109: the retry laws as executions"""
    db.execute("insert into holdfast.kinds (kind, policy) values ('mail', %s)", [policy])
    step_id = start(db)
    clock.freeze()
    for delay in delays:
        now = clock.now()
        assert settle(db, claim_one(db), Retry("e")) == ["retried"]
        assert column(db, step_id, "due_at") == now + seconds(delay)
        clock.advance(seconds(delay))

    assert settle(db, claim_one(db), Retry("e")) == ["failed"]

    assert column(db, step_id, "attempt") == len(delays) + 1
    assert events(db, step=step_id).count("claimed") == len(delays) + 1
    assert run(db, calls.claim_steps("a")) == []


def test_a_policy_without_a_limit_never_gives_up(db: DB, clock: Clock) -> None:
    """README 2.7: ErrorWait is unlimited"""
    db.execute("insert into holdfast.kinds (kind, policy) values ('mail', 'error_wait')")
    start(db)

    for _ in range(50):
        assert settle(db, claim_one(db), Retry("e")) == ["retried"]
        clock.advance(seconds(5))
