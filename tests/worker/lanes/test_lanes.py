"""Lanes by themselves: who runs what at the same time."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, cast

import pytest

from holdfast import Holdfast
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.models import ClaimedStep, Done
from holdfast.worker.attempt import Attempt, Claim, Unit, lease_clock
from holdfast.worker.lanes import Lane
from holdfast.worker.lanes.loop import Loop
from holdfast.worker.lanes.threads import Threads

SIZE = 4
WAIT = 20.0


def claimed() -> list[Attempt]:
    app = Holdfast("dbname=nowhere")
    app.task(name="meet")(lambda: None)
    handler = app._engine.registry.find("meet")
    step = ClaimedStep(1, None, "meet", cast("Any", "{}"), 1, 1, datetime.now(UTC), None)
    return [Attempt(step, handler, cast("HandlerExecutor", None), 300.0, Claim(SIZE, 0.0)) for _ in range(SIZE)]


def test_handlers_that_wait_for_each_other_are_all_under_way_at_once() -> None:
    """W-05: one thread is woken at a time, and each wakes the next; the second batch finds them asleep."""
    meeting = threading.Barrier(SIZE)
    ended: SimpleQueue[Any] = SimpleQueue()

    def meet(one: Unit) -> None:
        meeting.wait(WAIT)
        if isinstance(one, Attempt):
            one.conclude(Done())

    lane = Threads("test", SIZE, ended.put, run=meet)
    for _ in range(2):
        lane.add(claimed())
        outcomes = [ended.get(timeout=2 * WAIT).outcome for _ in range(SIZE)]

        assert [type(outcome) for outcome in outcomes] == [Done] * SIZE
    lane.close()


class Looked(Attempt):
    """An attempt that waits since `since`, and calls `look` before it says so."""

    __slots__ = ("look", "since")
    look: Callable[[], None]
    since: float

    @property
    def queued_at(self) -> float:
        self.look()
        return self.since


class Scene:
    """A lane with one slot, whose handler runs, and a second attempt that waits behind it."""

    def __init__(self, lane: type[Lane], *, since: float, is_releasable: bool, look_at: int) -> None:
        self.ended: SimpleQueue[Unit] = SimpleQueue()
        self.begun: list[int] = []
        self.may_end = threading.Event()
        self.looks = 0
        self.look_at = look_at
        self.app = Holdfast("dbname=nowhere")
        self.lane: Any = lane("test", 1, self.ended.put) if lane is Threads else lane(1, self.ended.put)  # type: ignore[call-arg,arg-type]
        self.handler = self.app._engine.registry.find(self._defined(is_async=lane is Loop))
        self.handler = replace(self.handler, is_releasable=is_releasable)
        self.second = Looked(self._step(2), self.handler, cast("Any", None), 300.0, Claim(1, lease_clock()))
        self.second.since, self.second.look = since, self._look

    def begin(self) -> None:
        """Run the first attempt, and let the second wait."""
        first = Attempt(self._step(1), self.handler, cast("Any", None), 300.0, Claim(1, lease_clock()))
        self.lane.add([first])
        wait_until(lambda: self.begun == [1])
        self.lane.add([self.second])

    def _look(self) -> None:
        """While the second is looked at, end the first: the lane looks for work, and finds it or comes to rest."""
        self.looks += 1
        if self.looks == self.look_at:
            self.may_end.set()
            self.ended.get(timeout=WAIT)
            wait_until(lambda: 2 in self.begun or self._is_at_rest())

    def _is_at_rest(self) -> bool:
        return not self.lane.is_busy if isinstance(self.lane, Loop) else self.lane._sleeping == 1

    def _defined(self, *, is_async: bool) -> str:
        def run(number: int) -> None:
            self.begun.append(number)
            if number == 1:
                self.may_end.wait(WAIT)

        async def arun(number: int) -> None:
            self.begun.append(number)
            if number == 1:
                await asyncio.to_thread(self.may_end.wait, WAIT)

        self.app.task(name="meet")(arun if is_async else run)
        return "meet"

    def _step(self, number: int) -> ClaimedStep:
        text = f'{{"number": {number}}}'
        return ClaimedStep(number, None, "meet", cast("Any", text), 1, number, datetime.now(UTC), None)


def wait_until(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT
    while not is_true():
        assert time.monotonic() < until
        time.sleep(0.001)


@pytest.mark.parametrize("lane", [Threads, Loop])
def test_a_step_that_came_late_is_begun_although_somebody_looks_whether_it_is_surplus(lane: type[Lane]) -> None:
    """A look must not take it out of the queue: a slot that becomes free meanwhile would find nothing, and sleep."""
    scene = Scene(lane, since=lease_clock(), is_releasable=True, look_at=1)
    scene.begin()

    assert scene.lane.withdraw(claimed_before=scene.second.since - 1) == []

    assert scene.ended.get(timeout=WAIT) is scene.second
    scene.lane.close()


@pytest.mark.parametrize("lane", [Threads, Loop])
def test_a_step_that_is_put_back_is_begun_by_a_slot_that_found_nothing_meanwhile(lane: type[Lane]) -> None:
    scene = Scene(lane, since=0.0, is_releasable=False, look_at=2)  # the second look is at one that was taken out
    scene.begin()

    assert scene.lane.withdraw(claimed_before=1.0) == []

    assert scene.ended.get(timeout=WAIT) is scene.second
    scene.lane.close()


def test_surplus_steps_are_taken_and_later_ones_stay_in_their_order() -> None:
    lane: Any = Threads("test", 1, lambda _: None)
    attempts = claimed()
    for attempt, claimed_at in zip(attempts, (1.0, 2.0, 3.0, 4.0), strict=True):
        attempt.claim = Claim(1, claimed_at)
    lane._waiting.extend(attempts)

    assert lane.withdraw(claimed_before=3.0) == attempts[:2]
    assert list(lane._waiting) == attempts[2:]
    assert lane.withdraw() == attempts[2:]
