"""The worker's loop: connect, recover, poll, claim, pass to a lane, repeat; outcomes are settled alongside.

startup ▸ connecting ▸ recovery ▸ polling ▸ backoff ▸ idle ▸ connecting …
                                     ╰▸ claiming ▸ processing ▸ reporting ▸ polling
any of them ▸ error_wait ▸ connecting;   any of them ▸ draining ▸ stopped
"""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import Any

import psycopg

from holdfast import log
from holdfast.connections.worker import WorkerConnection
from holdfast.errors import HoldfastError
from holdfast.handlers.registry import Registry
from holdfast.kernel import calls
from holdfast.worker import forks
from holdfast.worker.attempt import Held
from holdfast.worker.claimer import AT_ONCE, Claimer
from holdfast.worker.drain import drain
from holdfast.worker.hooks import Hooks, WorkerHooks
from holdfast.worker.leases import Leases
from holdfast.worker.listener import Hints, Listener, wait_for
from holdfast.worker.metrics import Meters
from holdfast.worker.options import Options
from holdfast.worker.settler import Settler
from holdfast.worker.states import State, States
from holdfast.worker.sweeper import Sweeper
from holdfast.worker.ticker import Ticker
from holdfast.worker.upkeep import Recovery, RegistrationRefused, about, check_secrets, register

FULL_LOOK = 0.25  # seconds between checks while steps wait for a slot: some may have to be released


class Worker:
    """One worker: one loop, its lanes, its leases."""

    def __init__(self, dsn: str, registry: Registry, options: Options, hooks: Hooks | None = None) -> None:
        check_secrets(dsn, registry, options.queues)
        self.options = options
        self.meters = Meters()
        self.states = States(self._moved)
        self.is_ready = False  # connected to a database with the right schema
        self.is_probed = False  # its metrics may be read
        self.stop_signals = 0
        self._registry = registry
        self._definitions = list(registry.definitions())  # an invalid definition raises before the worker begins
        self.hooks = WorkerHooks(hooks or Hooks(), options.identity, registry, self.meters)
        self.held: Held = {}
        self._wake = asyncio.Event()
        self._claims = WorkerConnection(dsn, options.call_deadline)
        self.settler = Settler(
            dsn, options, self.held, self.states, self.hooks, meters=self.meters, woken=self._wake.set
        )
        self.leases = Leases(dsn, options, self.held, self.meters)
        self._ticker = Ticker(self._claims, options, self._wake.set)
        self._recovery = Recovery(self._claims, options, self.meters, self._ticker.look_now)
        self._hints = Hints(self.wake)
        self._listener = Listener(dsn, options.identity, options.queues, self._hints.heard, self._recovery.hasten)
        self.claimer = Claimer(dsn, registry, options, self.held, self.settler, hooks=self.hooks)
        self._beside: list[asyncio.Task[None]] = []
        self._trouble: BaseException | None = None
        self._empty_polls = 0
        self._is_hinted = self._is_asleep = self._polled_alone = False
        self._next_due: float | None = None
        self._sweeper = Sweeper(dsn, options)
        self.log = log.get("worker").bind(worker=options.identity)

    def wake(self) -> None:
        """Make it poll now."""
        self._is_hinted = True
        self._wake.set()

    def stop(self) -> None:
        """Drain; a second call stops it now."""
        self.stop_signals += 1
        self._wake.set()

    @property
    def in_flight(self) -> int:
        """Return how many steps it holds."""
        return len(self.held)

    @property
    def state(self) -> State:
        """The worker's state."""
        return self.states.shown(is_full=self.claimer.room() == 0)

    async def run(self) -> int:
        """Work until it is stopped (or, in a burst, until nothing is due), and return the exit code.

        It pauses after every error, except for a definition that the database rejects, which it raises.
        """
        with forks.guarded():
            return await self._run()

    async def _run(self) -> int:
        refusal: HoldfastError | None = None
        while not self.stop_signals:
            try:
                if await self._round():
                    break
            except RegistrationRefused as refused:
                refusal = refused.error
                self.log.error("worker.refused", error=str(refusal), kind=type(refusal).__name__)
                break
            except Exception as error:  # noqa: BLE001 - only a stop ends the loop
                await self._error_wait(error)
        code = await drain(self)
        if refusal is not None:
            raise refusal
        return code

    async def wait_for_change(self, seconds: float) -> None:
        """Wait, during a drain, until something is settled or a signal comes."""
        self._wake.clear()
        await wait_for(self._wake, min(0.2, seconds))

    async def end_beside(self) -> None:
        """Stop, during a drain, the background tasks and wait for them: they may use the settler's connection."""
        for task in self._beside:
            task.cancel()
        if self._beside:
            await asyncio.wait(self._beside, timeout=1)

    def show_draining(self) -> None:
        """Record, during a drain, in the worker's row that it waits for its handlers."""
        if self._claims.is_open:
            self._beside.append(asyncio.create_task(self._show()))

    async def _show(self) -> None:
        with suppress(HoldfastError, psycopg.Error):  # only people read it
            await self._claims.make(calls.upkeep(worker=self.options.identity, about=self._about()))

    async def retire(self) -> None:
        """Remove, after a drain, the worker's row and close its connections."""
        try:
            await self._claims.make(calls.retire_worker(self.options.identity))
        finally:
            await self._claims.close()
            await self.settler.close()

    def _start_up(self) -> None:
        """Start the background tasks once; a failed one restarts in the next round."""
        if self._beside:
            return
        self.settler.begin()
        self.leases.start()
        beside = [self._settle(), self.claimer.lanes.watch_loop(self.meters)]
        if not self.options.burst:
            beside += [self._sweeper.sweep(), *([self._listener.listen()] if self.options.listens else [])]
        self._beside = [asyncio.create_task(each) for each in beside]
        self.log.info("worker.started", queues=self.options.queues, kinds=self._registry.kinds())

    async def _round(self) -> bool:
        """Run one round, from connecting to the end of a sleep; return True when a burst has nothing left to do."""
        self._start_up()
        self.states.enter("connecting")
        await self._connect()
        self.states.enter("recovery")
        await self._recovery.run_if_due(self._about, counts_backlog=self.is_probed)
        await self._ticker.look_if_due(is_busy=False, is_asleep=self._is_asleep and self._listener.hears)
        self.states.enter("polling")
        while not self.stop_signals and (await self._poll() or not self._recovery.is_through):
            self._raise_trouble()
            # A busy worker is never idle, so no other round would recover.
            await self._recovery.run_if_due(self._about, counts_backlog=self.is_probed)
            await self._ticker.look_if_due(is_busy=True, is_asleep=self._is_asleep and self._listener.hears)
        if self.stop_signals:
            return False
        if self._polled_alone and (self.options.burst or self.claimer.is_through):
            return True
        self.states.enter("backoff")
        interval = self._interval()
        self.states.enter("idle")
        await wait_for(self._wake, interval)
        self._raise_trouble()
        return False

    async def _connect(self) -> None:
        if self._claims.is_open:
            return
        self.is_ready = False
        await self._claims.open()
        others = await register(self._claims, self._definitions, self.options, self._registry.kinds(), self._about())
        if others:
            self.log.warning("worker.name_taken", others=others, then="both work; give each its own name")
        self._is_asleep, self.is_ready = False, True
        self.log.info("worker.connected")

    async def _poll(self) -> bool:
        """Poll once; return False when nothing was due."""
        self.meters.stands(self.state, in_flight=self.in_flight, beat=time.time())
        self._wake.clear()
        await self.claimer.give_back(self._claims)
        self._polled_alone = not self.held  # else a step that it holds may be due again by now
        if self.claimer.is_through and self._polled_alone:
            return False
        if self.claimer.room() == 0:
            await wait_for(self._wake, FULL_LOOK)
            return True
        hinted, self._is_hinted = self._is_hinted, False
        claimed = await self.claimer.claim(self._claims)
        if hinted:
            self._hints.polled(claimed.total())
        if claimed:
            self.meters.claimed(claimed)
            self.states.pass_tasks(claimed.total(), "polling", "claiming", "processing")
            self._empty_polls, self._is_asleep = 0, False
            if self.claimer.awaits_children:
                await wait_for(self._wake, AT_ONCE)
            return True
        if self.claimer.lacks_slots:
            await wait_for(self._wake, FULL_LOOK)
        elif hinted:  # another worker was faster
            self.states.pass_tasks(1, "polling", "claiming", "polling")
        if self._wake.is_set() or self.claimer.lacks_slots:  # a settle may have made something due meanwhile
            return True
        if self._listener.hears and not self._is_asleep:
            await self._fall_asleep()
            return True  # poll once more: starts before the mark sent no hint
        self._empty_polls += 1
        return self.options.burst and self._empty_polls == 1  # once more: another worker may have been parking our step

    async def _settle(self) -> None:
        """Settle ended attempts alongside the loop, which handles a failing database."""
        while True:
            try:
                await self.settler.take()
                if not self.claimer.awaits_children:  # else the next claim is for the steps that this settle makes due
                    self._wake_for_room()
                self.claimer.ended(await self.settler.settle_taken())
            except asyncio.CancelledError:
                raise
            except Exception as error:  # noqa: BLE001 - the loop raises it again
                self._trouble = error  # not closed here, because the loop may be waiting on that connection
                self._wake.set()
                await asyncio.sleep(self.options.error_wait.total_seconds())
            else:
                self._wake_for_room()

    def _wake_for_room(self) -> None:
        if self.states.worker in {"polling", "draining"} or self.options.burst:
            self._wake.set()

    def _raise_trouble(self) -> None:
        trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    async def _error_wait(self, error: Exception) -> None:
        self.states.enter("error_wait")
        self.is_ready, self._empty_polls = False, 0
        self.meters.errors.inc()
        self.meters.stands("error_wait", in_flight=self.in_flight, beat=time.time())
        wait = self.options.error_wait.total_seconds()
        self.log.warning("worker.error_wait", error=str(error), kind=type(error).__name__, wait=wait)
        await self._claims.close()
        until = time.monotonic() + wait
        while not self.stop_signals and (left := until - time.monotonic()) > 0:
            self._wake.clear()
            await wait_for(self._wake, left)
        self._trouble = None

    async def _fall_asleep(self) -> None:
        waits = []
        for queue in self.options.queues:
            waits += await self._claims.make(calls.mark_asleep(self.options.identity, queue))
        self._is_asleep = True
        soonest = min((wait for wait in waits if wait is not None), default=None)
        self._next_due = None if soonest is None else time.monotonic() + soonest.total_seconds()
        self._ticker.look_in(soonest)

    def _interval(self) -> float:
        interval = self.options.poll_interval(max(1, self._empty_polls)).total_seconds()
        if self.claimer.is_backed_up:
            interval = min(interval, FULL_LOOK)
        self.meters.poll_interval.set(interval)
        self.meters.stands(self.state, in_flight=self.in_flight, beat=time.time())
        interval = min(interval, max(0.001, self._ticker.left(is_asleep=self._is_asleep and self._listener.hears)))
        left = None if self._next_due is None else self._next_due - time.monotonic()
        if left is None or left > interval:
            return interval
        self._next_due, self._is_asleep = None, False  # so that the next hint is requested
        return max(0.001, left)

    def _about(self) -> dict[str, Any]:
        found_nothing = self._is_asleep or self._empty_polls > 0
        state = self.states.reported(in_flight=self.in_flight, found_nothing=found_nothing)
        return about(self.options, state, self.in_flight)

    def _moved(self, come: State, to: State, count: int) -> None:
        self.meters.moves.labels(come, to).inc(count)
        self.log.debug("worker.moved", come=come, to=to, count=count)
