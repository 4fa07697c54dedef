"""One attempt at a step, from its claim until its outcome is settled, and the set of those that a worker holds."""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from holdfast import tracing
from holdfast.handlers.registry import Handler
from holdfast.handlers.signature import TRACE
from holdfast.models import ClaimedStep, Outcome, Settlement, Unreadable

if TYPE_CHECKING:
    from holdfast.connections.handler_tx import HandlerExecutor
    from holdfast.models import SettledStep


# Leases use a clock that also counts while the machine sleeps, as the database's does.
lease_clock: Callable[[], float] = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class LeaseRanOut(Exception):
    """The lease ran out before the handler began: the process was frozen, or the step waited too long."""


class Batch:
    """The steps of one claim, and how many of them are unfinished."""

    __slots__ = ("begun", "claimed_at", "is_traced", "left", "pid", "size")

    def __init__(self, size: int, claimed_at: float, begun: Callable[[ClaimedStep], None] | None = None) -> None:
        self.size = self.left = size
        self.begun = begun  # called before each handler, if somebody listens
        self.claimed_at = claimed_at  # by lease_clock
        self.is_traced = tracing.is_on()
        self.pid = os.getpid()  # of the process that runs them; a handler may also return in a fork of it


class Attempt:
    """What the worker knows about a step that it holds. Threads share it; each field has one writer."""

    __slots__ = (
        "batch", "began_at", "ctx", "ended_at", "handler", "interrupt", "is_lost", "is_timed_out", "lease", "outcome",
        "renewed_at", "settled", "step",
    )  # fmt: skip

    def __init__(
        self, step: ClaimedStep, handler: Handler, executor: HandlerExecutor, lease: float, batch: Batch
    ) -> None:
        self.step = step if step.cursor is None else step._replace(cursor=_read(step.cursor))
        self.handler = handler
        self.ctx = handler.context(self.step, executor)
        self.batch = batch
        self.lease = lease
        self.renewed_at = batch.claimed_at  # when the granted request was sent; the lease began no earlier
        self.began_at: float | None = None
        self.ended_at = 0.0
        self.is_lost = False
        self.is_timed_out = False
        self.interrupt: Callable[[Attempt], None] | None = None
        self.outcome: Outcome | None = None
        self.settled: SettledStep | None = None  # by its own transaction

    @property
    def trace_id(self) -> str | None:
        """The id of the trace that its start belongs to, even if its handler runs in another process."""
        text = self.step.input
        if self.ctx.trace is None and isinstance(text, str) and f'"{TRACE}"' in text:
            fields = _read(text)
            carrier = fields.get(TRACE) if isinstance(fields, dict) else None
            self.ctx.trace = carrier if isinstance(carrier, dict) else None
        return self.ctx.trace_id

    def named(self) -> dict[str, Any]:
        """Return its fields for a log line, with its trace if it has one."""
        step = self.step
        fields = {"step_id": step.step_id, "kind": step.kind, "attempt": step.attempt}
        return fields if (trace_id := self.trace_id) is None else {**fields, "trace_id": trace_id}

    def check_lease(self) -> None:
        """Raise if another worker may hold the step by now."""
        if self.is_lost or lease_clock() - self.renewed_at >= self.lease:
            self.ctx.tell_to_stop("its lease ran out before the handler began")
            raise LeaseRanOut

    def begin(self) -> None:
        """Start its timeout, which excludes the wait for a free slot."""
        self.check_lease()
        if self.batch.begun is not None:
            self.batch.begun(self.step)
        self.began_at = time.monotonic()
        if self.handler.timeout is not None:
            self.ctx.deadline_at = self.began_at + self.handler.timeout.total_seconds()

    def stop(self, reason: str) -> None:
        """Ask the handler to stop, and interrupt it where possible."""
        self.ctx.tell_to_stop(reason)
        if self.interrupt is not None:
            self.interrupt(self)

    def conclude(self, outcome: Outcome | None) -> None:
        """Record the outcome. None keeps an earlier one: a stopping worker may already have released the step."""
        if outcome is not None:
            self.outcome = outcome

    def settlement(self, outcome: Outcome) -> Settlement:
        """Return its settlement, fenced by its lease."""
        step = self.step
        return Settlement(step.step_id, step.lease_id, outcome)


def _read(cursor: str | bytes) -> Any:
    try:
        return json.loads(cursor)
    except (RecursionError, ValueError) as error:  # fails this step, not its whole batch
        return Unreadable(str(error))


Held = dict[int, Attempt]  # by lease number
Ended = Callable[[Attempt], None]


class Waiting(deque[Attempt]):
    """Attempts that wait in a lane; threads pop them from the front without a lock."""

    def taken(self) -> Iterator[Attempt]:
        """Take all attempts, one after the other."""
        with suppress(IndexError):
            while True:
                yield self.popleft()

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Take all attempts, or those that were claimed before a time, which are at the front, and can be released."""
        withdrawn: list[Attempt] = []
        kept: list[Attempt] = []
        for attempt in self.taken():
            if attempt.batch.claimed_at >= claimed_before:
                self.appendleft(attempt)
                break
            is_taken = attempt.handler.is_releasable or claimed_before == math.inf
            (withdrawn if is_taken else kept).append(attempt)
        self.extendleft(reversed(kept))
        return withdrawn
