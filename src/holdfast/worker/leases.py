"""Renews leases at a third of their length, and stops a handler whose lease is lost or whose time is up.

It has its own thread, loop and connection, so that no CPU-bound handler, exhausted pool or slow settle delays a
renewal. A renewal that fails in transit is unknown, not lost: the handler continues until the lease has run out,
counted from when the last granted request was sent.
"""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import timedelta

from holdfast import log
from holdfast.connections.worker import WorkerConnection
from holdfast.errors import HoldfastError
from holdfast.kernel import calls
from holdfast.worker.attempt import Attempt, Held, lease_clock
from holdfast.worker.lanes.loop import new_loop
from holdfast.worker.metrics import Meters
from holdfast.worker.options import Options

RENEW_AT = 1 / 3
CHECK_EACH = 2.0  # seconds between checks for steps that were cancelled or taken over
LONGEST_CALL = timedelta(seconds=10)
FASTEST = 0.05
SLOWEST = 0.5


class Leases:
    """The thread that renews the leases of one worker."""

    def __init__(self, dsn: str, options: Options, held: Held, meters: Meters) -> None:
        self._worker = options.identity
        self._held = held
        self._meters = meters
        self._connection = WorkerConnection(dsn, min(LONGEST_CALL, options.call_deadline))
        self._loop = new_loop()
        self._checked_at = 0.0
        self._closing = asyncio.Event()
        self._log = log.get("lease").bind(worker=options.identity)
        self._thread = threading.Thread(target=self._run, name="holdfast-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and wait for it."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._closing.set)
            self._thread.join(timeout=5)

    def _run(self) -> None:
        self._loop.run_until_complete(self._keep())
        self._loop.close()

    async def _keep(self) -> None:
        watching = asyncio.create_task(self._watch_all())
        while not self._closing.is_set():
            try:
                await self._round()
            except Exception as error:  # noqa: BLE001 - the next round may succeed
                self._log.warning("lease.round_failed", error=str(error))
            await self._wait()
        await watching
        await self._connection.close()

    async def _watch_all(self) -> None:
        """Check deadlines alongside the renewals, because a renewal without an answer may outlast the lease."""
        while not self._closing.is_set():
            for attempt in list(self._held.values()):
                self._watch(attempt)
            await self._wait()

    async def _wait(self) -> None:
        shortest = min((attempt.lease for attempt in list(self._held.values())), default=60.0)
        span = min(SLOWEST, max(FASTEST, shortest / 10))
        try:
            await asyncio.wait_for(self._closing.wait(), span)
        except TimeoutError:
            return

    async def _round(self) -> None:
        now = lease_clock()
        held = list(self._held.values())
        due = [
            attempt
            for attempt in held
            if not attempt.is_lost and not attempt.is_timed_out and now - attempt.renewed_at >= attempt.lease * RENEW_AT
        ]
        if due:
            await self._renew(due)
        if held and now - self._checked_at >= CHECK_EACH:
            self._checked_at = now
            await self._find_lost([attempt for attempt in held if now - attempt.renewed_at >= CHECK_EACH])

    def _watch(self, attempt: Attempt) -> None:
        if attempt.began_at is None:  # it will not begin under a lease that has run out: see Attempt.begin
            return
        if not attempt.is_lost and lease_clock() - attempt.renewed_at >= attempt.lease:
            self._lose(attempt, "its lease ran out: the database could not be reached, or the worker was frozen")
        deadline = attempt.ctx.deadline_at
        if deadline is not None and time.monotonic() >= deadline and not attempt.is_timed_out:
            # From here on its lease is not renewed: if the handler does not stop, another worker gets the step.
            attempt.is_timed_out = True
            self._meters.timed_out.labels(attempt.step.kind).inc()
            self._log.warning("step.timed_out", timeout=str(attempt.handler.timeout), **attempt.named())
            attempt.stop("its time is up")

    async def _renew(self, due: list[Attempt]) -> None:
        for lease in {attempt.lease for attempt in due}:
            group = [attempt for attempt in due if attempt.lease == lease]
            sent_at = lease_clock()
            try:
                rows = await self._connection.make(
                    calls.renew_leases(
                        self._worker,
                        [attempt.step.lease_id for attempt in group],
                        step_ids=[attempt.step.step_id for attempt in group],
                        lease=timedelta(seconds=lease),
                    )
                )
            except HoldfastError as error:
                self._log.warning("lease.renewal_failed", steps=len(group), error=str(error))
                continue
            granted = set(rows)
            self._meters.renewed.inc(len(granted))
            for attempt in group:
                if attempt.step.lease_id in granted:
                    attempt.renewed_at = sent_at
                elif attempt.step.lease_id in self._held:
                    self._lose(attempt, "another worker has the step, or it has ended")

    async def _find_lost(self, held: list[Attempt]) -> None:
        """Detect cancels and takeovers long before the next renewal would."""
        if not held:
            return
        rows = await self._connection.make(
            calls.lost_leases([attempt.step.step_id for attempt in held], [attempt.step.lease_id for attempt in held])
        )
        states = {lost.lease_id: lost.state for lost in rows}
        for attempt in held:
            if attempt.step.lease_id in states and attempt.step.lease_id in self._held:
                self._lose(attempt, f"the step is now {states[attempt.step.lease_id]}")

    def _lose(self, attempt: Attempt, why: str) -> None:
        if attempt.is_lost:
            return
        attempt.is_lost = True
        self._meters.lost.inc()
        self._log.warning("lease.lost", why=why, **attempt.named())
        attempt.stop(f"its lease is lost: {why}")
