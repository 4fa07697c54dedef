"""Calls that wait for more steps. The model knows when each step was claimed, and so when its call has to begin."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, LiteralString
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast import Batch
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Fail, Release, Retry, Settlement
from holdfast.worker.attempt import Attempt, BatchCall, Unit
from holdfast.worker.lanes.threads import Threads
from kernel.plans import halt, install
from kernel.steps import stage
from properties.database import Database
from properties.still_worker import FIELDS, LEASE, SIZES, SLOTS, Choices, Item, StandingLoop, StillWorker

TICK = 0.5  # seconds between two looks of the worker; waits are multiples of it
LEARNS_WITHIN = 1.0  # seconds after a pause in which a call may still begin
MOST_OPEN = 2 * SLOTS  # calls that wait
WAITS = (4.0, 4.0, 10.0, 0.0)
RUNNABLE = "select id from holdfast.steps where due_at is not null or lease_id is not null"
HALTED = "select id from holdfast.runs where finished_at is not null or halt = 'stopped'"
ENDED = "select lease_id from holdfast.journal where event in ('succeeded', 'failed', 'retried')"
places = st.integers(0, 10**6)


@dataclass
class Taken:
    """A step that the worker claimed."""

    group: tuple[str, str | None, str | None]  # kind, tenant, key
    claimed_at: float
    begins_until: float  # if it is the first of its call
    is_alone: bool
    has_begun: bool = False  # its call was passed to the lane
    calls: int = 0  # of the handler


class Waits(RuleBasedStateMachine):
    def __init__(self, database: Database, loop: StandingLoop) -> None:
        super().__init__()
        self.database = database
        self.db = database.person
        self.loop = loop
        self.began = database.wipe() - timedelta(seconds=loop.at)
        install(self.db, 100)
        run(self.db, calls.define_policy("often", tries=1000, base=timedelta(0), jitter=0))
        for kind, most in SIZES.items():
            self._define(kind, most, FIELDS[kind])
        self.choices = Choices(dict.fromkeys(SIZES, 4.0))
        self.outcome = "done"
        self.taken: dict[int, Taken] = {}  # by lease number
        self.lost: set[int] = set()  # leases that the worker knows to be lost
        self.runs: dict[UUID, float | None] = {}  # since when each is paused or stopped
        self.worker = self._new_worker()

    def _define(self, kind: str, batch: int | None = None, by: str | None = None) -> None:
        self.db.execute("delete from holdfast.kinds where kind = %s", [kind])  # a kind keeps its batch otherwise
        lease = timedelta(seconds=LEASE)
        run(self.db, calls.define_kind(kind, policy="often", batch=batch, batch_by=by, lease=lease))

    def _new_worker(self) -> StillWorker:
        worker = StillWorker(self.loop, self.db.info.dsn, self.choices, self._handler)
        worker.lane.add = self._add  # type: ignore[method-assign]
        return worker

    @initialize(
        waits=st.tuples(*[st.sampled_from(WAITS)] * 2),
        lease=st.sampled_from([None, None, 12.0]),
        burst=st.sampled_from([False, False, False, True]),
    )
    def begin(self, waits: tuple[float, float], lease: float | None, burst: bool) -> None:
        """A worker with a lease of its own, in which a longer wait does not fit, and one that bursts."""
        self.worker.close()
        self.choices = Choices(dict(zip(SIZES, waits, strict=True)), lease, burst)
        self.worker = self._new_worker()

    @invariant()
    def the_database_is_sound(self) -> None:
        assert {v for v in self.database.violations() if v[0] != "lease_was_rescued"} == set()

    @invariant()
    def leases_of_waiting_calls_are_kept(self) -> None:
        waiting = [lease_id for lease_id, step in self.taken.items() if not step.has_begun]
        query = "select count(*) from holdfast.steps where lease_id = any (%s) and lease_until <= holdfast.clock()"
        assert self.db.execute(query, [waiting]).fetchone() == (0,), "a waiting call lost a lease"

    @invariant()
    def no_more_calls_wait_than_may(self) -> None:
        assert len(self._waiting()) <= MOST_OPEN

    @rule(kind=st.sampled_from([*SIZES]), tenant=st.sampled_from("ttu"), keys=st.text("xy", min_size=1, max_size=3))
    def start(self, kind: str, tenant: str, keys: str) -> None:
        for key in keys:
            run(self.db, calls.start_task(kind, {"key": key}, tenant=tenant))
        self.claim()

    @rule(kind=st.sampled_from([*SIZES]), tenant=st.sampled_from("tu"), keys=st.text("xy", min_size=1, max_size=3))
    def start_without_a_batch(self, kind: str, tenant: str, keys: str) -> None:
        """Steps are started while their kind has no batch yet, so they have no key."""
        self._define(kind)
        for key in keys:
            run(self.db, calls.start_task(kind, {"key": key}, tenant=tenant))
        self._define(kind, SIZES[kind], FIELDS[kind])
        self.claim()

    @rule(keys=st.text("xy", min_size=1, max_size=3))
    @precondition(lambda self: len(self.runs) < 3)
    def start_run(self, keys: str) -> None:
        run_id = UUID(str(run(self.db, calls.start_run("test.rush", "plan", "test.item"))[0]))
        stage(self.db, (("by", f'{{"key": "{key}"}}') for key in keys), run_id=run_id, machine="test.item")
        self.runs[run_id] = None
        self.claim()

    @rule()
    def claim(self) -> None:
        self.worker.claim()
        self._see(self.worker.held.values())

    @rule(ticks=st.sampled_from([1, 2, 6, 20]))
    def wait(self, ticks: int) -> None:
        """Time passes: calls begin, leases are renewed, and steps of paused runs are released."""
        for _ in range(ticks):
            self._set_clock(self.loop.at + TICK)
            self.worker.tick()
            self.lost |= {lease_id for lease_id, each in self.worker.held.items() if each.is_lost}
        self.worker.settle()

    @rule(most=st.integers(1, 4), outcome=st.sampled_from(["done", "fail", "retry", "raise"]))
    def call(self, most: int, outcome: str) -> None:
        """Handlers run: as many calls as that, each with one outcome for its steps."""
        self.outcome = outcome
        self.worker.call(most)

    @rule(place=places)
    def cancel(self, place: int) -> None:
        if held := self._held_in_database("and run_id is null"):  # in this machine no user may close a run
            run(self.db, calls.cancel(str(held[place % len(held)][0])))

    @rule(place=places)
    def take_over(self, place: int) -> None:
        """A step loses its lease, and is due again."""
        if held := self._held_in_database():
            step_id, lease_id = held[place % len(held)]
            run(self.db, calls.settle_steps([Settlement(step_id, lease_id, Release())]))

    @rule(place=places, what=st.sampled_from(["pause", "resume", "stop"]))
    @precondition(lambda self: bool(self.runs))
    def halt(self, place: int, what: str) -> None:
        over = {run_id for (run_id,) in self.db.execute(HALTED)}
        if not (run_ids := [run_id for run_id in self.runs if run_id not in over]):
            return
        run_id = run_ids[place % len(run_ids)]
        halt(self.db, what, run_id)
        halted_at = self.runs[run_id]
        self.runs[run_id] = None if what == "resume" else self.loop.at if halted_at is None else halted_at

    @rule()
    @precondition(lambda self: bool(self.worker.held))
    def freeze(self) -> None:
        """The worker stands still until its leases have run out, and others may take its steps."""
        self._set_clock(self.loop.at + LEASE + 1)
        for step in self.taken.values():
            step.has_begun = True  # or begins too late, and then serves no step
        run(self.db, calls.rescue_steps(batch=None))
        served = sum(step.calls for step in self.taken.values())
        self.worker.begin_what_is_due()
        self.worker.call()
        assert served == sum(step.calls for step in self.taken.values()), "a handler began without its lease"

    @rule(burst=st.booleans())
    def drain(self, burst: bool) -> None:
        """The worker stops, and another one comes."""
        begun = sum(step.has_begun for step in self.taken.values())
        self.worker.drain()
        assert begun == sum(step.has_begun for step in self.taken.values()), "a draining worker begins a call"
        assert not self.worker.held, "a draining worker waits"
        self.worker.close()
        self.choices.burst = burst
        self.worker = self._new_worker()

    def teardown(self) -> None:
        """At rest nothing that could run waits, and each outcome was recorded once and for its own step."""
        try:
            for (run_id,) in self.db.execute("select id from holdfast.runs where halt = 'paused'").fetchall():
                halt(self.db, "resume", run_id)
                self.runs[run_id] = None
            self.outcome = "done"
            for _ in range(100):
                self._work_off()
                if not self.db.execute(RUNNABLE).fetchall():
                    break
                self.wait(1)  # no longer, or steps that wait for a handler are released
            assert self.db.execute(RUNNABLE).fetchall() == [], "something runnable waits"
            self._compare_outcomes()
        finally:
            self.worker.close()

    def _work_off(self) -> None:
        """Claim and serve until a claim brings no more."""
        seen = -1
        while seen < len(self.taken):
            seen = len(self.taken)
            self.claim()
            self.worker.call()

    def _compare_outcomes(self) -> None:
        rows = self.db.execute("select id, result from holdfast.steps where result is not null").fetchall()
        assert all(result == {"of": step_id} for step_id, result in rows), "an outcome of another step"
        ended = Counter(lease_id for (lease_id,) in self.db.execute(ENDED))
        served = Counter({lease_id: step.calls for lease_id, step in self.taken.items() if step.calls})
        assert set(ended.values()) | set(served.values()) <= {1}, (
            "an outcome was recorded twice, or a step served twice"
        )
        assert ended.keys() <= served.keys(), "an outcome of a step that was not served"

    def _set_clock(self, at: float) -> None:
        self.loop.at = at
        self.database.set_clock(self.began + timedelta(seconds=at))

    def _held_in_database(self, which: LiteralString = "") -> list[tuple[int, int]]:
        query = f"select id, lease_id from holdfast.steps where lease_id = any (%s) {which} order by id"
        return self.db.execute(query, [list(self.worker.held)]).fetchall()

    def _handler(self, batch: Batch, items: list[Item]) -> list[Any]:
        for ctx in batch.steps:
            self.taken[ctx.lease_id].calls += 1
        assert len(items) == len(batch.steps)
        match self.outcome:
            case "done":
                return [{"of": ctx.step_id} for ctx in batch.steps]
            case "raise":
                raise ValueError("odd")
        return [Fail("no") if self.outcome == "fail" else Retry("busy")] * len(items)

    def _see(self, attempts: Iterable[Attempt]) -> None:
        """Learn of claimed steps, and until when a call has to begin that they are the first of."""
        for step in [each.step for each in attempts if each.step.lease_id not in self.taken]:
            longest = (self.choices.lease or LEASE) / 3
            is_alone = bool(step.is_alone) or step.batch_key is None
            wait = 0.0 if self.choices.burst or is_alone else min(self.choices.waits[step.kind], longest)
            group = (step.kind, step.tenant, step.batch_key)
            self.taken[step.lease_id] = Taken(group, self.loop.at, self.loop.at + wait, is_alone)

    def _add(self, units: list[Unit]) -> None:
        """Take what the worker passes to its lane."""
        self._see(self.worker.held.values())
        begun = []
        for unit in units:
            assert isinstance(unit, BatchCall)
            steps = [self.taken[each.step.lease_id] for each in unit.attempts]
            if not all(step.has_begun for step in steps):  # else it was withdrawn from the lane and comes back
                begun.append((unit, steps))
        for step in [step for _, steps in begun for step in steps]:
            step.has_begun = True
        for unit, steps in begun:
            self._check(unit, steps)
        Threads.add(self.worker.lane, units)

    def _waiting(self) -> dict[tuple[str, str | None, str | None], float]:
        """Return the calls that wait, and since when."""
        held = [self.taken[each.step.lease_id] for each in self.worker.held.values() if each.outcome is None]
        waiting = [step for step in held if not step.has_begun and not step.is_alone]
        return {step.group: min(s.claimed_at for s in waiting if s.group == step.group) for step in waiting}

    def _check(self, call: BatchCall, steps: list[Taken]) -> None:
        now = self.loop.at
        first = min(steps, key=lambda step: step.claimed_at)
        assert {step.group for step in steps} == {first.group}
        assert len(steps) == 1 or not any(step.is_alone for step in steps)
        assert len(steps) <= SIZES[first.group[0]]
        assert now <= first.begins_until, "a call waited too long"
        for each in call.attempts:
            halted_at = self.runs.get(each.step.run_id) if each.step.run_id is not None else None
            assert halted_at is None or now <= halted_at + LEARNS_WITHIN, "a call begins while its run is halted"
        if sum(each.step.lease_id not in self.lost for each in call.attempts) == SIZES[first.group[0]]:
            return
        if now < first.begins_until:
            waiting = self._waiting()
            assert len(waiting) == MOST_OPEN, "a call that was not full began before its time"
            assert first.claimed_at <= min(waiting.values()), "a call began for a place that an older one had"
        for each in self.worker.held.values() if not first.is_alone else ():
            other = self.taken[each.step.lease_id]
            waits = each.outcome is None and each.step.lease_id not in self.lost and not other.is_alone
            assert other.has_begun or not waits or other.group != first.group, "a key that fits a call was split"
