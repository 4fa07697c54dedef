"""A worker that stands still: real claimer, settler and leases, but a test sets its clock and says what it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar

import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Holdfast
from holdfast.worker import attempt, batch, claimer, lanes, leases
from holdfast.worker import calls as worker_calls
from holdfast.worker.attempt import Held, Unit
from holdfast.worker.lanes.threads import Threads
from holdfast.worker.loop import Worker
from holdfast.worker.options import Options
from holdfast.worker.settler import released

LEASE = 30.0  # seconds, of the kinds
SIZES = {"by": 3, "any": 4}  # kinds: with a field, without one
SLOTS = 3  # of a worker
FIELDS = {"by": "key", "any": None}
T = TypeVar("T")


class Item(TypedDict):
    key: str


Function = Callable[[Batch, list[Item]], list[Any]]


class StandingLoop(asyncio.SelectorEventLoop):
    """A loop whose clock the test sets, and which keeps what its callbacks raise."""

    def __init__(self) -> None:
        self.at = 0.0
        self.raised: list[Exception] = []
        super().__init__()
        self.set_exception_handler(lambda _loop, context: self.raised.append(context["exception"]))

    def time(self) -> float:
        return self.at

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        result = self.run_until_complete(work)
        if self.raised:
            raise self.raised.pop()
        return result


class Lane(Threads):
    """A lane that runs nothing by itself."""

    def _summon(self) -> None:
        pass

    @property
    def waiting(self) -> int:
        return max(0, len(self._waiting) - SLOTS)  # the others would have begun

    def next_call(self) -> Unit | None:
        return self._waiting.popleft() if self._waiting else None


def replace_lanes_and_clocks(patch: pytest.MonkeyPatch, loop: StandingLoop) -> None:
    """Let workers use the loop's clock for leases too, and lanes that wait to be asked."""
    patch.setattr(lanes, "Threads", Lane)
    for module in (attempt, claimer, leases, worker_calls):
        patch.setattr(module, "lease_clock", loop.time)


@dataclass
class Choices:
    """How long the calls of each kind wait, the worker's own lease, and whether it bursts."""

    waits: dict[str, float] = field(default_factory=dict)
    lease: float | None = None
    burst: bool = False


class StillWorker:
    def __init__(self, loop: StandingLoop, dsn: str, choices: Choices, function: Function) -> None:
        self._loop = loop
        app = Holdfast(dsn)
        for kind, most in SIZES.items():
            given: dict[str, Any] = {"by": FIELDS[kind], "batch_wait": choices.waits[kind]}
            app.task(name=kind, batch=most, lease=timedelta(seconds=LEASE), **given)(function)
        lease = None if choices.lease is None else timedelta(seconds=choices.lease)
        options = Options(lease=lease, burst=choices.burst, concurrency=SLOTS)
        self._worker = Worker(app.dsn, app._engine.registry, options, app._engine.hooks)
        app.close()
        lane = self._worker.claimer.lanes._threads
        assert isinstance(lane, Lane)
        self.lane = lane

    @property
    def held(self) -> Held:
        return self._worker.held

    def claim(self) -> None:
        self._loop.do(self._worker.claimer.claim(self._worker._claims))

    def tick(self) -> None:
        """Do what is due: calls whose time is over, renewals, and a look for what was paused unless it may sleep."""
        self.begin_what_is_due()
        self._loop.do(self._worker.leases._round())
        if self._worker.claimer.is_backed_up:
            self._loop.do(self._worker.claimer.give_back(self._worker._claims))

    def begin_what_is_due(self) -> None:
        self._loop.do(asyncio.sleep(0))

    def call(self, most: int | None = None) -> None:
        """Run calls of the lane, and settle them."""
        while most != 0 and (unit := self.lane.next_call()) is not None:
            batch.run(unit)
            self._worker.settler.ended(unit)
            most = None if most is None else most - 1
        self.settle()

    def settle(self) -> None:
        settler = self._worker.settler
        while settler._ended:
            settler._left.append(settler._ended.popleft())
        if settler._left:
            self._worker.claimer.ended(self._loop.do(settler.settle_taken()))

    def drain(self) -> None:
        """Hand back what has not begun, as a worker that stops does first."""
        for ended in released(self._worker.claimer.withdraw()):
            assert ended.began_at is None
            self._worker.settler.ended(ended)
        self.settle()

    def close(self) -> None:
        for connection in (self._worker._claims, self._worker.settler, self._worker.leases._connection):
            self._loop.do(connection.close())
        self._worker.claimer.close()
        self._worker.leases._loop.close()
