"""Settles outcomes as handlers end: all available ones in one call, which overlaps the next claim."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import psycopg

from holdfast import log
from holdfast.connections.worker import Answers, WorkerConnection
from holdfast.errors import HoldfastError, RefusedError
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.models import Continue, Done, Ending, Fail, Release, Retry, RetryWait, SettledStep, StepResult
from holdfast.worker.attempt import Attempt, BatchCall, Held, Unit
from holdfast.worker.batch import attempts_of
from holdfast.worker.hooks import WorkerHooks
from holdfast.worker.metrics import Meters
from holdfast.worker.options import Options
from holdfast.worker.outcome_log import DONE, OutcomeLog
from holdfast.worker.states import States

LARGEST = 1000
RETRIED = "retried"
WAKING = frozenset({RETRIED, "continued", "snoozed", "released"})  # events that may make the same step due at once
# Errors of an outcome, not of the database: a retry would fail again.
_UNKEPT = (
    RefusedError, psycopg.DataError, psycopg.ProgrammingError, psycopg.InternalError, TypeError, ValueError,
)  # fmt: skip
LINGER = 0.001  # seconds: while quick handlers still run, a fuller batch is cheaper than a sooner one


TOO_LARGE = {"type": "TooLarge", "message": "the result or cursor has more than 1048576 bytes"}


class Settler:
    """Takes ended attempts from any thread, and settles them on its own connection.

    It calls `woken` when a settle may have made a step due.
    """

    def __init__(
        self,
        dsn: str,
        options: Options,
        held: Held,
        states: States,
        hooks: WorkerHooks,
        *,
        meters: Meters,
        woken: Callable[[], None],
    ) -> None:
        self._connection = WorkerConnection(dsn, options.call_deadline)
        self._held = held
        self._states = states
        self._hooks = hooks
        self._meters = meters
        self._woken = woken
        self._ended: deque[Attempt] = deque()
        self._left: list[Attempt] = []  # taken but not yet settled
        self._queries: dict[str, Call[Any]] = {}  # queries to run with the settle, and then their answers
        self._answers: Answers = {}
        self._waits: dict[int, timedelta] = {}  # of the steps that were retried
        self._ready = asyncio.Event()
        self._is_signalled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._log = log.get("settle").bind(worker=options.identity)
        self._outcomes = OutcomeLog(self._log)

    def begin(self) -> None:
        """Attach to the running loop."""
        self._loop = asyncio.get_running_loop()

    def ended(self, unit: Unit) -> None:
        """Take an ended call, of one attempt or of several; may be called in any thread."""
        now = time.monotonic()
        if isinstance(unit, BatchCall):
            for attempt in unit.attempts:
                attempt.ended_at = now
            unit.is_over = True
            self._ended.extend(unit.attempts)
        else:
            unit.ended_at = now
            self._ended.append(unit)
        loop = self._loop
        if not self._is_signalled and loop is not None:
            self._is_signalled = True
            with suppress(RuntimeError):  # the loop was just closed, because the worker has stopped
                loop.call_soon_threadsafe(self._ready.set)

    @property
    def waiting(self) -> int:
        """Return how many attempts have ended and are not settled."""
        return len(self._ended) + len(self._left)

    async def take(self) -> None:
        """Wait for ended attempts and take them, unless some are left from a failed settle."""
        if not self._left:
            await self._ready.wait()
            if len(self._held) > self.waiting:
                await asyncio.sleep(LINGER)
            self._ready.clear()
            self._is_signalled = False
            popped = self._ended.popleft
            self._left = [popped() for _ in range(min(len(self._ended), LARGEST))]

    async def settle_taken(self) -> list[Attempt]:
        """Settle the attempts that were taken, and return them."""
        taken = self._left
        await self.settle(taken)
        self._left = []
        if self._ended:
            self._ready.set()
        return taken

    async def settle(self, ended: list[Attempt]) -> None:
        """Report the outcomes. Attempts that are already settled or lost are only dropped."""
        unsettled = [
            attempt
            for attempt in ended
            if attempt.outcome is not None and attempt.settled is None and not attempt.is_lost
        ]
        self._queries = self._hooks.queries(ended)
        self._answers = dict.fromkeys(self._queries)
        settled = await self._make(unsettled) if unsettled else []
        if self._queries and not unsettled:  # their handlers' own transactions settled all of them
            self._answers = await self._connection.query_all(self._queries)
        await self._learn_failures(unsettled, settled)
        self._waits = await self._read_waits([row.step_id for row in settled if row.event == RETRIED])
        settled += [attempt.settled for attempt in ended if attempt.settled is not None]
        self._account(ended, settled)
        good = sum(type(attempt.outcome) is Done or attempt.settled is not None for attempt in ended)
        self._states.pass_tasks(good, "processing", "reporting_success", "polling")
        self._states.pass_tasks(len(ended) - good, "processing", "reporting_failure", "polling")

    async def close(self) -> None:
        """Close its connection; the outcome of a handler that ends after this is dropped."""
        self._loop = None
        self._outcomes.close()
        await self._connection.close()

    async def _make(self, unsettled: list[Attempt]) -> list[SettledStep]:
        try:
            outcomes = (each.settlement(each.outcome) for each in unsettled if each.outcome is not None)
            return await self._send(calls.settle_steps(outcomes))
        except _UNKEPT as error:
            if len(unsettled) > 1:  # one of them cannot be stored, which must not fail the others
                return [row for attempt in unsettled for row in await self._make([attempt])]
            self._log.error("step.outcome_refused", error=str(error), **unsettled[0].named())
        attempt = unsettled[0]
        message = f"the outcome of {attempt.step.kind} cannot be stored"
        attempt.outcome = Fail({"type": "OutcomeRefused", "message": message})
        return await self._send(calls.settle_steps([attempt.settlement(attempt.outcome)]))

    async def _send(self, call: Call[SettledStep]) -> list[SettledStep]:
        if not self._queries:
            return await self._connection.make(call)
        settled, self._answers = await self._connection.make_and_query(call, self._queries)
        return settled

    async def _learn_failures(self, unsettled: list[Attempt], settled: list[SettledStep]) -> None:
        """Replace the outcome of steps by the failure that the database recorded: their result was too large."""
        failed = {row.step_id for row in settled if row.event == "failed"}
        overruled = [
            attempt
            for attempt in unsettled
            if failed and attempt.step.step_id in failed and isinstance(attempt.outcome, (Done, Continue))
        ]
        if not overruled:
            return
        results: list[StepResult] | None = None
        with suppress(HoldfastError, psycopg.Error, OSError):  # they are settled; the next call will report the outage
            results = await self._connection.query(calls.step_results([attempt.step.step_id for attempt in overruled]))
        errors = {result.step_id: result.error for result in results or ()}
        for attempt in overruled:
            attempt.outcome = Fail(errors.get(attempt.step.step_id) or TOO_LARGE)

    async def _read_waits(self, step_ids: list[int]) -> dict[int, timedelta]:
        """Read in how long steps are retried: their policy decides, and its waits are random in part."""
        if not step_ids:
            return {}
        rows: list[RetryWait] | None = None
        with suppress(HoldfastError, psycopg.Error, OSError):  # they are settled; the next call will report the outage
            rows = await self._connection.query(calls.retry_waits(step_ids))
        return {row.step_id: row.wait for row in rows or ()}

    def _account(self, ended: list[Attempt], settled: list[SettledStep]) -> None:
        rows = {row.step_id: row for row in settled}
        durations: defaultdict[str, list[float]] = defaultdict(list)
        endings: list[Ending] = []
        accepted: list[tuple[str, str]] = []
        release = self._held.pop
        is_watched = self._hooks.is_watched
        for attempt in ended:
            step = attempt.step
            kind = step.kind
            row = rows.get(step.step_id)
            release(step.lease_id, None)
            if attempt.began_at is not None:
                durations[kind].append(attempt.ended_at - attempt.began_at)
            if row is None:
                self._refused(attempt)
                continue
            accepted.append((kind, row.event))
            if row.event != DONE:
                self._tell(attempt, row)
            if is_watched:
                endings.append(_ending(attempt, row))
        events = Counter(accepted)
        for (kind, event), count in events.items():
            self._meters.settled.labels(kind, event).inc(count)
        succeeded = {kind: count for (kind, event), count in events.items() if event == DONE}
        self._outcomes.succeeded(((a, rows[a.step.step_id]) for a in ended if a.step.step_id in rows), succeeded)
        for kind, times in durations.items():
            self._meters.durations.add(kind, times)
        if endings:
            self._hooks.ended(endings, self._answers)
        if any(event in WAKING for _, event in events) or any(attempt.step.run_id is not None for attempt in ended):
            self._woken()  # the same step, or one that waited for it, may be due at once

    def _tell(self, attempt: Attempt, row: SettledStep) -> None:
        if row.event == "failed" and isinstance(attempt.outcome, Retry):
            self._meters.exhausted.labels(attempt.step.kind).inc()
        self._outcomes.other(attempt, row.event, self._waits.get(row.step_id))

    def _refused(self, attempt: Attempt) -> None:
        self._meters.refused.inc()
        why = attempt.ctx.stop_reason or "another worker has the lease now"
        self._log.warning("step.outcome_not_accepted", why=why, **attempt.named())


def _ending(attempt: Attempt, row: SettledStep) -> Ending:
    step = attempt.step
    duration = None if attempt.began_at is None else timedelta(seconds=attempt.ended_at - attempt.began_at)
    outcome = attempt.outcome or Done()
    return Ending(
        step.step_id,
        step.kind,
        step.attempt,
        row.event,
        row.state,
        outcome,
        step.run_id,
        duration,
        attempt.trace_id,
        attempt.handler.face,
    )


def released(units: Sequence[Unit]) -> list[Attempt]:
    """End calls as released. An attempt whose handler began may have made calls, so it counts as tried.

    Its handler may name another outcome for that.
    """
    attempts = []
    for unit in units:
        if isinstance(unit, BatchCall):
            unit.is_over = True
        attempts += attempts_of(unit)
    for attempt in attempts:
        is_tried = attempt.began_at is not None
        attempt.outcome = (attempt.handler.interrupted if is_tried else None) or Release(is_tried)
        attempt.ended_at = time.monotonic()
    return attempts
