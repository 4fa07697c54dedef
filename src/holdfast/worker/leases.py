"""Keeps leases: renews them at a third of their length, and stops a handler whose lease is lost or whose time is up.

It has a thread, a loop and a connection of its own: no handler that burns CPU, no pool that is used up and no slow
settle holds up a renewal. A renewal that fails in transit is unknown, not lost: the handler goes on until the lease,
counted from when the last granted request was sent, has run out.
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
LOOK_EACH = 2.0  # seconds between looks for steps that were cancelled or taken away
LONGEST_CALL = timedelta(seconds=10)
FASTEST = 0.05
SLOWEST = 0.5


class Leases:
    """The thread that keeps the leases of one worker."""

    def __init__(self, dsn: str, options: Options, held: Held, meters: Meters) -> None:
        self._worker = options.identity
        self._held = held
        self._meters = meters
        self._connection = WorkerConnection(dsn, min(LONGEST_CALL, options.call_deadline))
        self._loop = new_loop()
        self._looked_at = 0.0
        self._closing = asyncio.Event()
        self._log = log.get("lease").bind(worker=options.identity)
        self._thread = threading.Thread(target=self._run, name="holdfast-lease", daemon=True)

    def start(self) -> None:
        """Begin."""
        if not self._thread.is_alive():
            self._thread.start()

    def stop(self) -> None:
        """End, and wait for it."""
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
            except Exception as error:  # noqa: BLE001 - whatever it was, the next round may do better
                self._log.warning("lease.round_failed", error=str(error))
            await self._wait()
        await watching
        await self._connection.close()

    async def _watch_all(self) -> None:
        """Beside the renewals: one that nobody answers may take longer than the lease has left."""
        while not self._closing.is_set():
            for one in list(self._held.values()):
                self._watch(one)
            await self._wait()

    async def _wait(self) -> None:
        shortest = min((one.lease for one in list(self._held.values())), default=60.0)
        span = min(SLOWEST, max(FASTEST, shortest / 10))
        try:
            await asyncio.wait_for(self._closing.wait(), span)
        except TimeoutError:
            return

    async def _round(self) -> None:
        now = lease_clock()
        held = list(self._held.values())
        due = [
            one
            for one in held
            if not one.is_lost and not one.is_timed_out and now - one.renewed_at >= one.lease * RENEW_AT
        ]
        if due:
            await self._renew(due)
        if held and now - self._looked_at >= LOOK_EACH:
            self._looked_at = now
            await self._look([one for one in held if now - one.renewed_at >= LOOK_EACH])

    def _watch(self, one: Attempt) -> None:
        if one.began_at is None:  # and will not begin under a lease that has run out: see Attempt.begin
            return
        if not one.is_lost and lease_clock() - one.renewed_at >= one.lease:
            self._lose(one, "its lease ran out: the database could not be reached, or the worker was frozen")
        deadline = one.ctx.deadline_at
        if deadline is not None and time.monotonic() >= deadline and not one.is_timed_out:
            # Its lease is not renewed from here on: should the handler not stop, another worker gets the step.
            one.is_timed_out = True
            self._meters.timed_out(one.step.kind)
            self._log.warning("step.timed_out", timeout=str(one.handler.timeout), **one.named())
            one.stop("its time is up")

    async def _renew(self, due: list[Attempt]) -> None:
        for lease in {one.lease for one in due}:
            some = [one for one in due if one.lease == lease]
            sent_at = lease_clock()
            try:
                kept = await self._connection.make(
                    calls.renew_leases(
                        self._worker,
                        [one.step.lease_id for one in some],
                        step_ids=[one.step.step_id for one in some],
                        lease=timedelta(seconds=lease),
                    )
                )
            except HoldfastError as error:
                self._log.warning("lease.renewal_failed", steps=len(some), error=str(error))
                continue
            granted = set(kept)
            self._meters.renewed(len(granted))
            for one in some:
                if one.step.lease_id in granted:
                    one.renewed_at = sent_at
                elif one.step.lease_id in self._held:
                    self._lose(one, "another worker has it, or it is over")

    async def _look(self, held: list[Attempt]) -> None:
        """Learn of cancels and takeovers long before the next renewal would."""
        if not held:
            return
        found = await self._connection.make(
            calls.lost_leases([one.step.step_id for one in held], [one.step.lease_id for one in held])
        )
        states = {lost.lease_id: lost.state for lost in found}
        for one in held:
            if one.step.lease_id in states and one.step.lease_id in self._held:
                self._lose(one, f"it is {states[one.step.lease_id]} by now")

    def _lose(self, one: Attempt, why: str) -> None:
        if one.is_lost:
            return
        one.is_lost = True
        self._meters.lost()
        self._log.warning("lease.lost", why=why, **one.named())
        one.stop(f"its lease is lost: {why}")
