"""What a worker makes of the backoff of a flow: when a failed step comes again, and that many do not come at once."""

from __future__ import annotations

from collections import Counter

import pytest

from holdfast import Holdfast, Retry
from holdfast.flow.backoff import Backoff, StepRetry
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from kernel.steps import DB, claim, column, seconds, settlement, stage, value
from worker.running import burst

pytestmark = pytest.mark.one_server
STEADY = Backoff(jitter_enabled=False)


def failing(hf: Holdfast, retry: StepRetry, *, after: float | None = None) -> int:
    """Start a task that only ever fails; its number."""

    @hf.task(retry=retry)
    def break_down() -> None:
        raise Retry("busy", after=after)

    return break_down.start().id


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
    step_id = failing(hf, StepRetry(4, STEADY))

    assert delays(hf, db, clock, step_id, 3) == [1, 2, 4]
    burst(hf)

    assert events(db, step=step_id)[-1] == "failed"
    assert value(db, "select policy from holdfast.kinds where kind = 'break_down'") == "flow:break_down"


def test_a_step_waits_for_fractions_of_a_second(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-121"""
    quick = Backoff(default_backoff_seconds=[0.1, 0.2, 0.5], jitter_enabled=False)
    step_id = failing(hf, StepRetry(4, quick))

    assert delays(hf, db, clock, step_id, 3) == [0.1, 0.2, 0.5]


def test_what_the_server_asks_for_goes_before_what_is_calculated(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-115: priority 1; C-04: it is not jittered"""
    clock.fix_chance(0)
    step_id = failing(hf, StepRetry(9, Backoff(default_backoff_seconds=[8], monotonic=True)), after=30)

    assert delays(hf, db, clock, step_id, 2) == [30, 30]


def test_what_the_server_asks_for_is_capped(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-113, T-126"""
    step_id = failing(hf, StepRetry(9), after=4000)

    assert delays(hf, db, clock, step_id, 1) == [300]


def test_without_a_calculated_backoff_the_law_of_the_database_protects(hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-115: priority 3; C-58, T-41, T-44: 2 ^ attempts, at most 30 s"""
    step_id = failing(hf, StepRetry(9, Backoff(enabled=False)))

    assert delays(hf, db, clock, step_id, 6) == [2, 4, 8, 16, 30, 30]


@pytest.mark.parametrize("after", [None, 30])
def test_with_the_bypass_a_step_is_tried_again_at_once(hf: Holdfast, db: DB, clock: Clock, after: float | None) -> None:
    """T-123, C-58"""
    clock.freeze()
    step_id = failing(hf, StepRetry(4, Backoff(bypass=True)), after=after)

    burst(hf)

    assert events(db, step=step_id) == ["claimed", "retried"] * 3 + ["claimed", "failed"]


def test_what_was_said_last_holds_from_the_next_failure_on(dsn: str, hf: Holdfast, db: DB, clock: Clock) -> None:
    """T-119: the rule of reloading"""
    step_id = failing(hf, StepRetry(9, STEADY))

    assert delays(hf, db, clock, step_id, 1) == [1]
    newer = Holdfast(dsn)
    failing(newer, StepRetry(9, Backoff(default_backoff_seconds=[70, 71, 72], jitter_enabled=False, monotonic=True)))
    waiting_until = column(db, step_id, "due_at")
    assert delays(newer, db, clock, step_id, 1) == [71]
    newer.close()

    assert waiting_until == clock.now() - seconds(71)


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
