"""Retention beside the worker's loop: removes what its rules no longer keep, in chunks, on a connection of its own.

The database says when a sweep is due, and lets one worker sweep at a time. After each chunk the worker rests several
times as long as the chunk took, so that claims and settles of all workers go on undisturbed.
"""

from __future__ import annotations

import asyncio
import random
import time

from holdfast import log
from holdfast.connections.worker import WorkerConnection
from holdfast.kernel import retention_calls
from holdfast.worker.options import Options

LOOK_EACH = 300.0  # seconds until it asks again, at most: a rule may have changed
REST = 6.0  # times as long as the chunk took
QUICK, SLOW = 0.02, 0.1  # seconds of a chunk: the next one is larger, or smaller
SMALLEST, LARGEST = 50, 4000  # rows
FIRST = 500


class Sweeper:
    """The sweeps of one worker."""

    def __init__(self, dsn: str, options: Options) -> None:
        self._connection = WorkerConnection(dsn, options.call_deadline)
        self._interval = options.recovery_interval.total_seconds()
        self._log = log.get("sweeper").bind(worker=options.identity)

    async def sweep(self) -> None:
        """Sweep whenever one is due, until cancelled; the first time after an interval of upkeep."""
        wait = self._interval * (1 + random.random())  # noqa: S311 - so that workers do not ask all at once
        while True:
            await asyncio.sleep(wait)
            try:
                wait = min(LOOK_EACH, await self._sweep_once())
            except Exception as error:  # noqa: BLE001 - the worker's loop handles a failing database
                self._log.warning("sweep.failed", error=str(error), kind=type(error).__name__)
                wait = LOOK_EACH
            finally:
                await self._connection.close()  # a sweep is rare: it keeps no connection meanwhile

    async def _sweep_once(self) -> float:
        """Do all chunks that are due; return the seconds until the next sweep."""
        batch, steps, runs, keys, ticks = FIRST, 0, 0, 0, 0
        while True:
            began = time.monotonic()
            (chunk,) = await self._connection.make(retention_calls.sweep(batch=batch))
            took = time.monotonic() - began
            steps, runs = steps + chunk.steps, runs + chunk.runs
            keys, ticks = keys + chunk.keys, ticks + chunk.ticks
            if chunk.is_through is not False:
                break
            batch = next_batch(batch, took)
            await asyncio.sleep(took * REST)
        months = await self._drop_months(chunk.months)
        if steps or runs or keys or ticks or months:
            self._log.info("sweep.ended", steps=steps, runs=runs, keys=keys, ticks=ticks, months=months)
        return max(1.0, chunk.wait.total_seconds())

    async def _drop_months(self, count: int) -> list[str]:
        """Drop months of the journal, each in its own transaction; one that is in use waits for the next sweep."""
        dropped: list[str] = []
        for _ in range(count):
            (month,) = await self._connection.make(retention_calls.drop_month())
            if month is None:
                self._log.info("sweep.blocked", then="`holdfast doctor` names the session that uses the journal")
                break
            dropped.append(month)
        return dropped


def next_batch(batch: int, took: float) -> int:
    """Return the size of the next chunk, by how long the last one took."""
    if took < QUICK:
        return min(LARGEST, batch * 2)
    return max(SMALLEST, batch // 2) if took > SLOW else batch
