"""Joins claimed steps into the calls of batch handlers, and keeps a call open while it waits for more steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from uuid import UUID

from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.models import ClaimedStep
from holdfast.worker.attempt import Attempt, BatchCall, Claim, Unit, lease_clock

Key = tuple[int, str | None, str | None]  # the handler, the tenant and the batch_key
MOST_OF_LEASE = 1 / 3  # that a call may wait


class OpenCall:
    """A call that is not full and waits for more steps of its key."""

    __slots__ = ("attempts", "first", "timer")

    def __init__(self) -> None:
        self.attempts: list[Attempt] = []
        self.first: Attempt | None = None  # from which the wait is counted
        self.timer: asyncio.TimerHandle | None = None


class Calls:
    """The calls of one worker: those that wait for more steps, and those that are not over."""

    def __init__(
        self,
        executor: HandlerExecutor,
        dispatch: Callable[[Sequence[Unit]], None],
        release: Callable[[Sequence[Unit]], None],
        *,
        waits: bool,
        most_open: int,
    ) -> None:
        self._executor = executor
        self._dispatch = dispatch
        self._release = release
        self._waits = waits  # else a call begins as it was claimed
        self._most_open = most_open
        self._open: dict[Key, OpenCall] = {}
        self._running: list[BatchCall] = []

    @property
    def may_be_halted(self) -> bool:
        """Return whether steps of runs wait, which may be paused meanwhile."""
        return any(attempt.step.run_id is not None for call in self._open.values() for attempt in call.attempts)

    def surplus(self) -> int:
        """Return how many held steps are no calls of their own: all of an open call, and all but one of another."""
        self._running = [call for call in self._running if not call.is_over]
        waiting = sum(len(call.attempts) for call in self._open.values())
        return waiting + sum(len(call.attempts) - 1 for call in self._running)

    def add(self, attempts: Iterable[Attempt]) -> None:
        """Take the steps of a claim: full calls begin now, others when their time is over or their place is needed."""
        ready: list[BatchCall] = []
        paid: set[int] = set()  # the claim's numbers of calls whose weight was charged
        for group in _grouped(attempts):
            batching, number = group[0].handler.batching, group[0].step.call
            if number in paid and group[0].handler.limited.call_weight:  # another version of the handler
                self._release(group)
                continue
            if number is not None:
                paid.add(number)
            if batching is None or not self._may_wait(group[0]):
                ready.append(self._begun(group))
                continue
            key = (id(group[0].handler), group[0].step.tenant, group[0].step.batch_key)
            call = self._open.setdefault(key, OpenCall())
            self._release([attempt for attempt in call.attempts if attempt.is_lost])  # they fill no call
            call.attempts = [*(attempt for attempt in call.attempts if not attempt.is_lost), *group]
            while len(call.attempts) >= batching.most:
                full, call.attempts = call.attempts[: batching.most], call.attempts[batching.most :]
                ready.append(self._begun(full))
            self._wait(key)
        while len(self._open) > self._most_open:
            ready.append(self._begun(self._close(self._oldest())))
        _share_claim(ready)
        self._dispatch(ready)

    def _may_wait(self, first: Attempt) -> bool:
        """Return whether a call may wait for more steps; one without a key was started before its kind had a batch."""
        batching, step = first.handler.batching, first.step
        wants = self._waits and batching is not None and bool(batching.wait)
        return wants and step.batch_key is not None and not step.is_alone

    def withdraw(self) -> list[Unit]:
        """Take back the calls that wait for more steps."""
        return [self._begun(self._close(key)) for key in list(self._open)]

    def withdraw_runs(self, run_ids: Collection[UUID]) -> list[Attempt]:
        """Take back the steps of some runs from calls that wait for more steps."""
        withdrawn: list[Attempt] = []
        for key, call in list(self._open.items()):
            withdrawn += [attempt for attempt in call.attempts if attempt.step.run_id in run_ids]
            call.attempts = [attempt for attempt in call.attempts if attempt.step.run_id not in run_ids]
            self._wait(key)
        for attempt in withdrawn:
            attempt.claim = Claim(1, attempt.claim.claimed_at)  # its claim counted the calls that could begin
        return withdrawn

    def close(self) -> None:
        """Stop waiting."""
        for key in list(self._open):
            self._close(key)

    def _wait(self, key: Key) -> None:
        """Keep a call open until the time of its first step is over; close it if no step is left."""
        call = self._open[key]
        if not call.attempts:
            self._close(key)
        elif call.first is not call.attempts[0]:
            if call.timer is not None:
                call.timer.cancel()
            call.first = call.attempts[0]
            call.timer = asyncio.get_running_loop().call_later(_left_of_wait(call.first), self._time_is_over, key)

    def _oldest(self) -> Key:
        return min(self._open, key=lambda key: self._open[key].attempts[0].claim.claimed_at)

    def _time_is_over(self, key: Key) -> None:
        self._dispatch([self._begun(self._close(key))])

    def _close(self, key: Key) -> list[Attempt]:
        call = self._open.pop(key)
        if call.timer is not None:
            call.timer.cancel()
        return call.attempts

    def _begun(self, attempts: list[Attempt]) -> BatchCall:
        call = BatchCall(attempts, self._executor)
        self._running.append(call)
        return call


def _left_of_wait(first: Attempt) -> float:
    """Return how long a call may still wait, counted from the claim of its first step."""
    batching = first.handler.batching
    most = first.lease * MOST_OF_LEASE  # the worker's own lease may be shorter than the kind's
    wait = 0.0 if batching is None else min(batching.wait.total_seconds(), most)
    return max(0.0, wait - (lease_clock() - first.claim.claimed_at))


def _share_claim(calls: Sequence[BatchCall]) -> None:
    """Measure calls that begin together as one claim: if they end soon, the next claim may bring more calls."""
    for call in calls:
        call.claim = calls[0].claim
        call.claim.size = call.claim.left = len(calls)


def count_calls(steps: Sequence[ClaimedStep]) -> int:
    """Count the calls that a claim brought."""
    numbers = {step.call for step in steps if step.call is not None}
    return len(numbers) + sum(step.call is None for step in steps)


def _grouped(attempts: Iterable[Attempt]) -> list[list[Attempt]]:
    """Join attempts by the claim's numbers, and by the version of their handler."""
    groups: dict[tuple[int, int], list[Attempt]] = {}
    for attempt in attempts:
        step = attempt.step
        number = -step.step_id if step.call is None else step.call
        groups.setdefault((number, id(attempt.handler)), []).append(attempt)
    return list(groups.values())
