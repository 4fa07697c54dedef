"""What a handler holds while it works on a step: who it is, how long it has, and ways to write under its lease."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from holdfast import log, tracing
from holdfast.errors import LeaseLost
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Level

if TYPE_CHECKING:
    from holdfast.connections.handler_tx import HandlerExecutor
    from holdfast.handlers.transaction import Transaction

CHARGE_EACH = 1.0  # seconds between two looks at a bucket, so that a handler that is to stop notices
PROGRESS_EACH = 1.0  # seconds: more often nobody looks, and each is a row


class Ctx:
    """The attempt that a handler is making. A handler takes it by a parameter annotated `Ctx`."""

    __slots__ = ("_executor", "_noted", "_stop", "deadline_at", "step", "trace", "transaction_open")

    def __init__(self, step: ClaimedStep, executor: HandlerExecutor) -> None:
        self.step = step
        self._executor = executor
        self._stop: str | None = None
        self._noted = 0.0
        self.trace: dict[str, str] | None = None  # the trace context that came with the input
        self.deadline_at: float | None = None  # set when the handler begins
        self.transaction_open: Transaction | None = None

    @property
    def step_id(self) -> int:
        """The step's number, the same over all its attempts."""
        return self.step.step_id

    @property
    def run_id(self) -> UUID | None:
        """The run that the step is of; a plain task has none."""
        return self.step.run_id

    @property
    def kind(self) -> str:
        """The name that the handler serves."""
        return self.step.kind

    @property
    def attempt(self) -> int:
        """Which try this is, from 1."""
        return self.step.attempt

    @property
    def lease_id(self) -> int:
        """The number that fences every write of this attempt; no other attempt has it."""
        return self.step.lease_id

    @property
    def cursor(self) -> Any:
        """Where the last page ended, for handlers that raise Continue."""
        return self.step.cursor

    @property
    def worker(self) -> str:
        """Who works on it."""
        return self._executor.worker

    @property
    def idempotency_key(self) -> str:
        """A key for outside systems: the same in each attempt, so that they recognise a repeat."""
        return f"holdfast-step-{self.step.step_id}"

    @property
    def deadline(self) -> datetime | None:
        """When the attempt has to be over, by this machine's clock; None without a timeout."""
        left = self.time_left()
        return None if left is None else datetime.now(UTC) + left

    def time_left(self) -> timedelta | None:
        """How long the attempt may still take."""
        if self.deadline_at is None:
            return None
        return timedelta(seconds=max(0.0, self.deadline_at - time.monotonic()))

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: cancelled, out of time, its lease lost, or its worker going down."""
        return self._stop is not None

    @property
    def stop_reason(self) -> str | None:
        """Why it should stop."""
        return self._stop

    def tell_to_stop(self, reason: str) -> None:
        """For the worker: let `cancelled` be true."""
        self._stop = self._stop or reason

    @property
    def log(self) -> log.Logger:
        """A logger that writes the step's number, kind, attempt and trace with each line."""
        ids = {"step_id": self.step_id, "run_id": self.run_id, "kind": self.kind, "attempt": self.attempt}
        return log.get(log.HANDLER).bind(**ids, trace_id=self.trace_id)

    @property
    def trace_id(self) -> str | None:
        """The id of the trace that the start was part of."""
        return tracing.trace_id(self.trace)

    def note(self, message: str, /, level: Level = "info", **payload: Any) -> None:
        """Write a line on the step that stays with it; raises LeaseLost when the step is no longer ours."""
        self._make(calls.note(self.step_id, self.lease_id, level, message, payload=payload))

    def progress(self, done: float, total: float | None = None) -> None:
        """Say how far it is; at most one a second is written, and the last."""
        now = time.monotonic()
        if now - self._noted < PROGRESS_EACH and done != total:
            return
        self._noted = now
        self._make(calls.note(self.step_id, self.lease_id, "info", "progress", payload={"done": done, "total": total}))

    def usage(self, **amounts: float) -> None:
        """Record what it took (tokens, cost, records): once an attempt, shown in work.tasks."""
        key = f"usage:{self.attempt}"
        self._make(calls.note(self.step_id, self.lease_id, "info", "usage", payload=amounts, key=key))

    def skipped(self, why: str) -> None:
        """Record, once, that there was nothing to do; the handler then returns as ever."""
        self._make(calls.note(self.step_id, self.lease_id, "info", "skipped", payload={"why": why}, key="skipped"))

    def charge(self, limit: str, weight: float = 1, *, wait: bool = True) -> timedelta | None:
        """Take tokens from a limit's bucket for a request beside those that the step was charged for.

        Waits until there are enough. With `wait=False` it returns at once: None if they were taken, else how long until
        they may be there; nothing was taken then.
        """
        while True:
            left: timedelta | None = self._make(limit_calls.charge_limit(self.step_id, self.lease_id, limit, weight))[0]
            if left is None or not wait:
                return left
            time.sleep(min(left.total_seconds(), CHARGE_EACH))

    async def acharge(self, limit: str, weight: float = 1, *, wait: bool = True) -> timedelta | None:
        """Take tokens as `charge` does; it waits without keeping the loop."""
        while True:
            left: timedelta | None = await asyncio.to_thread(self.charge, limit, weight, wait=False)
            if left is None or not wait:
                return left
            await asyncio.sleep(min(left.total_seconds(), CHARGE_EACH))

    def heartbeat(self) -> None:
        """Lengthen the lease now, and learn whether it is still ours. The worker renews it anyway."""
        executor = self._executor
        held = self._make(
            calls.renew_leases(executor.worker, [self.lease_id], lease=executor.lease, step_ids=[self.step_id])
        )
        if not held:
            self._lost()

    def transaction(self) -> Transaction:
        """Open a transaction of your own that commits together with the step's completion, or not at all.

        `with ctx.transaction() as tx: tx.execute(…)`, or `async with` in an async handler. It is committed when the
        handler has returned, in one go with its result, or with the cursor of a Continue: a page and the place behind
        it. With any other outcome, when it raises, or when its lease is lost, nothing of it happens.
        """
        from holdfast.handlers.transaction import Transaction

        if self.transaction_open is None:
            self.transaction_open = Transaction(self._executor.connections)
        return self.transaction_open

    def _make(self, call: Call[Any]) -> list[Any]:
        if self._stop is not None:
            self._lost()
        return self._executor.make(call)

    def _lost(self) -> None:
        self.tell_to_stop("its lease is lost")
        raise LeaseLost(
            f"step {self.step_id} is no longer held under lease {self.lease_id}: {self._stop}",
            where=str(self.step_id),
            next="stop working on it",
        )
