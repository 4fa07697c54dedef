"""Calls a function with things in a thread of its own: best effort, with a bound, never in the caller's way."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import queue
import threading
import weakref
from collections.abc import Callable, Iterable
from time import monotonic
from typing import Any, Generic, Protocol, TypeVar

from holdfast import log

T = TypeVar("T")
Count = Callable[[bool], None]  # told of each delivery whether it went well
MOST_WAITING = 10_000
LAST_WORDS = 1.0  # seconds that a process which ends leaves to what was not told yet


class BackgroundNotifier(Generic[T]):
    """Calls a function, plain or async, with what is passed to `tell`. One that raises or hangs harms nobody else.

    The thread starts with the first call. `sort` is what the function is called in the log.
    """

    def __init__(self, function: Callable[[T], Any], sort: str) -> None:
        self.function = function
        self._sort = sort
        self._waiting: queue.Queue[tuple[T, Count]] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._log = log.get(f"{sort}s")

    def tell(self, thing: T, count: Count) -> None:
        """Pass something on; returns at once."""
        if self._thread is None:
            self._start()
        try:
            self._waiting.put_nowait((thing, count))
        except queue.Full:
            count(False)
            self._log.warning(f"{self._sort}.dropped", why=f"{MOST_WAITING} are waiting", **_about(thing))

    def flush(self, seconds: float) -> None:
        """Wait for what is under way, but not for ever: the function may hang."""
        if self._thread is None:
            return
        done = threading.Thread(target=self._waiting.join, daemon=True)
        done.start()
        done.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, name=f"holdfast-{self._sort}", daemon=True)
            self._thread.start()
        atexit.register(_flush_last, weakref.ref(self))

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                thing, count = self._waiting.get()
                try:
                    answer = self.function(thing)
                    if inspect.iscoroutine(answer):
                        runner.run(answer)
                except Exception as error:  # noqa: BLE001 - what is told aside changes nothing
                    count(False)
                    self._log.warning(f"{self._sort}.failed", error=f"{type(error).__name__}: {error}", **_about(thing))
                else:
                    count(True)
                self._waiting.task_done()


class Flushed(Protocol):
    """Something with deliveries under way."""

    def flush(self, seconds: float) -> None: ...


def flush_all(notifiers: Iterable[Flushed], seconds: float) -> None:
    """Wait for several, for that long in all."""
    until = monotonic() + seconds
    for each in notifiers:
        each.flush(max(0.0, until - monotonic()))


def _flush_last(itself: weakref.ref[BackgroundNotifier[Any]]) -> None:
    if (notifier := itself()) is not None:
        notifier.flush(LAST_WORDS)


def uncounted(_ok: bool, /) -> None:
    """Count nothing: outside a worker there are no meters."""


def _about(thing: Any) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in ("name", "step_id", "task_id") if hasattr(thing, name)}
