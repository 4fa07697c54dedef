"""The context of a handler: its attempt, its deadline, and methods that write under its lease."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from pydantic import SecretStr

from holdfast import log, masking, tracing
from holdfast.errors import BadInput, LeaseLost
from holdfast.handlers.limits import check_weight
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Level

if TYPE_CHECKING:
    from holdfast.connections.handler_tx import HandlerExecutor
    from holdfast.handlers.transaction import Transaction

CHARGE_EACH = 1.0  # seconds between two checks of a bucket, so that a handler notices a stop
PROGRESS_EACH = 1.0  # seconds: each note is a row, and nobody reads more often


class Ctx:
    """The attempt that a handler runs. A handler receives it in a parameter annotated `Ctx`."""

    __slots__ = (
        "_executor", "_masked", "_noted", "_stop", "deadline_at", "is_in_batch", "step", "trace", "transaction_open",
    )  # fmt: skip

    def __init__(self, step: ClaimedStep, executor: HandlerExecutor) -> None:
        self.step = step
        self._executor = executor
        self._stop: str | None = None
        self._noted = 0.0
        self._masked: tuple[str, ...] = ()
        self.trace: dict[str, str] | None = None  # the trace context from the input
        self.deadline_at: float | None = None  # set when the handler begins
        self.transaction_open: Transaction | None = None
        self.is_in_batch = False  # set by the worker, for a call that serves several steps

    @property
    def step_id(self) -> int:
        """The step's number, the same in all its attempts."""
        return self.step.step_id

    @property
    def run_id(self) -> UUID | None:
        """The step's run; None for a plain task."""
        return self.step.run_id

    @property
    def kind(self) -> str:
        """The name of the task or step."""
        return self.step.kind

    @property
    def attempt(self) -> int:
        """The number of this attempt, from 1."""
        return self.step.attempt

    @property
    def lease_id(self) -> int:
        """The number of this attempt's lease, which fences its writes; no other attempt has it."""
        return self.step.lease_id

    @property
    def cursor(self) -> Any:
        """Where the last page ended, for handlers that raise Continue."""
        return self.step.cursor

    @property
    def worker(self) -> str:
        """The name of the worker."""
        return self._executor.worker

    @property
    def idempotency_key(self) -> str:
        """A key for outside systems: the same in each attempt, so that they recognise a repeat."""
        return f"holdfast-step-{self.step.step_id}"

    @property
    def deadline(self) -> datetime | None:
        """When the attempt must end, by this machine's clock; None without a timeout."""
        left = self.time_left()
        return None if left is None else datetime.now(UTC) + left

    def time_left(self) -> timedelta | None:
        """The time left until the deadline."""
        if self.deadline_at is None:
            return None
        return timedelta(seconds=max(0.0, self.deadline_at - time.monotonic()))

    @property
    def cancelled(self) -> bool:
        """Whether the handler should stop: cancelled, out of time, its lease lost, or its worker stopping."""
        return self._stop is not None

    @property
    def stop_reason(self) -> str | None:
        """Why it should stop."""
        return self._stop

    def tell_to_stop(self, reason: str) -> None:
        """Make `cancelled` true; called by the worker."""
        self._stop = self._stop or reason

    @property
    def log(self) -> log.Logger:
        """A logger that adds the step's number, kind, attempt and trace to each line."""
        ids = {"step_id": self.step_id, "run_id": self.run_id, "kind": self.kind, "attempt": self.attempt}
        return log.get(log.HANDLER).bind(**ids, trace_id=self.trace_id)

    @property
    def trace_id(self) -> str | None:
        """The id of the trace that the start belongs to."""
        return tracing.trace_id(self.trace)

    def note(self, message: str, /, level: Level = "info", **payload: Any) -> None:
        """Store a note with the step; raise LeaseLost if the step is no longer ours."""
        self._note(message, masking.known.shown(payload), level=level)

    def progress(self, done: float, total: float | None = None) -> None:
        """Report progress; at most one report per second is stored, and the last one."""
        now = time.monotonic()
        if now - self._noted < PROGRESS_EACH and done != total:
            return
        self._noted = now
        self._note("progress", {"done": done, "total": total})

    def usage(self, **amounts: float) -> None:
        """Record what the attempt used (tokens, cost, records), once per attempt; work.tasks shows it."""
        self._note("usage", amounts, key=f"usage:{self.attempt}")

    def skipped(self, why: str) -> None:
        """Record, once, that there was nothing to do; the handler then returns as usual."""
        self._note("skipped", {"why": masking.known.shown(why)}, key="skipped")

    def mask(self, value: str | SecretStr) -> None:
        """Replace a value by `***` in whatever this attempt stores or logs, such as a token that it was issued.

        A value of fewer than 6 characters is not masked, because it would also be found inside ordinary words; a log
        line says so.
        """
        plain = value.get_secret_value() if isinstance(value, SecretStr) else value
        if masking.known.hold(plain):
            self._masked += (plain,)
        else:
            self.log.warning("secret.too_short", why=f"a value of fewer than {masking.LEAST} characters is not masked")

    def release_secrets(self) -> None:
        """Give up the values that were passed to `mask`; called by the worker."""
        if self._masked:
            masking.known.release(self._masked)
            self._masked = ()

    def charge(self, limit: str, weight: float = 1, *, wait: bool = True) -> timedelta | None:
        """Take tokens from a limit's bucket for a request besides those that the step was charged for.

        Waits until there are enough. With `wait=False` it returns at once: None if it took the tokens, else how long
        until there may be enough; then it took nothing.
        """
        check_weight("weight", weight, BadInput)
        while True:
            left: timedelta | None = self._make(limit_calls.charge_limit(self.step_id, self.lease_id, limit, weight))[0]
            if left is None or not wait:
                return left
            time.sleep(min(left.total_seconds(), CHARGE_EACH))

    async def acharge(self, limit: str, weight: float = 1, *, wait: bool = True) -> timedelta | None:
        """Take tokens as `charge` does, without blocking the loop."""
        while True:
            left: timedelta | None = await asyncio.to_thread(self.charge, limit, weight, wait=False)
            if left is None or not wait:
                return left
            await asyncio.sleep(min(left.total_seconds(), CHARGE_EACH))

    def heartbeat(self) -> None:
        """Renew the lease now; raise LeaseLost if it is no longer ours. The worker also renews it."""
        executor = self._executor
        held = self._make(
            calls.renew_leases(executor.worker, [self.lease_id], lease=executor.lease, step_ids=[self.step_id])
        )
        if not held:
            self._lost()

    def transaction(self) -> Transaction:
        """Open a transaction that commits together with the step's completion, or not at all.

        `with ctx.transaction() as tx: tx.execute(…)`, or `async with` in an async handler. It commits after the
        handler has returned, together with its result or with the cursor of a Continue. With any other outcome, or if
        the lease is lost, it is rolled back.
        """
        from holdfast.handlers.transaction import Transaction

        if self.is_in_batch:
            raise BadInput(
                f"step {self.step_id} shares its call, and a transaction completes all steps of a call",
                where=str(self.step_id),
                next="use batch.transaction()",
            )
        if self.transaction_open is None:
            self.transaction_open = Transaction(self._executor.connections)
        return self.transaction_open

    def _note(self, message: str, payload: Any, *, level: Level = "info", key: str | None = None) -> None:
        text, fields = masking.known.shown(message), masking.known.value(payload)
        self._make(calls.note(self.step_id, self.lease_id, level, text, payload=fields, key=key))

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
