"""Tells whoever asked what became of steps, after it is settled: best effort, in a thread of its own, never in the way.

An outbox will carry these one day; until then a notification that fails is counted and logged, and changes nothing.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from holdfast import log
from holdfast.worker.meters import Meters
from holdfast.worker.settle import Ending

Hook = Callable[[Ending], None]
MOST_WAITING = 10_000


class Hooks:
    """The functions that are told of each ending."""

    def __init__(self) -> None:
        self._hooks: list[Hook] = []
        self._waiting: queue.Queue[tuple[Ending, Meters]] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._log = log.get("hooks")

    @property
    def are_wanted(self) -> bool:
        """Whether anybody asked to be told."""
        return bool(self._hooks)

    def add(self, hook: Hook) -> None:
        """Tell one more."""
        self._hooks.append(hook)

    def tell(self, endings: list[Ending], meters: Meters) -> None:
        """Pass endings on; returns at once."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="holdfast-hooks", daemon=True)
            self._thread.start()
        for ending in endings:
            try:
                self._waiting.put_nowait((ending, meters))
            except queue.Full:
                meters.notified(ok=False)
                self._log.warning("hook.dropped", step_id=ending.step_id, why=f"{MOST_WAITING} are waiting")

    def flush(self, seconds: float) -> None:
        """Wait for what is under way, but not for ever: a hook may hang."""
        done = threading.Thread(target=self._waiting.join, daemon=True)
        done.start()
        done.join(seconds)

    def _work(self) -> None:
        while True:
            ending, meters = self._waiting.get()
            for hook in self._hooks:
                try:
                    hook(ending)
                except Exception as error:  # noqa: BLE001 - a notification that fails changes nothing
                    meters.notified(ok=False)
                    self._log.warning("hook.failed", step_id=ending.step_id, error=f"{type(error).__name__}: {error}")
                else:
                    meters.notified(ok=True)
            self._waiting.task_done()
