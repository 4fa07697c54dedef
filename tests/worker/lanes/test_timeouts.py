"""Handlers whose time is up, and handlers in processes: stopped for real, charged, and no other is hit."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest

from holdfast import Ctx, Holdfast, RetryPolicy
from holdfast.testing import events
from kernel.steps import DB, step_row
from worker.lanes import cpu
from worker.running import burst, metric, seconds, until, working

pytestmark = pytest.mark.one_server
TWICE = RetryPolicy(limit=2, base=seconds(0))
FOREVER = threading.Event()


def burn() -> None:
    while True:
        pass


def swallow() -> None:
    while True:
        try:
            time.sleep(0.01)
        except Exception:  # noqa: BLE001
            continue


async def rest() -> None:
    await asyncio.Event().wait()


def ask(ctx: Ctx) -> None:
    """Write until that is refused."""
    while True:
        ctx.note("still here")


HANDLERS = {"burns": burn, "swallows exceptions": swallow, "rests": rest, "writes": ask}


@pytest.mark.parametrize("policy", [None, TWICE], ids=["final", "retried"])
@pytest.mark.parametrize("handler", HANDLERS.values(), ids=HANDLERS.keys())
def test_a_handler_whose_time_is_up_is_stopped_and_charged(
    hf: Holdfast, db: DB, handler: object, policy: RetryPolicy | None
) -> None:
    """W-33, C-65."""
    handle = hf.task(name="work", timeout=0.2, retry=policy)(handler).start()  # type: ignore[call-overload]
    worker = burst(hf)
    row = step_row(db, handle.id)

    assert events(db, step=handle.id) == (
        ["claimed", "failed"] if policy is None else ["claimed", "retried", "claimed", "failed"]
    )
    assert row["error"]["type"] == "TimeoutError"
    assert "0:00:00.200000" in row["error"]["message"]
    assert metric(worker, "holdfast_timed_out_total", kind="work") == (1 if policy is None else 2)


@pytest.mark.parametrize("handler", [cpu.busy, cpu.swallow])
def test_a_process_whose_time_is_up_is_killed_and_charged(
    hf: Holdfast, db: DB, tmp_path: Path, handler: object
) -> None:
    """W-33, C-65."""
    handle = hf.task(name="work", timeout=1, cpu=True)(handler).start(mark=str(tmp_path / "mark"))  # type: ignore[call-overload]
    burst(hf, concurrency=1)

    assert step_row(db, handle.id)["error"]["type"] == "TimeoutError"


def test_the_next_step_of_the_thread_is_not_hit(hf: Holdfast) -> None:
    """W-33: one thread, and each second step runs out of time."""

    @hf.task(name="slow", timeout=0.05)
    def slow() -> None:
        burn()

    @hf.task
    def quick(number: int) -> int:
        return sum(range(number * 1000)) and number

    handles = [(slow.start(), quick.start(number=n))[1] for n in range(1, 9)]
    burst(hf, concurrency=1)

    assert [handle.result(timeout=1) for handle in handles] == list(range(1, 9))


def test_the_next_step_of_the_process_is_not_hit(hf: Holdfast, tmp_path: Path) -> None:
    """W-33: what was killed is replaced."""
    slow = hf.task(name="slow", timeout=0.5, cpu=True)(cpu.busy)
    quick = hf.task(cpu=True)(cpu.quick)
    handles = [(slow.start(mark=str(tmp_path / "m")), quick.start(number=n))[1] for n in (1, 2)]
    burst(hf, concurrency=1)

    assert [handle.result(timeout=1) for handle in handles] == [1, 2]


def test_a_stop_that_comes_late_leaves_the_process_to_the_next(hf: Holdfast) -> None:
    """W-33: an attempt that is over has nothing to interrupt."""
    from holdfast.worker.lanes.processes import Child

    child, killed = Child(hf.dsn), []
    try:
        child.interrupt(object())  # type: ignore[arg-type]
        killed.append(not child.process.is_alive())
    finally:
        child.process.kill()
        child.process.join()

    assert killed == [False]


def test_waiting_for_a_slot_is_not_the_handlers_time(hf: Holdfast) -> None:
    """W-33."""

    @hf.task(timeout=2)
    def work() -> bool:
        return FOREVER.wait(0.4)

    handles = [work.start() for _ in range(8)]  # one after the other they take longer than two seconds
    burst(hf, concurrency=1)

    assert [handle.result(timeout=1) for handle in handles] == [False] * 8


def test_a_process_that_is_cancelled_by_hand_is_killed(hf: Holdfast, db: DB, tmp_path: Path) -> None:
    """W-32, W-61."""
    mark = tmp_path / "mark"
    quick = hf.task(cpu=True)(cpu.pid)
    handle = hf.task(cpu=True)(cpu.busy).start(mark=str(mark))
    with working(hf, concurrency=1) as worker:
        until(mark.exists, "the handler")
        handle.cancel()
        until(lambda: worker.in_flight == 0, "the end of the handler")
        assert quick.start().result(timeout=30) > 0

    assert events(db, step=handle.id) == ["claimed", "cancelled"]


def test_a_process_that_dies_costs_its_own_attempt(hf: Holdfast, db: DB) -> None:
    """W-24, W-33: it is tried again."""
    handle = hf.task(cpu=True)(cpu.die).start()
    burst(hf, concurrency=1)

    assert handle.result(timeout=1) == 2
    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("retry", ["claimed", "retried", "claimed", "succeeded"]),
        ("snooze", ["claimed", "snoozed", "claimed", "succeeded"]),
        ("continue", ["claimed", "continued", "claimed", "succeeded"]),
        ("fail", ["claimed", "failed"]),
        ("odd", ["claimed", "failed"]),
        ("an exception", ["claimed", "failed"]),
    ],
)
def test_every_outcome_comes_out_of_a_process(hf: Holdfast, db: DB, what: str, told: list[str]) -> None:
    """W-23, W-24."""
    handle = hf.task(cpu=True)(cpu.say).start(what=what)
    burst(hf, concurrency=1)

    assert events(db, step=handle.id) == told
