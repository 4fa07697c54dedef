"""What a worker makes of the backoff of a flow: when a failed step comes again, and that many do not come at once."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from holdfast import Holdfast, Retry, RetryPolicy
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.flow.handle import FlowRun
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from kernel.steps import DB, claim, column, seconds, settlement, stage, value
from worker.running import burst

pytestmark = pytest.mark.one_server
STEADY = Backoff(jitter_enabled=False)


def failing(hf: Holdfast, db: DB, limit: int, backoff: Backoff | None, *, after: float | None = None) -> int:
    """Start a flow whose only step always fails; the step's number."""
    order = hf.flow("order", backoff=backoff)

    @order.step(retry=limit)
    def ship() -> None:
        raise Retry("busy", after=after)

    return id_of(db, order.start())


def id_of(db: DB, task: FlowRun) -> int:
    step_id: int = value(db, "select id from holdfast.steps where run_id = %s", task.id)
    return step_id


def delays(hf: Holdfast, db: DB, clock: Clock, step_id: int, failures: int) -> list[float]:
    """Let it fail, and tell for how long it then waits."""
    found = []
    for _ in range(failures):
        now = clock.freeze()
        burst(hf)
        due_at = column(db, step_id, "due_at")
        found.append((due_at - now).total_seconds())
        clock.set(due_at)
    return found


def test_a_step_waits_by_the_configuration_of_its_flow(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-109, C-44, C-43: 1, 2, 4 seconds after the first, second, third failure; the fourth is the last"""
    step_id = failing(hf, db, 4, STEADY)

    assert delays(hf, db, clock, step_id, 3) == [1, 2, 4]
    burst(hf)

    assert events(db, step=step_id)[-1] == "failed"
    assert value(db, "select policy from holdfast.kinds where kind = 'order.ship'") == "flow:order.ship"


def test_a_step_waits_for_fractions_of_a_second(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-121"""
    quick = Backoff(default_backoff_seconds=[0.1, 0.2, 0.5], jitter_enabled=False)
    step_id = failing(hf, db, 4, quick)

    assert delays(hf, db, clock, step_id, 3) == [0.1, 0.2, 0.5]


def test_what_the_server_asks_for_goes_before_what_is_calculated(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-115: priority 1; C-04: it is not jittered"""
    clock.fix_chance(0)
    step_id = failing(hf, db, 9, Backoff(default_backoff_seconds=[8], monotonic=True), after=30)

    assert delays(hf, db, clock, step_id, 2) == [30, 30]


def test_what_the_server_asks_for_is_capped(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-113, T-126"""
    step_id = failing(hf, db, 9, None, after=4000)

    assert delays(hf, db, clock, step_id, 1) == [300]


def test_without_a_calculated_backoff_the_law_of_the_database_protects(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-115: priority 3; C-58, T-41, T-44: 2 ^ attempts, at most 30 s"""
    step_id = failing(hf, db, 9, Backoff(enabled=False))

    assert delays(hf, db, clock, step_id, 6) == [2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("after", [None, 30])
def test_with_the_bypass_a_step_is_tried_again_at_once(hf: Holdfast, db: DB, clock: Clock, after: float | None) -> None:
    """T-123, C-58"""
    clock.freeze()
    step_id = failing(hf, db, 4, Backoff(bypass=True), after=after)

    burst(hf)

    assert events(db, step=step_id) == ["claimed", "retried", "reopened"] * 3 + ["claimed", "failed"]


def test_what_was_said_last_holds_from_the_next_failure_on(dsn: str, hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-119: the rule of reloading"""
    step_id = failing(hf, db, 9, STEADY)

    assert delays(hf, db, clock, step_id, 1) == [1]
    newer = Holdfast(dsn)
    failing(newer, db, 9, Backoff(default_backoff_seconds=[70, 71, 72], jitter_enabled=False, monotonic=True))
    waiting_until = column(db, step_id, "due_at")
    assert delays(newer, db, clock, step_id, 1) == [71]
    newer.close()

    assert waiting_until == clock.now() - seconds(71)


@pytest.mark.parametrize(
    ("options", "waits"),
    [
        ({"retry": 3}, [50, 50]),
        ({"retry": StepRetry(3, Backoff(default_backoff_seconds=[7, 8], jitter_enabled=False))}, [7, 8]),
        ({"retry": RetryPolicy(limit=3, base=seconds(3), jitter=0)}, [3, 6]),
        ({"retry": 0}, []),
        ({"retryable": False}, []),
        ({"retry": StepRetry(3), "retryable": False}, []),
        ({"retry": RetryPolicy(limit=3), "retryable": False}, []),
    ],
)
def test_a_step_may_wait_in_a_way_of_its_own(
    hf: Holdfast, db: DB, clock: Clock, options: dict[str, Any], waits: list[float]
) -> None:
    """T-76, T-77, T-93, C-51: else as its flow says; an exception of any sort is tried again"""
    order = hf.flow("order", backoff=Backoff(default_backoff_seconds=[50, 50], jitter_enabled=False, monotonic=True))

    @order.step(**options)
    def ship() -> None:
        raise ValueError("the box broke")

    step_id = id_of(db, order.start())

    assert delays(hf, db, clock, step_id, len(waits)) == waits
    burst(hf)
    assert events(db, step=step_id)[-2:] == ["claimed", "failed"]
    shown = db.execute("select retry_limit, retryable from flow.steps where step_id = %s", [step_id]).fetchone()
    assert shown == (1 if options.get("retry") == 0 else 3, options.get("retryable", True))


def spread(db: DB, seed: float) -> list[float]:
    """Let a thousand steps fail together, with chances of a seed; how long each waits, in order."""
    db.execute("select setseed(%s)", [seed])
    stage(db, [("mail", "{}")] * 1000)
    claimed = sorted(claim(db, kinds=["mail"], batch=1000))
    run(db, calls.settle_steps([settlement(step, Retry("busy")) for step in claimed]))
    ids = [step.step_id for step in claimed]
    rows = db.execute(
        """select extract(epoch from s.due_at - holdfast.clock()) from holdfast.steps s where s.id = any (%s)
            order by s.id""", [ids],
    )  # fmt: skip
    return [float(wait) for (wait,) in rows]


def test_a_thousand_steps_that_fail_together_spread_out(db: DB, clock: Clock) -> None:
    """T-120, X-03: and the same seed spreads them alike"""
    clock.freeze()
    db.execute(
        """create or replace function holdfast.chance() returns double precision language sql volatile
           begin atomic select pg_catalog.random(); end"""
    )
    run(db, StepRetry(3, Backoff(default_backoff_seconds=[300], monotonic=True)).definition("flow:mail"))
    run(db, calls.define_kind("mail", policy="flow:mail"))

    first, again, other = (spread(db, seed) for seed in (0.25, 0.25, 0.75))

    assert set(first) == set(range(270, 331))
    assert max(Counter(first).values()) < 60
    assert first == again != other
