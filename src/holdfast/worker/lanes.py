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
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal, Protocol

from holdfast import log
from holdfast.failpoints import failpoint
from holdfast.models import Outcome, Retry
from holdfast.worker import forks
from holdfast.worker.attempt import Attempt
from holdfast.worker.execute import Interrupted, aattempt, attempt, described, outcome_of

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
        self._under_way: dict[asyncio.Task[None], Attempt] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._is_closing = False
        self._log = log.get("loop")
        self.thread: threading.Thread | None = None

    def add(self, attempts: list[Attempt]) -> None:
        """Take attempts to be run."""
        self._waiting.extend(attempts)
        self._pump_soon()

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Give back those that were not begun, or of them those that were claimed before a time."""
        return _taken_back(self._waiting, claimed_before)

    def close(self) -> None:
        """End the loop."""
        self._is_closing = True
        if (loop := self._loop) is not None:
            _call_soon(loop, loop.stop)

    def ping(self, answered: Callable[[], None]) -> None:
        """Have something called on the loop: a loop that is blocked does not answer."""
        if (loop := self._loop) is not None:
            _call_soon(loop, answered)

    @property
    def is_busy(self) -> bool:
        """Whether handlers are under way."""
        return bool(self._under_way)

    def _pump_soon(self) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = new_loop()
                self.thread = threading.Thread(target=self._turn, args=[self._loop], name="holdfast-loop", daemon=True)
                self.thread.start()
            _call_soon(self._loop, self._pump)  # one that breaks just now is replaced, and that pumps

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the loop going: a handler that stops it, or exits, must not end all others."""
        forks.own_loop(loop)
        while True:
            error: BaseException | None = None
            try:
                loop.run_forever()
            except BaseException as raised:  # noqa: BLE001 - whichever way it ends, somebody has to notice
                error = raised
            if self._is_closing:
                return
            kinds = sorted({one.step.kind for one in self._under_way.values()})
            if error is not None and not isinstance(error, (SystemExit, KeyboardInterrupt)):
                self._log.error("loop.broken", error=repr(error), kinds=kinds, then="a new loop takes its place")
                self._replace(loop, error)
                return
            why = "stop() was called" if error is None else repr(error)
            self._log.error("loop.stopped", why=why, kinds=kinds, then="it goes on; let no handler stop its loop")

    def _replace(self, loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
        """Give up a loop that cannot go on. What was under way on it costs a try, as in a process that died."""
        with self._lock:
            self._loop = None
        lost, self._under_way = self._under_way, {}
        for one in lost.values():
            one.interrupt = None
            if one.ctx.transaction_open is not None:
                one.ctx.transaction_open.cut()
            one.conclude(Retry(described(error) | {"type": "LoopBroken"}))
            self._ended(one)
        with suppress(Exception):  # broken as it is
            loop.close()
        if self._waiting:
            self._pump_soon()

    def _pump(self) -> None:
        while self._waiting and len(self._under_way) < self._size:
            try:
                one = self._waiting.popleft()
            except IndexError:  # withdrawn by another thread
                return
            task = asyncio.get_running_loop().create_task(self._run(one))
            self._under_way[task] = one
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)
        self._pump()

    async def _run(self, one: Attempt) -> None:
        failpoint("before_handler")
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            one.interrupt = lambda _one: _call_soon(loop, task.cancel)
        outcome = await aattempt(one)
        if task not in self._under_way:  # its loop was given up, and so was its attempt
            return
        one.conclude(outcome)
        one.interrupt = None
        failpoint("after_handler")
        self._ended(one)


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(function)


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
