"""For tests of flows: a run run to its end in one call, steps that fail on demand, and what was told and decided.

Nothing here takes another way than production does: a real worker claims and settles, the real coordinator decides.
Only the strategy differs: by it the test's clock is moved by the delay that was decided, where a worker would wait.
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
MOST_IDLE = 100  # passes in which nothing is settled, before a run is said to be stuck
PATIENCE = 5.0  # seconds for what is yet to be told


@dataclass(frozen=True, slots=True)
class Played:
    """A run that was run to its end, and what was told and decided on the way."""

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
        """Give what a step gave."""
        return self.run.result_of(step)

    def told(self, *names: str) -> list[str]:
        """List the names of the events, or of those with these names, in order."""
        return [event.name for event in self.events if not names or event.name in names]


@dataclass(slots=True)
class Collecting:
    """The strategy of tests: takes down when the next pass is due; who plays the run moves the clock there."""

    decisions: list[Decision] = field(default_factory=list)

    def reenqueue(self, decision: Decision) -> None:
        """Take note."""
        self.decisions.append(decision)


def run_flow(hf: Holdfast, flow: Flow, /, **context: Any) -> Played:
    """Start a run of a flow and run it to its end, here and now."""
    with recorded(hf) as events:
        run = flow.start(**context)
        return play(hf, run, events)


def play(hf: Holdfast, run: FlowRun, events: list[Event] | None = None) -> Played:
    """Work a started run to its end, here and now."""
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
                f"run {run.id} does not go on: {_standing(run)}",
                where=str(run.id),
                next="is a queue paused, or a kind unserved?",
            )
        clock.advance(mine[-1].delay or timedelta(0))


def _standing(run: FlowRun) -> str:
    return ", ".join(f"{step.name} is {step.state}" for step in run.steps())


@contextmanager
def recorded(hf: Holdfast) -> Iterator[list[Event]]:
    """Record every event of this process while the block runs."""
    events: list[Event] = []
    hf.on("*")(events.append)
    try:
        yield events
    finally:
        hf._engine.subscribers.flush(PATIENCE)
        hf.off(events.append)


def failing(times: int, error: BaseException | type[BaseException] = RuntimeError) -> Callable[[Function], Function]:
    """Let a step's function fail the first times that it is called, with an error or outcome of your choice.

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
    """Let a step's function fail each time that it is called."""
    return failing(2**62, error)
