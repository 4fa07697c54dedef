"""The lane of plain handlers, which run in threads. `cpu=True` handlers have threads too, each with a process."""

from __future__ import annotations

import ctypes
import math
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Literal

from holdfast.failpoints import failpoint
from holdfast.worker import batch
from holdfast.worker.attempt import Ended, Unit, Waiting
from holdfast.worker.execute import Interrupted

Wake = Literal["work", "end"]
Run = Callable[[Unit], None]  # it records the outcome


class Threads:
    """A fixed number of threads, created as needed.

    Each takes the next attempt without a lock, and sleeps only if there is none. One thread is woken at a time, and
    wakes the next before its first handler if there is more to do. So if handlers wait, all threads are soon awake; if
    they are quick, a few threads do the work and do not compete for the interpreter.
    """

    def __init__(self, name: str, size: int, ended: Ended, run: Run = batch.run) -> None:
        self._name = name
        self._size = size
        self._ended = ended
        self._run = run
        self._waiting = Waiting()
        self._wakes: SimpleQueue[Wake] = SimpleQueue()
        self._lock = threading.Lock()
        self._sleeping = 0
        self._made = 0

    def add(self, attempts: list[Unit]) -> None:
        """Take attempts to be run."""
        self._waiting.extend(attempts)
        self._summon()

    @property
    def waiting(self) -> int:
        """Return how many calls were not begun."""
        return len(self._waiting)

    def withdraw(self, claimed_before: float = math.inf) -> list[Unit]:
        """Take back attempts that were not begun, or only those claimed before a time."""
        released, kept = self._waiting.withdraw(claimed_before)
        if kept:
            self._waiting.put_back(kept)
            self._summon()  # guard: put back; it may have found nothing meanwhile
        return released

    def close(self) -> None:
        """End the threads; a thread that runs a handler ends after it."""
        with self._lock:
            self._size = 0
            for _ in range(self._made):
                self._wakes.put("end")

    def _summon(self) -> None:
        """Wake a sleeping thread, or create one."""
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
        slot = Slot(self._run)
        while True:
            is_first = True
            for attempt in self._waiting.taken():
                if is_first and self._waiting:
                    self._summon()
                is_first = False
                slot.take(attempt)
                self._ended(attempt)
                del attempt  # or a sleeping thread would keep what it ran last
            with self._lock:
                if self._waiting:  # arrived between the last check and the lock
                    continue
                if self._size == 0:
                    return
                self._sleeping += 1
            if self._wakes.get() == "end":
                return


class Slot:
    """The slot of one thread: interrupting an attempt must not hit the next one."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._thread = ctypes.c_ulong(threading.get_ident())
        self._lock = threading.Lock()
        self._current: Unit | None = None

    def take(self, attempt: Unit) -> None:
        """Run an attempt to its outcome."""
        attempt.interrupt = self.interrupt
        try:
            self._current = attempt
            failpoint("before_handler")
            self._run(attempt)
            failpoint("after_handler")
            with self._lock:
                self._current = None
        except BaseException as error:  # noqa: BLE001 - Interrupted when the handler had just ended, or a child lost
            self._current = None
            batch.fail(attempt, error)

    def interrupt(self, attempt: Unit) -> None:
        """Raise Interrupted in the thread if it still runs that attempt; it arrives when C code returns."""
        if not self._lock.acquire(timeout=1):
            return
        try:
            if self._current is attempt:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(self._thread, ctypes.py_object(Interrupted))
        finally:
            self._lock.release()
