"""Where handlers run: plain ones in threads, `cpu=True` ones in processes, async ones on a loop of their own.

A lane takes attempts and gives each back, with its outcome, to `ended`. None of them runs on the loop that claims and
settles, so a handler that blocks holds up no other's outcome.
"""

from __future__ import annotations

import asyncio
import ctypes
import math
import threading
from collections import deque
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Literal, Protocol

from holdfast.failpoints import failpoint
from holdfast.models import Outcome
from holdfast.worker import forks
from holdfast.worker.attempt import Attempt
from holdfast.worker.execute import Interrupted, aattempt, attempt, outcome_of

Ended = Callable[[Attempt], None]
Wake = Literal["work", "end"]
Run = Callable[[Attempt], Outcome | None]


class Lane(Protocol):
    """Somewhere to run attempts."""

    def add(self, attempts: list[Attempt]) -> None:
        """Take attempts to be run."""

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Give back those that were not begun, or of them those that were claimed before a time."""

    def close(self) -> None:
        """Take no more."""


class Threads:
    """A fixed number of threads, made as they are needed.

    Each takes the next attempt without a lock; only one that finds none goes to sleep. One is woken at a time, and
    wakes the next before its first handler if there is more to do: where handlers wait, all are up at once; where they
    are quick, a few do the work and do not fight for the interpreter.
    """

    def __init__(self, name: str, size: int, ended: Ended, run: Run = attempt) -> None:
        self._name = name
        self._size = size
        self._ended = ended
        self._run = run
        self._waiting: deque[Attempt] = deque()
        self._wakes: SimpleQueue[Wake] = SimpleQueue()
        self._lock = threading.Lock()
        self._sleeping = 0
        self._made = 0

    def add(self, attempts: list[Attempt]) -> None:
        """Take attempts to be run."""
        self._waiting.extend(attempts)
        self._summon()

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Give back those that were not begun, or of them those that were claimed before a time."""
        return _taken_back(self._waiting, claimed_before)

    def close(self) -> None:
        """Let the threads end; one that is inside a handler ends after it."""
        with self._lock:
            self._size = 0
            for _ in range(self._made):
                self._wakes.put("end")

    def _summon(self) -> None:
        """Wake one that sleeps, or make one."""
        with self._lock:
            if self._sleeping:
                self._sleeping -= 1
                self._wakes.put("work")
                return
            if self._made >= self._size:
                return
            self._made += 1
        threading.Thread(target=self._work, name=f"holdfast-{self._name}", daemon=True).start()

    def _work(self) -> None:
        seat = Seat(self._run)
        while True:
            is_first = True
            for one in _emptied(self._waiting):
                if is_first and self._waiting:
                    self._summon()
                is_first = False
                seat.take(one)
                self._ended(one)
            with self._lock:
                if self._waiting:  # came between the last look and the lock
                    continue
                if self._size == 0:
                    return
                self._sleeping += 1
            if self._wakes.get() == "end":
                return


class Seat:
    """One thread's place: who interrupts an attempt must not hit the one after it."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._thread = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()
        self._current: Attempt | None = None

    def take(self, one: Attempt) -> None:
        """Run an attempt to its outcome."""
        one.interrupt = self.interrupt
        try:
            self._current = one
            failpoint("before_handler")
            one.conclude(self._run(one))
            failpoint("after_handler")
            with self._lock:
                self._current = None
        except BaseException as error:  # noqa: BLE001 - Interrupted when the handler had just ended, or a child lost
            self._current = None
            one.conclude(outcome_of(one, error))

    def interrupt(self, one: Attempt) -> None:
        """Raise Interrupted in the thread, if it still runs that attempt; it comes when C code returns."""
        if not self._lock.acquire(timeout=1):
            return
        try:
            if self._current is one:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(Interrupted))
        finally:
            self._lock.release()


class Loop:
    """An event loop in a thread of its own, with a bounded number of handlers under way."""

    def __init__(self, size: int, ended: Ended) -> None:
        self._size = size
        self._ended = ended
        self._waiting: deque[Attempt] = deque()
        self._under_way: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None

    def add(self, attempts: list[Attempt]) -> None:
        """Take attempts to be run."""
        loop = self._loop or self._start()
        self._waiting.extend(attempts)
        loop.call_soon_threadsafe(self._pump)

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Give back those that were not begun, or of them those that were claimed before a time."""
        return _taken_back(self._waiting, claimed_before)

    def close(self) -> None:
        """End the loop."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)

    def ping(self, answered: Callable[[], None]) -> None:
        """Have something called on the loop: a loop that is blocked does not answer."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(answered)

    @property
    def is_busy(self) -> bool:
        """Whether handlers are under way."""
        return bool(self._under_way)

    def _start(self) -> asyncio.AbstractEventLoop:
        loop = new_loop()
        self.thread = threading.Thread(target=self._turn, args=[loop], name="holdfast-loop", daemon=True)
        self.thread.start()
        self._loop = loop
        return loop

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        forks.own_loop(loop)
        loop.run_forever()

    def _pump(self) -> None:
        while self._waiting and len(self._under_way) < self._size:
            try:
                one = self._waiting.popleft()
            except IndexError:  # withdrawn by another thread
                return
            task = asyncio.get_running_loop().create_task(self._run(one))
            self._under_way.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        self._pump()

    async def _run(self, one: Attempt) -> None:
        failpoint("before_handler")
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            one.interrupt = lambda _one: (loop.call_soon_threadsafe(task.cancel), None)[1]
        one.conclude(await aattempt(one))
        one.interrupt = None
        failpoint("after_handler")
        self._ended(one)


def new_loop() -> asyncio.AbstractEventLoop:
    """Make an event loop: uvloop's where it runs."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _emptied(waiting: deque[Attempt]) -> Iterable[Attempt]:
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def _taken_back(waiting: deque[Attempt], claimed_before: float) -> list[Attempt]:
    """Take from the front what has waited longest: it stands there."""
    found: list[Attempt] = []
    for one in _emptied(waiting):
        if one.batch.claimed_at >= claimed_before:
            waiting.appendleft(one)
            break
        found.append(one)
    return found
