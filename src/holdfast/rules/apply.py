"""The handler that applies targets: one call of the channel for a batch of them.

Every try compares before it writes, in the write itself where the channel can, otherwise by a read just before it. So a
try after a timeout, a lost worker or a lost response is as safe as the first. A target that is given up while nobody
knows whether it was written is read once more.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from holdfast.errors import OutsideError, Unavailable
from holdfast.failpoints import failpoint
from holdfast.handlers.batch import Batch, Batching
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.inputs import Want
from holdfast.handlers.limits import KindLimits
from holdfast.handlers.registry import Handler, RetryPolicy
from holdfast.models import Fail, Retry, Snooze
from holdfast.rules import calls, outcomes
from holdfast.rules.channel import ChannelCall, Registered, Write, Wrote
from holdfast.rules.outcomes import Outcome, judged, target_of
from holdfast.rules.treatment import Treatment, of_error
from holdfast.rules.undo import conflict_of, without_write

RETRIES = RetryPolicy(limit=4, base=2, growth=2, longest=64, jitter=0.2)  # A-38 … A-42: retries after 2, 4 and 8 s
LOST = Wrote("unknown", message="another worker has the target by now")
SPARE = timedelta(seconds=1)  # between the end of a request and the deadline of its targets


def handler_of(registered: Registered, *, retry: RetryPolicy = RETRIES) -> Handler:
    """Return the handler that serves a channel's targets. A limit is charged by calls, not by targets."""
    batching = Batching(registered.batch)
    function = _function(registered)
    place = registered.place
    return Handler(
        kind=place,
        function=function,
        signature=BatchSignature(function, batching),
        is_async=False,
        uses_cpu=False,
        queue=place,
        retry=retry,
        lease=max(timedelta(seconds=300), registered.target_timeout * 3),
        timeout=registered.target_timeout,
        wants=(Want("values", "target", "values"),),
        completes=calls.target_inputs,
        face="rules",
        limited=KindLimits((place,), "0", 1.0),
        call_weight=registered.call_weight,
        batching=batching,
        interrupted=None if registered.channel.in_transaction else outcomes.INTERRUPTED,
        is_releasable=registered.channel.in_transaction,  # a call that was fetched ahead would ignore a closed limit
    )


def _function(registered: Registered) -> Callable[..., list[Any]]:
    def apply(batch: Batch, targets: list[dict[str, Any]]) -> list[Any]:
        made = without_write(registered, batch, targets)
        due = [place for place in range(len(targets)) if place not in made]
        correlated = _correlated(targets, due)
        # All targets of a channel `in_transaction` are written in one transaction, so they are one call.
        for places in [due] if due and registered.channel.in_transaction else correlated.values():
            made.update(zip(places, Try(registered, batch, targets, places).outcomes(), strict=True))
        for correlation, places in correlated.items():
            failed = sum(type(made[place]) in {Retry, Fail} for place in places)
            batch.log.info("channel.called", channel=registered.name, correlation_id=correlation, targets=len(places),
                           failed=failed)  # fmt: skip
        return [conflict_of(target, made[place]) for place, target in enumerate(targets)]

    apply.__name__ = apply.__qualname__ = f"apply to {registered.name}"
    return apply


def _correlated(targets: Sequence[Mapping[str, Any]], due: Sequence[int]) -> dict[str | None, list[int]]:
    """Return the places of targets by correlation id: a call carries one, and each has its line in the log."""
    places: dict[str | None, list[int]] = {}
    for place in due:
        places.setdefault(targets[place].get("correlation_id"), []).append(place)
    return places


class Try:
    """One try of some targets, by their places in the batch."""

    def __init__(
        self, registered: Registered, batch: Batch, targets: Sequence[Mapping[str, Any]], places: Sequence[int]
    ) -> None:
        self._registered = registered
        self._channel = registered.channel
        self._batch = batch
        self._steps = [batch.steps[place] for place in places]
        self._targets = [target_of(targets[place]) for place in places]
        self._writes = [target.write for target in self._targets]
        self._is_sent = False  # to the channel, outside of a transaction
        self._correlation = next((targets[place].get("correlation_id") for place in places), None)

    def outcomes(self) -> list[Outcome]:
        """Write, and return the outcome of each target."""
        try:
            return self._given_up(self._tried())
        except OutsideError as error:
            self._abandon()
            return self._given_up(self._of_error(error))
        except BaseException as error:
            if isinstance(error, Exception) and self._is_sent:  # a defect of the channel says nothing of its write
                return self._given_up([outcomes.broken(error)] * len(self._targets))
            if len(self._batch) > 1 or not self._is_late():
                raise  # of a larger call that is late each target is tried alone, which the worker arranges
            self._abandon()
            return [outcomes.late(f"the target took longer than {self._registered.target_timeout}")]

    def _tried(self) -> list[Outcome]:
        if self._channel.in_transaction:
            with self._batch.transaction() as connection:
                return self._settled(self._channel.write(self._writes, self._call(connection=connection)))
        places = self._held(range(len(self._writes)))
        wrote: dict[int, Wrote] = {}
        if not self._channel.compares:
            wrote = self._judged(places)
            places = self._held([place for place in places if place not in wrote])
        if places:
            wrote.update(zip(places, self._sent([self._writes[place] for place in places]), strict=True))
        return self._settled([wrote.get(place, LOST) for place in range(len(self._writes))])

    def _held(self, places: Sequence[int]) -> list[int]:
        """Return the places of targets that stay ours during a call: a worker that was frozen sends nothing late."""
        self._batch.hold(self._registered.request_timeout + SPARE)
        return [place for place in places if not self._steps[place].cancelled]

    def _sent(self, writes: Sequence[Write]) -> list[Wrote]:
        failpoint("before_channel_write")
        self._is_sent = True
        wrote = list(self._channel.write(writes, self._call(key=self._key(writes))))
        failpoint("after_channel_write")
        if len(wrote) != len(writes):
            raise Unavailable(f"channel {self._registered.name} answered {len(wrote)} of {len(writes)} writes",
                              code="UNKNOWN")  # fmt: skip
        return wrote

    def _judged(self, places: Sequence[int]) -> dict[int, Wrote]:
        """Read before the write, for a channel that cannot compare: return what does not show `before` any more."""
        verdicts = zip(places, self._read([self._writes[place] for place in places]), strict=True)
        return {place: verdict for place, verdict in verdicts if verdict is not None}

    def _read(self, writes: Sequence[Write]) -> list[Wrote | None]:
        shown = self._channel.read([write.item_id for write in writes], self._call())
        return [judged(write, shown.get(write.item_id)) for write in writes]

    def _settled(self, wrote: Sequence[Wrote]) -> list[Outcome]:
        pairs = zip(self._targets, wrote, strict=True)
        return [outcomes.outcome_of(self._registered, target, each) for target, each in pairs]

    def _of_error(self, error: OutsideError) -> list[Outcome]:
        """Return the outcomes after a call that failed as a whole."""
        treatment = of_error(self._registered.errors, error)
        if treatment.splits and len(self._targets) > 1:
            return self._halved()
        unknown = [not self._channel.in_transaction and outcomes.unknown_after(error, each) for each in self._targets]
        if treatment.retries:
            return [
                outcomes.retried(self._registered, target, treatment, error.what, is_unknown=is_unknown,
                                 after=error.retry_after)
                for target, is_unknown in zip(self._targets, unknown, strict=True)
            ]  # fmt: skip
        if treatment.stops:
            self._stop_runs(treatment, error)
        return [outcomes.failed(treatment, error.what, code=error.code, is_unknown=each) for each in unknown]

    def _halved(self) -> list[Outcome]:
        """Send each half as a call of its own, which its limit is charged for; nothing is charged to a target."""
        failpoint("before_halving")
        middle = len(self._targets) // 2
        keys = [f"half {self._steps[place].lease_id}" for place in (0, middle)]
        return [Snooze(0, call_key=keys[place >= middle]) for place in range(len(self._targets))]

    def _stop_runs(self, treatment: Treatment, error: OutsideError) -> None:
        steps = self._steps
        reason = f"{treatment.error_class}: {error.what}"
        call = calls.stop_failing([step.step_id for step in steps], [step.lease_id for step in steps], reason)
        self._batch.make(call)

    def _given_up(self, made: list[Outcome]) -> list[Outcome]:
        """Read the targets that would be given up while nobody knows whether they were written."""
        pairs = zip(made, self._targets, strict=True)
        places = [
            place for place, (outcome, target) in enumerate(pairs)
            if outcomes.is_open(outcome) and outcomes.is_last(outcome, target)
        ]  # fmt: skip
        if not places:
            return made
        failpoint("before_read_back")
        try:
            verdicts = self._read([self._writes[place] for place in places])
        except OutsideError:
            closed = [outcomes.left_open(made[place]) for place in places]
        else:
            pairs_read = zip(places, verdicts, strict=True)
            closed = [outcomes.settled_by_reading(made[place], verdict) for place, verdict in pairs_read]
        failpoint("after_read_back")
        by_place = dict(zip(places, closed, strict=True))
        return [by_place.get(place, outcome) for place, outcome in enumerate(made)]

    def _key(self, writes: Sequence[Write]) -> str:
        """Make the Idempotency-Key from the runs, the action, the targets and their manual retries."""
        sent = {write.item_id for write in writes}
        parts = sorted(
            f"{step.run_id} {step.step_id} {target.retries}"
            for step, target in zip(self._steps, self._targets, strict=True)
            if target.write.item_id in sent
        )
        return hashlib.sha256("\n".join(["apply", *parts]).encode()).hexdigest()

    def _call(self, *, key: str | None = None, connection: Any = None) -> ChannelCall:
        left = self._batch.time_left()
        most = self._registered.request_timeout
        timeout = most if left is None else max(min(most, left - SPARE), timedelta(seconds=0.1))
        return ChannelCall(timeout, self._correlation, key, connection)

    def _abandon(self) -> None:
        """Give up the batch's transaction: the outcomes are stored without it."""
        if self._batch.transaction_open is not None:
            self._batch.transaction_open.abandon()

    def _is_late(self) -> bool:
        left = self._batch.time_left()
        return left is not None and left <= timedelta(0)
