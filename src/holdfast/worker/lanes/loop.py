"""The lane of async handlers: an event loop in its own thread."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Callable
from contextlib import suppress

from holdfast import log
from holdfast.failpoints import failpoint
from holdfast.worker import batch, forks
from holdfast.worker.attempt import Ended, Unit, Waiting
from holdfast.worker.execute import described


class Loop:
    """An event loop in its own thread, with a bounded number of running handlers."""

    def __init__(self, size: int, ended: Ended) -> None:
        self._size = size
        self._ended = ended
        self._waiting = Waiting()
        self._under_way: dict[asyncio.Task[None], Unit] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.Lock()
        self._is_closing = False
        self._log = log.get("loop")
        self.thread: threading.Thread | None = None

    def add(self, attempts: list[Unit]) -> None:
        """Take attempts to be run."""
        self._waiting.extend(attempts)
        self._pump_soon()

    @property
    def waiting(self) -> int:
        """Return how many calls were not begun."""
        return len(self._waiting)

    def withdraw(self, claimed_before: float = math.inf) -> list[Unit]:
        """Take back attempts that were not begun, or only those claimed before a time."""
        released, kept = self._waiting.withdraw(claimed_before)
        if kept:
            self._waiting.put_back(kept)
            self._pump_soon()  # guard: put back; it may have found nothing meanwhile
        return released

    def close(self) -> None:
        """End the loop."""
        self._is_closing = True
        if (loop := self._loop) is not None:
            _call_soon(loop, loop.stop)

    def ping(self, answered: Callable[[], None]) -> None:
        """Call `answered` on the loop; a loop that is blocked does not."""
        if (loop := self._loop) is not None:
            _call_soon(loop, answered)

    @property
    def is_busy(self) -> bool:
        """Return whether handlers are running."""
        return bool(self._under_way)

    def _pump_soon(self) -> None:
        with self._lock:
            if self._loop is None:
                self._loop = new_loop()
                self.thread = threading.Thread(target=self._turn, args=[self._loop], name="holdfast-loop", daemon=True)
                self.thread.start()
            _call_soon(self._loop, self._pump)  # a loop that breaks right now is replaced, and the new one pumps

    def _turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Keep the loop running: a handler that stops it, or exits, must not end the others."""
        forks.own_loop(loop)
        while True:
            error: BaseException | None = None
            try:
                loop.run_forever()
            except BaseException as raised:  # noqa: BLE001 - however the loop ends, it must be noticed
                error = raised
            if self._is_closing:
                return
            kinds = sorted({attempt.step.kind for attempt in self._under_way.values()})
            if error is not None and not isinstance(error, (SystemExit, KeyboardInterrupt)):
                self._log.error("loop.broken", error=repr(error), kinds=kinds, then="a new loop takes its place")
                self._replace(loop, error)
                return
            why = "stop() was called" if error is None else repr(error)
            self._log.error(
                "loop.stopped", why=why, kinds=kinds, then="it continues; handlers must not stop their loop"
            )

    def _replace(self, loop: asyncio.AbstractEventLoop, error: BaseException) -> None:
        """Abandon a broken loop. Each attempt that was running on it uses one try, as in a process that died."""
        with self._lock:
            self._loop = None
        lost, self._under_way = self._under_way, {}
        for attempt in lost.values():
            attempt.interrupt = None
            for each in batch.attempts_of(attempt):
                if each.ctx.transaction_open is not None:
                    each.ctx.transaction_open.cut()
            batch.retry(attempt, described(error) | {"type": "LoopBroken"})
            self._ended(attempt)
        with suppress(Exception):  # it is broken
            loop.close()
        if self._waiting:
            self._pump_soon()

    def _pump(self) -> None:
        while self._waiting and len(self._under_way) < self._size:
            try:
                attempt = self._waiting.popleft()
            except IndexError:  # withdrawn by another thread
                return
            task = asyncio.get_running_loop().create_task(self._run(attempt))
            self._under_way[task] = attempt
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.pop(task, None)
        self._pump()

    async def _run(self, attempt: Unit) -> None:
        failpoint("before_handler")
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        if task is not None:
            attempt.interrupt = lambda _attempt: _call_soon(loop, task.cancel)
        conclude = await batch.arun(attempt)
        if task not in self._under_way:  # its loop and attempt were abandoned
            return
        conclude()
        attempt.interrupt = None
        failpoint("after_handler")
        self._ended(attempt)


def _call_soon(loop: asyncio.AbstractEventLoop, function: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # it is closed
        loop.call_soon_threadsafe(function)


def new_loop() -> asyncio.AbstractEventLoop:
    """Create an event loop: uvloop's where available."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
