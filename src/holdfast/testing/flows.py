"""For tests of flows: runs a flow to its end in one call, lets steps fail on demand, and records events and decisions.

Everything works as in production: a real worker claims and settles, and the real coordinator decides. Only the strategy
differs: it moves the test's clock by the decided delay, where a worker would wait.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast, overload

from holdfast.app import Holdfast
from holdfast.connections.deadline import connect
from holdfast.errors import WaitTimedOut
from holdfast.flow.decisions import Decision
from holdfast.flow.define import Flow
from holdfast.flow.events import Event
from holdfast.flow.handle import FlowRun
from holdfast.flow.step import Step
from holdfast.testing.kit import Clock, drain

R = TypeVar("R")
Function = TypeVar("Function", bound=Callable[..., Any])
MOST_IDLE = 100  # passes without a settle before a run counts as stuck
PATIENCE = 5.0  # seconds to wait for the remaining events


@dataclass(frozen=True, slots=True)
class Played:
    """A run that was run to its end, with its events and decisions."""

    run: FlowRun
    events: list[Event]
    decisions: list[Decision]

    @property
    def state(self) -> str:
        """How it ended."""
        return self.run.status().state

    @overload
    def result_of(self, step: Step[R]) -> R: ...
    @overload
    def result_of(self, step: str) -> Any: ...
    def result_of(self, step: Step[Any] | str) -> Any:
        """Return the result of a step."""
        return self.run.result_of(step)

    def told(self, *names: str) -> list[str]:
        """List the names of the events in order, or only those among `names`."""
        return [event.name for event in self.events if not names or event.name in names]


@dataclass(slots=True)
class Collecting:
    """The strategy of tests: records when the next pass is due, so that the test can move the clock there."""

    decisions: list[Decision] = field(default_factory=list)

    def reenqueue(self, decision: Decision) -> None:
        """Take note."""
        self.decisions.append(decision)


def run_flow(hf: Holdfast, flow: Flow, /, **context: Any) -> Played:
    """Start a run of a flow and run it to its end, in this process."""
    with recorded(hf) as events:
        run = flow.start(**context)
        return play(hf, run, events)


def play(hf: Holdfast, run: FlowRun, events: list[Event] | None = None) -> Played:
    """Run a started run to its end, in this process."""
    coordinator = hf.coordinator()
    usual, collecting = coordinator.strategy, Collecting()
    coordinator.strategy = collecting
    try:
        with connect(hf.dsn) as connection:
            _run_to_end(hf, run, Clock(connection), collecting)
    finally:
        coordinator.strategy = usual
    hf._engine.subscribers.flush(PATIENCE)
    decisions = [decision for decision in coordinator.decisions if decision.run_id == run.id]
    return Played(run, [event for event in events or [] if event.run_id == run.id], decisions)


def _run_to_end(hf: Holdfast, run: FlowRun, clock: Clock, collecting: Collecting) -> None:
    idle = 0
    while True:
        idle = 0 if drain(hf) else idle + 1
        if run.status().outcome is not None:
            return
        mine = [decision for decision in collecting.decisions if decision.run_id == run.id]
        if idle > MOST_IDLE or not mine:
            raise WaitTimedOut(
                f"run {run.id} does not continue: {_standing(run)}",
                where=str(run.id),
                next="check for a paused queue, or for a step that no worker serves",
            )
        clock.advance(mine[-1].delay or timedelta(0))


def _standing(run: FlowRun) -> str:
    return ", ".join(f"{step.name} is {step.state}" for step in run.steps())


@contextmanager
def recorded(hf: Holdfast) -> Iterator[list[Event]]:
    """Record every event of this process during the block."""
    events: list[Event] = []
    hf.on("*")(events.append)
    try:
        yield events
    finally:
        hf._engine.subscribers.flush(PATIENCE)
        hf.off(events.append)


def failing(times: int, error: BaseException | type[BaseException] = RuntimeError) -> Callable[[Function], Function]:
    """Let a step's function fail on its first calls, with an error or outcome of your choice.

    `@order.step`, and below it `@failing(times=2, error=ConnectionError("away"))`. It counts the calls of this process.
    """

    def around(function: Function) -> Function:
        left = iter(range(times))
        lock = threading.Lock()

        def fail_if_due() -> None:
            with lock:
                is_due = next(left, None) is not None
            if is_due:
                raise error

        @functools.wraps(function)
        async def afunction(*args: Any, **kwargs: Any) -> Any:
            fail_if_due()
            return await function(*args, **kwargs)

        @functools.wraps(function)
        def plain(*args: Any, **kwargs: Any) -> Any:
            fail_if_due()
            return function(*args, **kwargs)

        return cast("Function", afunction if inspect.iscoroutinefunction(function) else plain)

    return around


def fail_with(error: BaseException | type[BaseException]) -> Callable[[Function], Function]:
    """Let a step's function fail on every call."""
    return failing(2**62, error)
