"""Where handlers run: plain ones in threads, `cpu=True` ones in processes, async ones on their own loop.

A lane takes attempts and passes each, with its outcome, to `ended`. None of them runs on the loop that claims and
settles, so a handler that blocks does not delay the outcome of another.
"""

from __future__ import annotations

import asyncio
import math
import os
import sys
import time
import traceback
from collections.abc import Collection
from uuid import UUID

from holdfast import log
from holdfast.handlers.registry import Handler, Registry
from holdfast.worker.attempt import BatchCall, Ended, Unit
from holdfast.worker.lanes.loop import Loop
from holdfast.worker.lanes.processes import run_in_child
from holdfast.worker.lanes.threads import Threads
from holdfast.worker.metrics import Meters

LOOK_EACH = 0.5
BLOCKED_AFTER = 1.0
Lane = Threads | Loop


class Lanes:
    """The worker's lanes: threads, processes and a loop, each started with its first step."""

    def __init__(self, registry: Registry, concurrency: int, ended: Ended, dsn: str) -> None:
        self._threads = Threads("handler", concurrency, ended)
        cores = min(concurrency, os.cpu_count() or 1)
        self._processes = Threads("cpu", cores, ended, run_in_child(dsn))
        self._loop = Loop(concurrency, ended)
        self.capacity = (
            cores if all(handler.uses_cpu for handler in registry) else concurrency
        )  # handlers that can run at once
        self._log = log.get("loop")

    def of(self, handler: Handler) -> Lane:
        """Return the lane of a handler."""
        if handler.uses_cpu:
            return self._processes
        return self._loop if handler.is_async else self._threads

    @property
    def waiting(self) -> int:
        """Return how many calls wait for a slot of their lane: a core, for `cpu=True`."""
        return sum(lane.waiting for lane in (self._threads, self._processes, self._loop))

    def withdraw(self, claimed_before: float = math.inf) -> list[Unit]:
        """Take back attempts that were not begun, or only those claimed before a time."""
        lanes = (self._threads, self._processes, self._loop)
        return [attempt for lane in lanes for attempt in lane.withdraw(claimed_before)]

    def withdraw_runs(self, run_ids: Collection[UUID]) -> list[Unit]:
        """Take back attempts of these runs that were not begun; the others of their calls stay."""
        withdrawn: list[Unit] = []
        for lane in (self._threads, self._processes, self._loop):
            others: list[Unit] = []
            for unit in lane.withdraw():
                if isinstance(unit, BatchCall):
                    withdrawn += unit.without(run_ids)
                    others += [unit] if unit.attempts else []
                else:
                    (withdrawn if unit.step.run_id in run_ids else others).append(unit)
            if others:
                lane.add(others)
        return withdrawn

    def close(self) -> None:
        """End the lanes."""
        for lane in (self._threads, self._processes, self._loop):
            lane.close()

    async def watch_loop(self, meters: Meters) -> None:
        """Warn, once per incident, when an async handler blocks its loop, and name the line."""
        answered_at = time.monotonic()
        is_warned = False

        def answered() -> None:
            nonlocal answered_at
            answered_at = time.monotonic()

        while True:
            if not self._loop.is_busy:
                answered()
            self._loop.ping(answered)
            await asyncio.sleep(LOOK_EACH)
            silent = time.monotonic() - answered_at
            if silent < BLOCKED_AFTER:
                is_warned = False
            elif not is_warned:
                is_warned = True
                meters.blocked.inc()
                self._log.warning("loop.blocked", seconds=round(silent, 1), at=self._where())

    def _where(self) -> str:
        thread = self._loop.thread
        frame = sys._current_frames().get(thread.ident or 0) if thread is not None else None
        return "".join(traceback.format_stack(frame, limit=3)) if frame is not None else ""
