"""Listens for hints that something is due. A hint only saves waiting: polling finds everything without one.

The connection is tested: it waits for a hint from another connection, and then now and then for one that it sends to
itself. A silent connection (a pooler that does not pass notifications, a proxy that keeps dead connections open) is
reopened, and until then not relied upon.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from psycopg import AsyncConnection, sql

from holdfast import log
from holdfast.connections.deadline import aconnect
from holdfast.failpoints import failpoint
from holdfast.kernel import hints, self_test_schema
from holdfast.worker.attempt import lease_clock

PROBE_EACH = 30.0  # seconds
PROBE_WAIT = 5.0
AGAIN_AFTER = 1.0
AGAIN_AT_MOST = 30.0
PATIENCE = 3  # hints in a row that found nothing before one waits
FIRST_WAIT, LONGEST_WAIT = 0.005, 0.1  # seconds
FORGET_AFTER = 1.0  # seconds without such a hint


class Listener:
    """One connection that listens for the worker's queues."""

    def __init__(
        self,
        dsn: str,
        worker: str,
        queues: tuple[str, ...],
        wake: Callable[[], None],
        schedule_changed: Callable[[], None],
    ) -> None:
        self._dsn = dsn
        self._queues = frozenset(queues)
        self._wake = wake
        self._schedule_changed = schedule_changed
        self._channel = self_test_schema.name()
        self._probe_channel = f"holdfast_{worker[-8:]}"
        self._log = log.get("listener").bind(worker=worker)
        self.hears = False  # whether the last probe came back

    async def listen(self) -> None:
        """Listen until cancelled, whatever happens to the connection."""
        failures = 0
        while True:
            try:
                async with asyncio.timeout(PROBE_WAIT):
                    connection = await aconnect(self._dsn)
                try:
                    await self._listen_on(connection)
                finally:
                    connection.pgconn.finish()
            except Exception as error:  # noqa: BLE001 - a listener that stops would slow all later starts
                failures = 1 if self.hears else failures + 1
                if failures == 1:
                    self._log.warning("listener.lost", error=str(error))
            finally:
                self.hears = False
            await asyncio.sleep(min(AGAIN_AT_MOST, AGAIN_AFTER * 2 ** max(0, failures - 1)))

    async def _listen_on(self, connection: AsyncConnection[Any]) -> None:
        failpoint("before_listen")
        for channel in (self._channel, self._probe_channel):
            await self._execute(connection, hints.listen(channel))
        async with asyncio.timeout(PROBE_WAIT):
            other = await aconnect(self._dsn)
        try:  # its own hint would also return through a pooler, with the answer to the statement that sends it
            await self._probe(connection, other)
        finally:
            other.pgconn.finish()
        failpoint("after_listen")
        self.hears = True
        self._wake()  # hints for starts while nobody listened were lost
        self._schedule_changed()
        while True:
            until = time.monotonic() + PROBE_EACH
            while (left := until - time.monotonic()) > 0:
                async for hint in connection.notifies(timeout=left, stop_after=1):
                    self._take(hint.channel, hint.payload)
            await self._probe(connection, connection)

    async def _probe(self, connection: AsyncConnection[Any], sender: AsyncConnection[Any]) -> None:
        await self._execute(sender, hints.notify(self._probe_channel))
        until = time.monotonic() + PROBE_WAIT
        while (left := until - time.monotonic()) > 0:
            async for hint in connection.notifies(timeout=left, stop_after=1):
                if hint.channel == self._probe_channel:
                    return
                self._take(hint.channel, hint.payload)
        raise TimeoutError("the listener did not receive its own hint; polling continues, and the listener reconnects")

    def _take(self, channel: str, payload: str) -> None:
        if channel != self._channel:
            return
        if payload in self._queues:
            failpoint("after_hint")
            self._wake()
        elif not payload:  # no queue has an empty name
            self._schedule_changed()

    async def _execute(self, connection: AsyncConnection[Any], statement: sql.Composed) -> None:
        async with asyncio.timeout(PROBE_WAIT):
            await connection.execute(statement, prepare=False)


class Hints:
    """Calls `wake` for each hint; waits while hints come often and others are faster, until one finds a step.

    A step that a limit frees is announced to all sleeping workers, and one gets it. The claims of the others cost
    processor time that handlers need.
    """

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._missed = 0
        self._missed_at = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def heard(self) -> None:
        """Take a hint, on the worker's loop. One that waits answers those that come meanwhile."""
        if self._timer is not None:
            return
        if delay := self.delay():
            self._timer = asyncio.get_running_loop().call_later(delay, self._answer)
        else:
            self._wake()

    def delay(self) -> float:
        """Return how many seconds the next hint waits."""
        if self._missed < PATIENCE or lease_clock() - self._missed_at > FORGET_AFTER:
            return 0.0
        return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(self._missed - PATIENCE, 10))

    def polled(self, claimed: int) -> None:
        """Learn how many steps the poll for a hint got."""
        now = lease_clock()
        is_forgotten = now - self._missed_at > FORGET_AFTER
        self._missed = 0 if claimed else 1 if is_forgotten else self._missed + 1
        self._missed_at = now

    def _answer(self) -> None:
        self._timer = None
        self._wake()


async def wait_for(event: asyncio.Event, seconds: float) -> None:
    """Wait for the event, at most so long."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()
