"""Calls that wait for more steps (`batch_wait`): random arrivals, pauses, cancels and stops, held against a model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.worker import calls, claimer
from holdfast.worker.calls import Calls
from holdfast.worker.claimer import Claimer
from properties.database import Database
from properties.still_worker import StandingLoop, replace_lanes_and_clocks
from properties.wait_machine import MOST_OPEN, Waits

pytestmark = [pytest.mark.one_server, pytest.mark.timeout(600)]
Patch = Callable[[pytest.MonkeyPatch], None]
Story = Callable[[Waits], None]


@pytest.fixture
def machine(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Waits]]:
    database, loop = Database(dsn), StandingLoop()
    replace_lanes_and_clocks(monkeypatch, loop)
    yield lambda: Waits(database, loop)
    loop.close()
    database.close()


@pytest.mark.parametrize("examples", [25, pytest.param(500, marks=pytest.mark.long)], ids=["few", "many"])
def test_no_call_waits_too_long_and_no_key_is_split(machine: Callable[[], Waits], examples: int) -> None:
    """Whatever arrives, is paused, cancelled or lost while calls wait for more steps."""
    chosen = settings(max_examples=examples, stateful_step_count=30, phases=[Phase.explicit, Phase.generate])
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]


def one_by_one(machine: Waits) -> None:
    """Steps of a key arrive during the wait."""
    for _ in range(2):
        machine.start("by", "t", "x")
        machine.wait(6)
    machine.wait(6)


def until_full(machine: Waits) -> None:
    """The third step fills the call; the fourth begins a new one, whose wait is its own."""
    machine.start("by", "t", "xx")
    machine.wait(6)
    machine.start("by", "t", "xx")
    machine.wait(20)


def with_a_lost_step(machine: Waits) -> None:
    """A step that was cancelled while it waited does not fill a call."""
    machine.start("by", "t", "xx")
    machine.cancel(0)
    machine.wait(6)
    machine.start("by", "t", "x")
    machine.wait(20)


def under_a_short_lease(machine: Waits) -> None:
    """A worker has a shorter lease than the kind: its calls wait for a third of it."""
    machine.begin((10.0, 10.0), 12.0, burst=False)
    machine.start("by", "t", "x")
    machine.wait(20)


def for_long(machine: Waits) -> None:
    """A call waits for a third of its lease."""
    machine.begin((10.0, 10.0), None, burst=False)
    machine.start("by", "t", "x")
    machine.wait(20)


def in_a_burst(machine: Waits) -> None:
    machine.begin((4.0, 4.0), None, burst=True)
    machine.start("by", "t", "x")
    assert machine.taken
    assert all(step.has_begun for step in machine.taken.values())


def while_it_drains(machine: Waits) -> None:
    machine.start("by", "t", "x")
    machine.drain(burst=False)


def in_a_paused_run(machine: Waits) -> None:
    """The worker does nothing else, and would sleep."""
    machine.begin((10.0, 10.0), None, burst=False)
    machine.start_run("x")
    machine.halt(0, "pause")
    machine.wait(20)


def before_the_kind_had_a_batch(machine: Waits) -> None:
    """Steps without a key share no call, neither with others nor across tenants."""
    machine.start_without_a_batch("by", "t", "xx")
    machine.start_without_a_batch("by", "u", "x")
    machine.start("by", "t", "x")
    machine.wait(20)


def of_more_keys_than_may_wait(machine: Waits) -> None:
    """Each further one makes the oldest call begin, and steps that fill a call that waits are claimed too."""
    machine.begin((10.0, 10.0), None, burst=False)
    for tenant in "tuvw":
        machine.start("by", tenant, "xy")
        machine.wait(1)
    assert [step.has_begun for step in machine.taken.values()] == [True] * 2 + [False] * 6
    machine.start("by", "u", "xx")
    assert [step.has_begun for step in machine.taken.values()][2] is True, "the full call did not begin"
    machine.no_more_calls_wait_than_may()


STORIES: list[Story] = [
    one_by_one, until_full, with_a_lost_step, under_a_short_lease, for_long, in_a_burst, while_it_drains,
    in_a_paused_run, before_the_kind_had_a_batch, of_more_keys_than_may_wait,
]  # fmt: skip


def from_the_last_step(patch: pytest.MonkeyPatch) -> None:
    usual = Calls._wait

    def wait(self: Calls, key: Any) -> None:
        if (call := self._open[key]).timer is not None:
            call.timer.cancel()
            call.timer = asyncio.get_running_loop().call_later(4.0, self._time_is_over, key)
            return
        usual(self, key)

    patch.setattr(Calls, "_wait", wait)


def from_the_first_step_of_the_call_before(patch: pytest.MonkeyPatch) -> None:
    usual = Calls._wait

    def wait(self: Calls, key: Any) -> None:
        call = self._open[key]
        if call.first is not None and call.attempts:
            call.first = call.attempts[0]
        usual(self, key)

    patch.setattr(Calls, "_wait", wait)


def a_full_call_waits(patch: pytest.MonkeyPatch) -> None:
    usual = Calls.add

    def add(self: Calls, attempts: Any) -> None:
        ready: list[Any] = []
        dispatch, self._dispatch = self._dispatch, ready.extend
        usual(self, attempts)
        self._dispatch = dispatch
        if ready:
            asyncio.get_running_loop().call_later(4.0, dispatch, ready)

    patch.setattr(Calls, "add", add)


def a_worker_that_ends_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Calls, "withdraw", lambda _self: [])


def a_burst_waits(patch: pytest.MonkeyPatch) -> None:
    usual = Calls.__init__

    def init(self: Calls, *given: Any, waits: bool, most_open: int) -> None:
        usual(self, *given, waits=True, most_open=most_open)

    patch.setattr(Calls, "__init__", init)


def lost_steps_fill_calls(patch: pytest.MonkeyPatch) -> None:
    usual = Calls.add

    def add(self: Calls, attempts: Any) -> None:
        lost = [each for call in self._open.values() for each in call.attempts if each.is_lost]
        for each in lost:
            each.is_lost = False
        usual(self, attempts)
        for each in lost:
            each.is_lost = True

    patch.setattr(Calls, "add", add)


def longer_than_a_third_of_the_lease(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(calls, "MOST_OF_LEASE", 1.0)


def no_look_at_runs_of_waiting_calls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Calls, "may_be_halted", False)


def no_step_of_a_paused_run_is_withdrawn(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Calls, "withdraw_runs", lambda _self, _run_ids: [])


def steps_without_a_key_share_calls(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Calls, "_may_wait", lambda self, first: self._waits and not first.step.is_alone)


def any_number_of_calls_waits(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(claimer, "OPEN_PER_SLOT", 1000)


def nothing_is_claimed_while_all_places_are_taken(patch: pytest.MonkeyPatch) -> None:
    usual = Claimer.room
    patch.setattr(Claimer, "room", lambda self: 0 if len(self._calls._open) >= MOST_OPEN else usual(self))


def the_newest_call_begins(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Calls, "_oldest", lambda self: [*self._open][-1])


MISTAKES: list[tuple[Patch, Story]] = [
    (from_the_last_step, one_by_one),
    (from_the_first_step_of_the_call_before, until_full),
    (a_full_call_waits, until_full),
    (a_worker_that_ends_waits, while_it_drains),
    (a_burst_waits, in_a_burst),
    (lost_steps_fill_calls, with_a_lost_step),
    (longer_than_a_third_of_the_lease, under_a_short_lease),
    (no_look_at_runs_of_waiting_calls, in_a_paused_run),
    (no_step_of_a_paused_run_is_withdrawn, in_a_paused_run),
    (steps_without_a_key_share_calls, before_the_kind_had_a_batch),
    (any_number_of_calls_waits, of_more_keys_than_may_wait),
    (nothing_is_claimed_while_all_places_are_taken, of_more_keys_than_may_wait),
    (the_newest_call_begins, of_more_keys_than_may_wait),
]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.__name__)
def test_the_story_holds(machine: Callable[[], Waits], story: Story) -> None:
    played(machine(), story)


@pytest.mark.parametrize(("mistake", "story"), MISTAKES, ids=lambda one: one.__name__)
def test_a_mistake_is_noticed(
    machine: Callable[[], Waits], mistake: Patch, story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    mistake(monkeypatch)

    with pytest.raises(AssertionError):
        played(machine(), story)


def played(machine: Waits, story: Story) -> None:
    """Play a story, with the invariants at its end."""
    try:
        story(machine)
        machine.leases_of_waiting_calls_are_kept()
        machine.the_database_is_sound()
    finally:
        machine.teardown()
