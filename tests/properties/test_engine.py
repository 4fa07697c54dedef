"""Random moves of workers and people on the real SQL, held against the model after each."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, TypeVar

import pytest
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Level, Outcome, Settlement
from properties import strategies as some
from properties.both import Both
from properties.claims import Asked
from properties.database import Database
from properties.subjects import Lease, Step

Thing = TypeVar("Thing")
CROWD = 10  # with more open steps the rules would seldom meet on one
MOMENT = timedelta(microseconds=1)


class Engine(RuleBasedStateMachine):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.both = Both(database)
        self.model = self.both.model

    @invariant()
    def the_rows_are_as_the_model_says(self) -> None:
        subjects = [*self.model.steps.values(), *self.model.runs.values()]
        assert self.database.told() == {subject.id: subject.told() for subject in subjects}

    @invariant()
    def no_invariant_is_broken(self) -> None:
        assert self.database.violations() == self.model.violations()

    @rule(span=some.seconds(0.5, 1, 3, 11, 61, 301))
    def wait(self, span: timedelta) -> None:
        self.both.wait(span)

    @rule(beyond=some.coins)
    @precondition(lambda self: self.model.next_moment())
    def wait_for_something(self, beyond: bool) -> None:
        """Go on to where the next step is due or the next lease over, and perhaps a moment beyond."""
        self.both.wait_until(self.model.next_moment() + beyond * MOMENT)

    @initialize(plan=some.plans(), tasks=some.few_kinds, ops=some.few_kinds)
    def begin(self, plan: list[dict[str, Any]], tasks: list[str], ops: list[str]) -> None:
        self.start_run(plan, key=None)
        for kind in tasks:
            self.start_task(kind, {}, None, timedelta(0), unique_key=None, queue=None, priority=0)
        for kind in ops:
            self.start_ops(kind, priority=0)

    @rule(
        kind=some.kinds,
        content=some.contents,
        key=some.keys,
        unique_key=some.keys,
        queue=st.none() | some.queues,
        wait=some.seconds(0, 0, 0, -5, 3, 60),
        priority=some.priorities,
    )
    def start_task(self, kind: str, content: Any, key: str | None, wait: timedelta, **options: Any) -> None:
        due = self.model.now + wait
        self.both.agree(
            calls.start_task(kind, content, key=key, due_at=due, **options),
            lambda new: self.model.start_task(new, kind, content, key=key, due=due, **options),
        )

    @rule(kind=some.kinds, priority=some.priorities)
    @precondition(lambda self: len(self.model.open()) < CROWD)
    def start_ops(self, kind: str, priority: int) -> None:
        step_id = self.database.insert_ops(kind, priority)
        self.model.start_ops(step_id, kind, priority=priority, due=self.model.now)

    @rule(plan=some.plans(), key=some.keys)
    @precondition(lambda self: len(self.model.open()) < CROWD)
    def start_run(self, plan: list[dict[str, Any]], key: str | None) -> None:
        key = key and f"run {key}"
        self.both.agree(
            calls.start_run("flow.task", "r", "flow.step", steps=plan, key=key),
            lambda new: self.model.start_run(new, plan, self.database.steps_of(new), key=key),
        )

    @rule(
        worker=some.workers,
        place=some.places,
        kinds=some.some_kinds,
        batch=some.batches,
        lease=some.lease_spans,
        commits=some.mostly,
    )
    @precondition(lambda self: self.model.due())
    def claim(self, worker: str, place: int, kinds: Any, batch: int, lease: Any, commits: bool) -> None:
        queue = pick(self.model.due(), place).queue
        self.both.claim(Asked(worker, queue, kinds, batch), lease=lease, commits=commits)

    @rule(worker=some.workers, place=some.places, batch=some.batches, outcomes=some.few_outcomes)
    @precondition(lambda self: self.model.due())
    def work(self, worker: str, place: int, batch: int, outcomes: list[Outcome]) -> None:
        """Claim, and settle as told; all beyond that is done."""
        queue = pick(self.model.due(), place).queue
        held = self.both.claim(Asked(worker, queue, None, batch))
        told = [*outcomes, *(Done() for _ in held)]
        self.both.settle([Settlement(h.step_id, h.lease_id, o) for h, o in zip(held, told, strict=False)])

    @rule(worker=some.workers, places=some.some_places, lease=some.lease_spans, by_id=some.coins)
    @precondition(lambda self: self.both.leases)
    def renew(self, worker: str, places: list[int], lease: timedelta | None, by_id: bool) -> None:
        self.both.renew(worker, [pick(self.both.leases, place) for place in places], lease=lease, by_id=by_id)

    @rule(place=some.places, level=some.levels)
    @precondition(lambda self: self.both.leases)
    def write_a_note(self, place: int, level: Level) -> None:
        self.both.note(pick(self.both.leases, place), level)

    @rule(outcomes=some.placed_outcomes, as_json=some.coins, commits=some.mostly)
    @precondition(lambda self: self.model.held())
    def settle(self, outcomes: list[tuple[int, Outcome]], as_json: bool, commits: bool) -> None:
        told = {pick(self.model.held(), place): outcome for place, outcome in outcomes}
        settlements = [Settlement(s.id, s.lease.id, o) for s, o in told.items() if s.lease]
        self.both.settle(settlements, as_json=as_json, commits=commits)

    @rule(outcomes=some.placed_outcomes, as_json=some.coins)
    @precondition(lambda self: self.both.leases)
    def settle_what_may_be_lost(self, outcomes: list[tuple[int, Outcome]], as_json: bool) -> None:
        told = {pick(self.both.leases, place): outcome for place, outcome in outcomes}
        one_a_step = {held.step_id: Settlement(held.step_id, held.lease_id, o) for held, o in told.items()}
        self.both.settle([*one_a_step.values()], as_json=as_json)

    @rule(place=some.places, lease_id=st.integers(1, 20), outcome=some.outcomes)
    def settle_by_guess(self, place: int, lease_id: int, outcome: Outcome) -> None:
        self.both.settle([Settlement(self._step(place).id, lease_id, outcome)])

    @rule(place=some.places, worker=some.workers, times=st.integers(1, 4))
    @precondition(lambda self: self.model.held())
    def fall_silent(self, place: int, worker: str, times: int) -> None:
        """Let a worker be silent past its lease and another take over, perhaps again and again."""
        step = pick(self.model.held(), place)
        for _ in range(times):
            if step.lease is not None:
                self.both.wait_until(step.lease.until + MOMENT)
                self.both.rescue(batch=20)
            if step.due is not None:
                self.both.wait_until(step.due + timedelta(seconds=1))
                self.both.claim(Asked(worker, step.queue, None, 20))

    @rule(place=some.places, outcome=some.outcomes)
    @precondition(lambda self: self.both.lost())
    def come_back_too_late(self, place: int, outcome: Outcome) -> None:
        """Let who lost its lease to another renew, note and settle, as if nothing had happened."""
        held = pick(self.both.lost(), place)
        for worker in self.database.workers:
            self.both.renew(worker, [held])
        self.both.note(held, "info")
        self.both.settle([Settlement(held.step_id, held.lease_id, outcome)])

    @rule(batch=some.batches)
    def rescue(self, batch: int) -> None:
        self.both.rescue(batch)

    @rule()
    def upkeep(self) -> None:
        (did,) = run(self.database.person, calls.upkeep())
        silent = self.model.silent()
        for step in silent:
            self.model.rescue(step)
        assert (did.rescued, did.moved, did.partitions) == (len(silent), 0, 0)

    @rule(place=some.places, wish=some.wishes)
    def wish_for_a_step(self, place: int, wish: str) -> None:
        step = self._step(place)
        self.both.agree(getattr(calls, wish)(str(step.id)), lambda _: self.model.act_on_step(step, wish))

    @rule(place=some.places)
    @precondition(lambda self: self.model.dead())
    def retry_what_failed(self, place: int) -> None:
        step = pick(self.model.dead(), place)
        self.both.agree(calls.retry(str(step.id)), lambda _: self.model.act_on_step(step, "retry"))

    @rule(place=some.places, wish=some.wishes)
    def wish_for_a_run(self, place: int, wish: str) -> None:
        it = pick([*self.model.runs.values()], place)
        self.both.agree(getattr(calls, wish)(str(it.id)), lambda _: self.model.act_on_run(it, wish))

    @rule(queue=some.queues, paused=some.seldom)
    def pause_or_resume(self, queue: str, paused: bool) -> None:
        call = calls.pause_queue(queue) if paused else calls.resume_queue(queue)
        self.both.agree(call, lambda answer: self.model.set_paused(queue, paused=paused) or answer)

    @rule(place=some.places, way=some.places, rests=some.coins)
    def move_by_hand(self, place: int, way: int, rests: bool) -> None:
        step = self._step(place)
        ways = self.model.ways_by_hand(step)
        if ways:
            lease = Lease(self.database.new_lease_id(), "hand", self.model.now + timedelta(minutes=1))
            self.model.by_hand(step, pick(ways, way), lease=lease, rests=rests)
            self.database.move_by_hand(step)

    def _step(self, place: int) -> Step:
        return pick([*self.model.steps.values()], place)


def pick(things: list[Thing], place: int) -> Thing:
    note(f"place {place}: {things[place % len(things)]}")
    return things[place % len(things)]


@pytest.mark.timeout(600)
def test_the_engine_does_what_the_model_says(dsn: str) -> None:
    database = Database(dsn)

    def engine() -> Engine:  # a failure prints a @reproduce_failure(…): it goes here
        return Engine(database)

    try:
        run_state_machine_as_test(engine)
    finally:
        database.close()
