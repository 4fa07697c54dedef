"""Runs a call in a lane, of one step or of many. A call of a batch handler has an outcome for each of its steps."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, cast

from pydantic import ValidationError

from holdfast import tracing
from holdfast.errors import LeaseLost
from holdfast.handlers.batch import Batch
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.signature import ResultRefused, validation_text
from holdfast.handlers.transaction import Transaction
from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, SettledStep, Settlement
from holdfast.worker.attempt import Attempt, BatchCall, LeaseRanOut, Unit
from holdfast.worker.execute import (
    Interrupted,
    Unfit,
    arun_handler,
    clean,
    outcome_from,
    outcome_of,
    run_handler,
)
from holdfast.worker.forks import leave_if_forked

Outcomes = list[Outcome | None]


def run(unit: Unit) -> None:
    """Run the handler in this thread."""
    if isinstance(unit, BatchCall):
        unit.conclude(run_batch(unit))
    else:
        unit.conclude(run_handler(unit))


async def arun(unit: Unit) -> Callable[[], None]:
    """Run the handler on the loop of async handlers, and return what records the outcome."""
    if isinstance(unit, BatchCall):
        return partial(unit.conclude, await arun_batch(unit))
    return partial(unit.conclude, await arun_handler(unit))


def fail(unit: Unit, error: BaseException) -> None:
    """Record an exception that ended the call outside its handler."""
    for attempt in attempts_of(unit):
        attempt.conclude(outcome_of(attempt, error))


def retry(unit: Unit, error: dict[str, Any]) -> None:
    """Record that the call took its process or its loop with it: each step uses one try, and then runs alone."""
    for attempt in attempts_of(unit):
        attempt.is_poison = isinstance(unit, BatchCall)
        attempt.conclude(Retry(error))


def attempts_of(unit: Unit) -> list[Attempt]:
    """Return the attempts that a call serves."""
    return unit.attempts if isinstance(unit, BatchCall) else [unit]


def run_batch(call: BatchCall) -> Outcomes:
    """Run the handler once, in this thread; None for a step that is settled or whose lease is lost."""
    prepared = Prepared(call)
    if not prepared.attempts:
        return prepared.outcomes
    try:
        with prepared.traced():
            outcomes = prepared.of(prepared.called())
        transaction = prepared.transaction
        if transaction is None:
            return prepared.with_(outcomes)
        if prepared.is_refused:
            transaction.abandon()
            return prepared.with_(outcomes)
        prepared.settled(outcomes, transaction.settle_all(prepared.settlements(outcomes)))
    except BaseException as error:  # noqa: BLE001 - handlers may raise anything; this is the one catch-all
        if prepared.batch.transaction_open is not None:
            prepared.batch.transaction_open.abandon()
        return prepared.failed(error)
    finally:
        prepared.release_secrets()
    return prepared.outcomes


async def arun_batch(call: BatchCall) -> Outcomes:
    """Run the handler once, on the loop of async handlers, as `run_batch` does."""
    prepared = Prepared(call)
    if not prepared.attempts:
        return prepared.outcomes
    try:
        with prepared.traced():
            outcomes = prepared.of(await prepared.acalled())
        transaction = prepared.transaction
        if transaction is None:
            return prepared.with_(outcomes)
        if prepared.is_refused:
            await transaction.aabandon()
            return prepared.with_(outcomes)
        prepared.settled(outcomes, await transaction.asettle_all(prepared.settlements(outcomes)))
    except BaseException as error:  # noqa: BLE001 - as above
        if prepared.batch.transaction_open is not None:
            await prepared.batch.transaction_open.aabandon()
        return prepared.failed(error)
    finally:
        prepared.release_secrets()
    return prepared.outcomes


class Prepared:
    """A call with its arguments. Steps whose input does not fit, or whose lease ran out, are left out of it."""

    def __init__(self, call: BatchCall) -> None:
        self.outcomes: Outcomes = [None] * len(call.attempts)
        self.attempts: list[Attempt] = []
        self.is_refused = False  # the handler returned no list, or one of another length
        self._call = call
        self._places: list[int] = []
        self._signature = cast("BatchSignature", call.handler.signature)
        self._items: list[Any] = []
        for place, attempt in enumerate(call.attempts):
            try:
                item = self._read(attempt)
                attempt.begin()
            except (Unfit, LeaseRanOut) as error:
                self.outcomes[place] = outcome_of(attempt, error)
                continue
            self._items.append(item)
            self.attempts.append(attempt)
            self._places.append(place)
        contexts = tuple(attempt.ctx for attempt in self.attempts)
        self.batch = Batch(contexts, call.executor)

    def called(self) -> Any:
        """Call a plain handler."""
        try:
            return self._call.handler.function(**self._arguments())
        finally:
            leave_if_forked(self._call.claim.pid)

    async def acalled(self) -> Any:
        """Call an async handler."""
        try:
            return await self._call.handler.function(**self._arguments())
        finally:
            leave_if_forked(self._call.claim.pid)

    def traced(self) -> AbstractContextManager[Any]:
        """Return a span around the call, in the trace that the first of its steps was started in."""
        if not self._call.claim.is_traced:
            return nullcontext()
        first = self.attempts[0]
        return tracing.span(f"process {first.step.kind}", first.ctx.trace, {"steps": len(self.attempts)})

    @property
    def transaction(self) -> Transaction | None:
        """The handler's transaction, if there is something to commit."""
        transaction = self.batch.transaction_open
        return transaction if transaction is not None and transaction.is_open else None

    def of(self, result: Any) -> list[Outcome]:
        """Return the outcome of each step that was called, from the handler's list."""
        if isinstance(result, list) and len(result) == len(self.attempts):
            outcomes = _outcomes(self.attempts, result)
            self._mark_shared(outcomes)
            return outcomes
        self.is_refused = True
        got = f"a list of {len(result)}" if isinstance(result, list) else type(result).__name__
        return [_refused(f"{self.batch.kind} must return a list of {len(self.attempts)}, got {got}")] * len(
            self.attempts
        )

    def with_(self, outcomes: Outcomes | list[Outcome]) -> Outcomes:
        """Return the outcomes of all steps of the call."""
        for place, outcome in zip(self._places, outcomes, strict=True):
            self.outcomes[place] = outcome
        return self.outcomes

    def settlements(self, outcomes: list[Outcome]) -> list[Settlement]:
        """Return what the handler's transaction settles; raise if a step is known to be lost."""
        for attempt in self.attempts:
            if attempt.is_lost or attempt.ctx.cancelled:
                raise LeaseLost(
                    f"step {attempt.step.step_id} is lost, so the transaction was rolled back: "
                    f"{attempt.ctx.stop_reason}",
                    where=str(attempt.step.step_id),
                    next="stop working on it",
                )
        return [attempt.settlement(outcome) for attempt, outcome in zip(self.attempts, outcomes, strict=True)]

    def settled(self, outcomes: list[Outcome], rows: list[SettledStep]) -> None:
        """Record what the handler's transaction settled."""
        by_step = {row.step_id: row for row in rows}
        for attempt, outcome in zip(self.attempts, outcomes, strict=True):
            attempt.settled_as(outcome, by_step[attempt.step.step_id])

    def failed(self, error: BaseException) -> Outcomes:
        """Return the outcomes after an exception: it is that of every step, and a lost lease is nobody else's fault."""
        shared: Outcome | None = None
        first: int | None = None
        outcomes: Outcomes = []
        for attempt in self.attempts:
            if attempt.is_timed_out and not attempt.is_lost:
                attempt.is_poison = True
            if attempt.ctx.cancelled or attempt.is_lost:
                stopped = isinstance(error, (LeaseLost, Interrupted, asyncio.CancelledError))
                outcomes.append(outcome_of(attempt, error if stopped else Interrupted()))
                continue
            if shared is None:
                shared, first = _raised(attempt, error), attempt.step.step_id
            attempt.raised_with = first
            outcomes.append(shared)
        return self.with_(outcomes)

    def _mark_shared(self, outcomes: list[Outcome]) -> None:
        """Mark the steps whose retries have one cause: their call failed as a whole."""
        shared = [
            attempt for attempt, each in zip(self.attempts, outcomes, strict=True)
            if isinstance(each, Retry) and each.of_call
        ]  # fmt: skip
        for attempt in shared:
            attempt.raised_with = shared[0].step.step_id

    def release_secrets(self) -> None:
        """Give up the values that the handler masked."""
        for attempt in self.attempts:
            attempt.ctx.release_secrets()

    def _read(self, attempt: Attempt) -> Any:
        try:
            item, attempt.ctx.trace = self._signature.read_item(attempt.step.input)
        except ValidationError as error:
            raise Unfit(f"the input does not fit {attempt.step.kind}: {validation_text(error)}") from None
        except (RecursionError, ValueError) as error:
            raise Unfit(f"the input cannot be read: {error}") from None
        return item

    def _arguments(self) -> dict[str, Any]:
        arguments: dict[str, Any] = {self._signature.items_name: self._items}
        if self._signature.ctx_name is not None:
            arguments[self._signature.ctx_name] = self.batch
        for secret in self._signature.secrets:
            arguments[secret.name] = secret.read()
        return arguments


def _outcomes(attempts: list[Attempt], result: list[Any]) -> list[Outcome]:
    """Return the outcome of each step. An element that is the same object as the one before has the same result."""
    outcomes: list[Outcome] = []
    for place, (attempt, element) in enumerate(zip(attempts, result, strict=True)):
        is_same = place > 0 and element is result[place - 1] and type(outcomes[-1]) is Done
        outcomes.append(outcomes[-1] if is_same else _outcome(attempt, element))
    return outcomes


def _outcome(attempt: Attempt, element: Any) -> Outcome:
    """Return the outcome of one step; an element that cannot be stored fails its own step only."""
    if isinstance(element, Continue):
        return _refused(f"{attempt.step.kind} shares its calls and cannot continue from a cursor")
    try:
        return outcome_from(attempt, element)
    except ResultRefused as error:
        return cast("Outcome", outcome_of(attempt, error))


def _raised(attempt: Attempt, error: BaseException) -> Outcome | None:
    match error:
        case Continue():
            return _refused(f"{attempt.step.kind} shares its calls and cannot continue from a cursor")
        case LeaseLost():  # of another step: this one is released, and nothing is charged
            return Release(is_tried=True)
    return outcome_of(attempt, error)


def _refused(message: str) -> Fail:
    return Fail({"type": "OutcomeRefused", "message": clean(message)})
