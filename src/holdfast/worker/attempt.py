"""One attempt at a step, from its claim until its outcome is settled, and the set of those that a worker holds."""

from __future__ import annotations

import json
import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any
from uuid import UUID

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


class Claim:
    """One claim: how many calls it brought, and how many of them are unfinished."""

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
        "began_at", "call", "claim", "ctx", "ended_at", "handler", "interrupt", "is_lost", "is_poison", "is_timed_out",
        "lease", "outcome", "raised_with", "renewed_at", "settled", "step",
    )  # fmt: skip

    def __init__(
        self, step: ClaimedStep, handler: Handler, executor: HandlerExecutor, lease: float, claim: Claim
    ) -> None:
        self.step = step if step.cursor is None else step._replace(cursor=_read(step.cursor))
        self.handler = handler
        self.ctx = handler.context(self.step, executor)
        self.claim = claim
        self.lease = lease
        self.call: BatchCall | None = None  # that it shares with others
        self.renewed_at = claim.claimed_at  # when the granted request was sent; the lease began no earlier
        self.began_at: float | None = None
        self.ended_at = 0.0
        self.is_lost = False
        self.is_timed_out = False
        self.raised_with: int | None = None  # the first step of its call, if the call raised
        self.is_poison = False  # its call ended its process or ran out of time, so the next ones are its own
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
        if self.claim.begun is not None:
            self.claim.begun(self.step)
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
        return Settlement(step.step_id, step.lease_id, outcome, self.is_poison, self.raised_with)

    @property
    def queued_at(self) -> float:
        """Since when it waits for a slot."""
        return self.claim.claimed_at

    def settled_as(self, outcome: Outcome, row: SettledStep) -> None:
        """Record that the transaction of its call settled it."""
        self.outcome, self.settled = outcome, row


class BatchCall:
    """Attempts that one call of their handler serves. A lane runs it as it runs a single attempt."""

    __slots__ = ("attempts", "claim", "executor", "handler", "interrupt", "is_over", "queued_at", "unsettled")

    def __init__(self, attempts: list[Attempt], executor: HandlerExecutor) -> None:
        first = attempts[0]
        self.attempts = attempts
        self.executor = executor
        self.handler = first.handler
        self.queued_at = lease_clock()
        self.claim = Claim(1, self.queued_at, first.claim.begun)
        self.unsettled = len(attempts)
        self.is_over = False  # it has ended or was withdrawn
        self.interrupt: Callable[[Any], None] | None = None
        for attempt in attempts:
            attempt.call = self
            attempt.ctx.is_in_batch = True
            attempt.interrupt = self._stopped

    @property
    def step(self) -> ClaimedStep:
        """The first of its steps."""
        return self.attempts[0].step

    def conclude(self, outcomes: Sequence[Outcome | None] | None) -> None:
        """Record the outcome of each attempt; None keeps an earlier one."""
        for attempt, outcome in zip(self.attempts, outcomes or (), strict=False):
            attempt.conclude(outcome)

    def without(self, run_ids: Collection[UUID]) -> list[Attempt]:
        """Take the attempts of some runs out of a call that was not begun, and return them."""
        removed = [attempt for attempt in self.attempts if attempt.step.run_id in run_ids]
        self.attempts = [attempt for attempt in self.attempts if attempt.step.run_id not in run_ids]
        self.unsettled = len(self.attempts)
        self.is_over = not self.attempts
        for attempt in removed:
            attempt.call = attempt.interrupt = None
            attempt.claim = Claim(1, attempt.claim.claimed_at)
        return removed

    def _stopped(self, _attempt: Attempt) -> None:
        """Interrupt the handler when no step is left; until then it goes on for the others."""
        if self.interrupt is not None and all(attempt.ctx.cancelled for attempt in self.attempts):
            self.interrupt(self)


def _read(cursor: str | bytes) -> Any:
    try:
        return json.loads(cursor)
    except (RecursionError, ValueError) as error:  # fails this step, not its whole batch
        return Unreadable(str(error))


Held = dict[int, Attempt]  # by lease number
Unit = Attempt | BatchCall  # one call of a handler
Ended = Callable[[Unit], None]


class Waiting(deque[Unit]):
    """Calls that wait in a lane; threads pop them from the front without a lock."""

    def taken(self) -> Iterator[Unit]:
        """Take all attempts, one after the other."""
        with suppress(IndexError):
            while True:
                yield self.popleft()

    def withdraw(self, claimed_before: float = math.inf) -> tuple[list[Unit], list[Unit]]:
        """Take all calls, or those that wait since before a time, and return those to release and those to put back.

        What cannot be released goes to `put_back`, and then the lane has to look for work again: a thread that finds
        its queue empty meanwhile falls asleep.
        """
        released: list[Unit] = []
        kept: list[Unit] = []
        with suppress(IndexError):
            while self[0].queued_at < claimed_before:  # a call that came later is only looked at, and stays
                call = self.popleft()  # perhaps another one, if a thread has taken the first
                is_surplus = call.queued_at < claimed_before
                is_free = call.handler.is_releasable or claimed_before == math.inf
                (released if is_surplus and is_free else kept).append(call)
        return released, kept

    def put_back(self, kept: list[Unit]) -> None:
        """Put calls back to the front, in their order."""
        self.extendleft(reversed(kept))
