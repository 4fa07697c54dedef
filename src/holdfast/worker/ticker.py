"""Fires the ticks of schedules: the database decides which are due, and a worker computes those of a cron.

Every worker does it, with no leader. A worker that sleeps knows from the database when the next tick comes; a busy one
looks about once per second.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from datetime import timedelta
from math import inf

import psycopg

from holdfast import cron, log
from holdfast.connections.worker import WorkerConnection
from holdfast.errors import RefusedError
from holdfast.kernel import schedule_calls
from holdfast.worker.options import Options

BATCH = 50  # schedules per call: more than 64 subtransactions slow down every other session
LOOKS_EACH = 1.0  # seconds between two looks of a busy worker
IDLE_LOOKS_EACH = 30.0  # seconds between two looks of an idle worker that no hint reaches
AFTER_REFUSAL = 5.0  # seconds
AGAIN = 0.2  # seconds until the next look if a schedule is due that another worker has locked


class Ticker:
    """The ticks that one worker fires."""

    def __init__(self, connection: WorkerConnection, options: Options, woken: Callable[[], None]) -> None:
        self._connection = connection
        self._woken = woken
        self._looked_at = -inf
        self._look_at = -inf  # at once after a start
        self._log = log.get("schedules").bind(worker=options.identity)

    def look_now(self) -> None:
        """Look for due ticks in the next round: a schedule changed."""
        self._look_at = -inf
        self._woken()

    def look_in(self, wait: timedelta | None) -> None:
        """Look for due ticks after some time, if not earlier."""
        if wait is not None:
            self._look_at = min(self._look_at, time.monotonic() + wait.total_seconds())

    def left(self, *, is_asleep: bool) -> float:
        """Return how many seconds an idle worker may sleep before it looks again."""
        look_at = self._look_at if is_asleep else min(self._look_at, self._looked_at + IDLE_LOOKS_EACH)
        return max(0.0, look_at - time.monotonic())

    async def look_if_due(self, *, is_busy: bool, is_asleep: bool) -> None:
        """Fire what is due, if it is time to look."""
        is_soon = self.left(is_asleep=is_asleep) > 0
        if is_soon and not (is_busy and time.monotonic() - self._looked_at >= LOOKS_EACH):
            return
        try:
            while await self._look():
                pass
        except (RefusedError, psycopg.OperationalError) as error:  # whatever is wrong with schedules, claims go on
            if not self._connection.is_open:
                raise
            self._looked_at = time.monotonic()
            self._look_at = self._looked_at + AFTER_REFUSAL
            self._log.error("schedules.refused", error=str(error), kind=type(error).__name__)

    async def _look(self) -> bool:
        """Fire one batch; return whether more may be due at once."""
        (fired,) = await self._connection.make(schedule_calls.fire_schedules(batch=BATCH))
        waits = fired.waits
        if fired.plans:
            # In a thread: the missed ticks of a long outage take a while, and outcomes must be settled meanwhile.
            plans = await asyncio.to_thread(lambda: [cron.plan(wanted) for wanted in fired.plans])
            (waits,) = await self._connection.make(schedule_calls.plan_schedules(plans))
            for plan in plans:
                if "broken" in plan:
                    self._log.warning("schedule.broken", schedule=plan["id"], reason=plan["broken"])
        now = self._looked_at = time.monotonic()
        least = 0.0 if fired.looked_at else AGAIN
        self._look_at = inf if waits is None else now + max(least, waits.total_seconds())
        return fired.looked_at >= BATCH or (bool(fired.plans) and waits is not None and not waits)
