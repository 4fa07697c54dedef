"""Random moves of workers and people on the real SQL, held against the model after each."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, NamedTuple, TypeVar

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
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast.errors import RefusedError
from holdfast.kernel import calls
from holdfast.kernel.calls import Call
from holdfast.kernel.db import run
from holdfast.models import Done, Level, Outcome, SettledStep, Settlement
from properties import strategies as some
from properties.claims import Asked, Claims
from properties.database import Database
from properties.model import Model
from properties.subjects import Lease, Step

Thing = TypeVar("Thing")
CROWD = 10  # with more open steps the rules would seldom meet on one


class Held(NamedTuple):
    """A lease that a worker got, and that may be lost by now."""

    step_id: int
    lease_id: int
    worker: str


class Engine(RuleBasedStateMachine):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.person = database.person
        self.model = Model(database.wipe(), database.login)
        self.claims = Claims()
        self.leases: list[Held] = []  # all that were ever given out

    @invariant()
    def the_rows_are_as_the_model_says(self) -> None:
        assert self.database.steps() == {step.id: step.told() for step in self.model.steps.values()}
        assert self.database.runs() == {run.id: run.told() for run in self.model.runs.values()}

    @invariant()
    def no_invariant_is_broken(self) -> None:
        assert self.database.violations() == self.model.violations()

    @rule(span=some.seconds(0.5, 1, 3, 11, 61, 301))
    def advance_the_clock(self, span: timedelta) -> None:
        self.model.now += span
        self.database.set_clock(self.model.now)

    @rule(beyond=some.coins)
    @precondition(lambda self: self.model.next_moment())
    def wait_for_something(self, beyond: bool) -> None:
        """Go on to where the next step is due or the next lease over, and perhaps a moment beyond."""
        self.model.now = self.model.next_moment() + timedelta(microseconds=beyond)
        self.database.set_clock(self.model.now)

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
        self._agree(
            self.person,
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
        self._agree(
            self.person,
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
        self._claim(Asked(worker, queue, kinds, batch), lease=lease, commits=commits)

    @rule(worker=some.workers, place=some.places, batch=some.batches, outcomes=some.few_outcomes)
    @precondition(lambda self: self.model.due())
    def work(self, worker: str, place: int, batch: int, outcomes: list[Outcome]) -> None:
        """Claim, and settle as told; all beyond that is done."""
        queue = pick(self.model.due(), place).queue
        held = self._claim(Asked(worker, queue, None, batch))
        told = [*outcomes, *(Done() for _ in held)]
        self._settle([Settlement(h.step_id, h.lease_id, o) for h, o in zip(held, told, strict=False)])

    @rule(worker=some.workers, places=some.some_places, lease=some.lease_spans, by_id=some.coins)
    @precondition(lambda self: self.leases)
    def renew(self, worker: str, places: list[int], lease: timedelta | None, by_id: bool) -> None:
        held = [pick(self.leases, place) for place in places]
        lease_ids = [h.lease_id for h in held]
        step_ids = [h.step_id for h in held] if by_id else None
        call = calls.renew_leases(worker, lease_ids, lease=lease, step_ids=step_ids)
        assert set(run(self.database.workers[worker], call)) == self.model.renew(worker, lease_ids, lease)

    @rule(place=some.places, level=some.levels)
    @precondition(lambda self: self.leases)
    def write_a_note(self, place: int, level: Level) -> None:
        held = pick(self.leases, place)
        self._agree(
            self.database.workers[held.worker],
            calls.note(held.step_id, held.lease_id, level, "a word"),
            lambda number: self.model.note(held.step_id, held.lease_id, level) or number,
        )

    @rule(outcomes=some.placed_outcomes, as_json=some.coins, commits=some.mostly)
    @precondition(lambda self: self.model.held())
    def settle(self, outcomes: list[tuple[int, Outcome]], as_json: bool, commits: bool) -> None:
        told = {pick(self.model.held(), place): outcome for place, outcome in outcomes}
        settlements = [Settlement(s.id, s.lease.id, o) for s, o in told.items() if s.lease]
        self._settle(settlements, as_json=as_json, commits=commits)

    @rule(outcomes=some.placed_outcomes, as_json=some.coins)
    @precondition(lambda self: self.leases)
    def settle_what_may_be_lost(self, outcomes: list[tuple[int, Outcome]], as_json: bool) -> None:
        told = {pick(self.leases, place): outcome for place, outcome in outcomes}
        one_a_step = {held.step_id: Settlement(held.step_id, held.lease_id, o) for held, o in told.items()}
        self._settle([*one_a_step.values()], as_json=as_json)

    @rule(place=some.places, lease_id=st.integers(1, 20), outcome=some.outcomes)
    def settle_by_guess(self, place: int, lease_id: int, outcome: Outcome) -> None:
        self._settle([Settlement(self._step(place).id, lease_id, outcome)])

    @rule(place=some.places, batch=some.batches)
    @precondition(lambda self: self.model.held())
    def fall_silent_and_rescue(self, place: int, batch: int) -> None:
        lease = pick(self.model.held(), place).lease
        if lease is not None:
            self.advance_the_clock(max(timedelta(0), lease.until - self.model.now) + timedelta(microseconds=1))
        self.rescue(batch)

    @rule(batch=some.batches)
    def rescue(self, batch: int) -> None:
        silent = self.model.silent()
        rescued = run(self.person, calls.rescue_steps(batch=batch))
        untils = [lease.until for r in rescued if (lease := self.model.steps[r.step_id].lease)]
        assert sorted(untils) == [s.lease.until for s in silent[:batch] if s.lease]
        for r in rescued:
            assert (r.step_id, r.event, r.state) == self.model.rescue(self.model.steps[r.step_id])

    @rule()
    def upkeep(self) -> None:
        (did,) = run(self.person, calls.upkeep())
        silent = self.model.silent()
        for step in silent:
            self.model.rescue(step)
        assert (did.rescued, did.moved, did.partitions) == (len(silent), 0, 0)

    @rule(place=some.places, wish=some.wishes)
    def wish_for_a_step(self, place: int, wish: str) -> None:
        step = self._step(place)
        self._agree(self.person, getattr(calls, wish)(str(step.id)), lambda _: self.model.wish_for_step(step, wish))

    @rule(place=some.places, wish=some.wishes)
    def wish_for_a_run(self, place: int, wish: str) -> None:
        it = pick([*self.model.runs.values()], place)
        self._agree(self.person, getattr(calls, wish)(str(it.id)), lambda _: self.model.wish_for_run(it, wish))

    @rule(queue=some.queues, paused=some.seldom)
    def pause_or_resume(self, queue: str, paused: bool) -> None:
        call = calls.pause_queue(queue) if paused else calls.resume_queue(queue)
        self._agree(self.person, call, lambda answer: self.model.set_paused(queue, paused=paused) or answer)

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

    def _claim(self, asked: Asked, *, lease: timedelta | None = None, commits: bool = True) -> list[Held]:
        connection = self.database.workers[asked.worker]
        due = self.model.due_for(asked.queue, asked.kinds)
        parked = self.database.parked()
        with connection.transaction(force_rollback=not commits):
            claimed = run(connection, calls.claim_steps(*asked[:3], batch=asked.batch, lease=lease))
        self.claims.check(asked, due, [self.model.steps[c.step_id] for c in claimed], now=self.model.now)
        if not commits:
            return []
        self.claims.remember(asked, now=self.model.now)
        self.claims.check_parked([self.model.steps[i] for i in self.database.parked() - parked], now=self.model.now)
        for c in sorted(claimed, key=lambda c: c.lease_id):
            step = self.model.steps[c.step_id]
            self.model.claim(step, c.lease_id, asked.worker, lease)
            assert (c.run_id, c.kind, c.attempt, c.cursor) == (step.run, step.kind, step.attempt, step.cursor)
        held = [Held(c.step_id, c.lease_id, asked.worker) for c in claimed]
        self.leases += held
        return held

    def _settle(self, settlements: list[Settlement], *, as_json: bool = False, commits: bool = True) -> None:
        call = calls.settle_steps(settlements)
        if as_json:
            call = Call("settle_steps", SettledStep, {"outcomes": Jsonb([calls.as_json(s) for s in settlements])})
        with self.person.transaction(force_rollback=not commits):
            settled = run(self.person, call)
        if commits:
            assert {(s.step_id, s.event, s.state) for s in settled} == self.model.settle(settlements)

    def _agree(self, connection: Connection[Any], call: Call[Any], predicted: Callable[[Any], Any]) -> None:
        """Make a call, and let the model say what it gives or how it is refused."""
        try:
            (answer,) = run(connection, call)
        except RefusedError as refusal:
            with pytest.raises(type(refusal)):
                predicted(None)
        else:
            assert predicted(answer) == answer


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
