"""Each event of the catalogue happens in a scenario, in order, with the payload that the catalogue says."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast import Ctx, Fail, Holdfast, Retry
from holdfast.flow.decisions import Decision
from holdfast.flow.define import Flow
from holdfast.flow.events import CATALOGUE
from holdfast.testing import Clock, drain, recorded, run_flow

pytestmark = pytest.mark.one_server


class DeafAtFirst:
    """A strategy that raises when it is called for the first time."""

    def __init__(self) -> None:
        self.calls: list[Decision] = []

    def reenqueue(self, decision: Decision) -> None:
        self.calls.append(decision)
        if len(self.calls) == 1:
            raise ConnectionError("no scheduler")


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    order = hf.flow("order")

    @order.step
    def reserve(ctx: Ctx, order_id: int) -> int:
        if order_id == 13:
            raise Fail("sold out")
        if ctx.attempt == 1:
            raise Retry("busy", after=5)
        return order_id

    @order.step(after=reserve, retry=2)
    def charge(ctx: Ctx, order_id: int) -> int:
        if ctx.attempt <= 2:
            raise ConnectionError("the bank is away")
        return order_id

    return order


def test_every_event_of_the_catalogue_is_observed_and_no_other(hf: Holdfast, order: Flow, clock: Clock) -> None:
    """T-89, T-147: catalogue against observed, names and payloads."""
    hf.coordinator(strategy=DeafAtFirst())
    with recorded(hf) as told:
        dead, broken, dropped = order.start(order_id=1), order.start(order_id=13), order.start(order_id=3)
        dropped.cancel("not wanted")
        for _ in range(3):
            drain(hf)
            clock.advance(timedelta(minutes=1))
        dead.retry("the bank is back")
        broken.resolve("taken from the shelf", step="reserve", result=13)
        drain(hf)

    assert {event.name for event in told} == set(CATALOGUE)
    for event in told:
        fields = CATALOGUE[event.name].fields
        assert set(event.payload) == set(fields), event.name
        wrong = {name for name, kind in fields.items() if not isinstance(event.payload[name], kind)}
        assert wrong == set(), event
        assert (event.step_id is not None) == event.name.startswith("flow.step.")


def test_the_phases_of_a_task_are_told_in_order(hf: Holdfast) -> None:
    """T-02, T-05, T-06, T-28: start, discovery, execution, finalisation; one pair of finalisation a pass."""
    order = hf.flow("order")

    @order.step
    def reserve() -> int:
        return 1

    @order.step(after=reserve)
    def charge(reserve: int) -> int:
        return reserve

    played = run_flow(hf, order)
    told = [name for name in played.told() if "reenqueue" not in name]  # by the strategy's own thread

    finalization = ["flow.workflow.finalization_started", "flow.workflow.finalization_completed"]
    execution = ["flow.step.execution_requested", "flow.step.before_handle", "flow.step.completed"]
    assert told == [
        "flow.run.initialized", "flow.run.started",
        "flow.workflow.viable_steps_discovered", *execution, *finalization,
        "flow.workflow.viable_steps_discovered", *execution, "flow.workflow.no_viable_steps",
        finalization[0], "flow.run.completed", finalization[1],
    ]  # fmt: skip
    assert played.told(*(name for name in CATALOGUE if "reenqueue" in name)) == [
        "flow.workflow.reenqueue_started",
        "flow.workflow.reenqueue_requested",
    ]


def test_steps_that_are_viable_together_are_discovered_together(hf: Holdfast) -> None:
    """T-26, C-94: a diamond in three iterations; what a claim takes is what was viable."""
    diamond = hf.flow("diamond")
    diamond.step(name="a")(lambda: 1)
    diamond.step(name="b", after="a")(lambda: 1)
    diamond.step(name="c", after="a")(lambda: 1)
    diamond.step(name="d", after=["b", "c"])(lambda: 1)

    played = run_flow(hf, diamond)

    found = [event.payload["steps"] for event in played.events if event.name == "flow.workflow.viable_steps_discovered"]
    assert found == [["a"], ["b", "c"], ["d"]]


def test_a_retry_is_the_same_execution_with_the_next_attempt_number(hf: Holdfast, order: Flow) -> None:
    """T-72, T-73, T-74: attempts 1, 2, 3 of the one that fails; the others are not executed again."""
    again = hf.flow("again")

    @again.step
    def once() -> int:
        return 1

    @again.step(after=once)
    def thrice(ctx: Ctx) -> int:
        if ctx.attempt < 3:
            raise ConnectionError("away")
        return ctx.attempt

    played = run_flow(hf, again)

    begun = [event for event in played.events if event.name == "flow.step.before_handle"]
    assert [(event.payload["step"], event.payload["attempt"]) for event in begun] == [
        ("once", 1), ("thrice", 1), ("thrice", 2), ("thrice", 3),
    ]  # fmt: skip
    assert [e.payload["delay"] for e in played.events if e.name == "flow.step.backoff"] == [
        timedelta(seconds=1),
        timedelta(seconds=2),
    ]


def test_finalisation_is_told_with_the_context_that_decided_it(hf: Holdfast, order: Flow, clock: Clock) -> None:
    """T-56, T-82: the row of flow.get_task_execution_context."""
    clock.freeze()
    with recorded(hf) as told:
        order.start(order_id=13)
        drain(hf)

    (started,) = [event for event in told if event.name == "flow.workflow.finalization_started"]
    (completed,) = [event for event in told if event.name == "flow.workflow.finalization_completed"]
    context = started.payload["context"]
    assert (context["execution_status"], context["failed_steps"], context["state"]) == (
        "blocked_by_failures",
        1,
        "error",
    )
    assert (completed.payload["action"], completed.payload["delay"]) == ("fail", None)


def test_a_task_that_is_done_again_from_a_step_says_of_which_it_is(hf: Holdfast) -> None:
    again = hf.flow("again")
    again.step(name="a")(lambda: 1)
    first = run_flow(hf, again).run

    with recorded(hf) as told:
        second = first.retry_from("a", "once more")

    assert [(event.name, event.run_id, event.payload["retry_of"]) for event in told] == [
        ("flow.run.initialized", second.id, first.id)
    ]
