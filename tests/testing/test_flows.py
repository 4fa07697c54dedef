"""What users' tests of flows get: a whole task in one call, by the way that production takes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from holdfast import Ctx, Holdfast, Retry, RunFailed, WaitTimedOut
from holdfast.flow.backoff import Backoff
from holdfast.flow.decisions import Decision, Durable
from holdfast.flow.define import Flow
from holdfast.testing import Clock, drain, fail_with, failing, on_database, run_flow
from worker.running import DB, until, working

pytestmark = pytest.mark.one_server


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    hf = Holdfast()
    with on_database(hf, dsn):
        yield hf


def test_a_whole_retrying_workflow_completes_in_one_call(hf: Holdfast, clock: Clock) -> None:
    """T-79, T-124: nobody waits; the clock is moved by what was decided."""
    order = hf.flow("order")
    before = clock.now()

    @order.step
    @failing(times=2, error=ConnectionError("away"))
    def reserve(order_id: int) -> int:
        return order_id

    @order.step(after=reserve)
    def charge(ctx: Ctx, reserve: int) -> list[int]:
        if ctx.attempt == 1:
            raise Retry("too many", after=250)
        return [reserve, ctx.attempt]

    played = run_flow(hf, order, order_id=7)

    assert (played.state, played.result_of(charge)) == ("complete", [7, 2])
    assert [decision.status for decision in played.decisions] == [
        "waiting_for_dependencies", "waiting_for_dependencies", "has_ready_steps", "waiting_for_dependencies",
        "all_complete",
    ]  # fmt: skip
    assert played.told("flow.step.failed", "flow.run.completed") == ["flow.step.failed"] * 3 + ["flow.run.completed"]
    assert clock.now() - before > timedelta(seconds=250)
    assert isinstance(hf.coordinator().strategy, Durable)


def test_a_task_that_fails_is_played_to_its_end_too(hf: Holdfast) -> None:
    """T-125: fails with error X, until no try is left."""
    order = hf.flow("order")

    @order.step(retry=4)
    @fail_with(PermissionError("no such account"))
    def charge() -> None: ...

    played = run_flow(hf, order)

    assert played.state == "error"
    assert played.told("flow.step.failed", "flow.step.max_retries_reached") == ["flow.step.failed"] * 4 + [
        "flow.step.max_retries_reached"
    ]
    with pytest.raises(RunFailed, match="PermissionError: no such"):
        played.run.result(1)


def test_a_function_that_fails_on_demand_keeps_its_parameters_and_may_be_async(hf: Holdfast) -> None:
    """T-125: fail n times."""
    order = hf.flow("order")

    @order.step
    @failing(times=1)
    async def reserve(order_id: int) -> int:
        return order_id

    @order.step(after=reserve)
    @failing(times=1, error=Retry("come back", after=30))
    def charge(order_id: int, reserve: int) -> int:
        return order_id + reserve

    played = run_flow(hf, order, order_id=4)

    assert played.result_of(charge) == 8
    assert played.told("flow.step.retry_requested") == ["flow.step.retry_requested"] * 2


def test_with_the_bypass_retries_wait_for_nothing(hf: Holdfast, clock: Clock) -> None:
    """T-123: on, it is tried again at once; off, as in production, it waits."""
    order = hf.flow("order")

    @order.step
    @failing(times=2, error=Retry("come back", after=30))
    def reserve() -> int:
        return 1

    waits = order.start()
    clock.freeze()
    assert drain(hf) == 1
    assert waits.status().outcome is None

    assert drain(hf, bypass_backoff=True) == 0  # it waits as it was told when it failed
    clock.advance(timedelta(seconds=30))
    assert drain(hf, bypass_backoff=True) == 2
    assert waits.result(1) == {"reserve": 1}


def test_a_flow_may_be_defined_without_backoff(hf: Holdfast, clock: Clock) -> None:
    """T-123."""
    order = hf.flow("order", backoff=Backoff(bypass=True))

    @order.step
    @failing(times=2)
    def reserve() -> int:
        return 1

    clock.freeze()
    run = order.start()
    drain(hf)

    assert run.result(1) == {"reserve": 1}


def test_a_task_that_cannot_go_on_is_said_to_be_stuck(hf: Holdfast, db: DB) -> None:
    order = hf.flow("order")
    order.step(name="reserve")(lambda: 1)
    run_flow(hf, order)
    db.execute("select holdfast.pause_queue('default', 'for a test')")

    with pytest.raises(WaitTimedOut, match="reserve is pending"):
        run_flow(hf, order)


def test_production_and_test_decide_the_same(hf: Holdfast, clock: Clock) -> None:
    """T-143: a step that fails twice, a join, a Retry-After: by a worker that waits, and by the clock."""
    wait = 8.0  # seconds, by policy
    backoff = Backoff(default_backoff_seconds=[wait, wait], jitter_enabled=False, buffer_seconds=0)
    order = _order(hf.flow("order", backoff=backoff), wait)

    clock.freeze()
    run = order.start()
    coordinator = hf.coordinator()
    with working(hf, poll_max=timedelta(seconds=0.05)):
        for number in range(1, 4):
            until(lambda: _waits(coordinator.decisions) == number, "the wait")  # noqa: B023
            clock.advance(wait)
        run.result(30)
    by_worker = [decision for decision in coordinator.decisions if decision.run_id == run.id]
    by_clock = run_flow(hf, order).decisions

    assert _log(by_worker) == _log(by_clock)
    assert [status for status, *_ in _log(by_clock)] == [
        "waiting_for_dependencies", "waiting_for_dependencies", "has_ready_steps", "waiting_for_dependencies",
        "has_ready_steps", "all_complete",
    ]  # fmt: skip


def _waits(decisions: Iterable[Decision]) -> int:
    return [decision.status for decision in decisions].count("waiting_for_dependencies")


def _order(order: Flow, wait: float) -> Flow:
    @order.step
    def reserve(ctx: Ctx) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("away")
        return 1

    @order.step(after=reserve)
    def charge(ctx: Ctx) -> int:
        if ctx.attempt == 1:
            raise Retry("429", after=wait)
        return 2

    @order.step(after=[reserve, charge])
    def ship(reserve: int, charge: int) -> int:
        return reserve + charge

    return order


def _log(decisions: list[Decision]) -> list[tuple[Any, ...]]:
    """What was decided; of a delay whether there is one: some of it is over when it is read."""
    return [(d.status, d.action, d.reason, d.delay and d.delay > timedelta(0)) for d in decisions]
