"""Random pauses, stops, retries and kills of runs with a window, held against a model that counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock, Template
from kernel.plans import draft, halt, install, queue
from kernel.steps import DB, claim, rescue, settlement
from properties.database import wipe

places = st.integers(0, 10**6)
NOW = timedelta(0)
OUTCOMES: list[Outcome] = [Done(), Done(), Done(), Fail("no"), Retry("e", after=NOW), Snooze(after=NOW), Release()]
STEPS = """
select s.run_id, s.id, s.state, s.lease_id is not null, s.finished_at is not null, s.due_at <= holdfast.clock()
  from holdfast.steps s order by s.id
"""
RUNS = """
select id, state, halt, live, to_admit, total, succeeded, failed, cancelled, finished_at is not null, moving
  from holdfast.runs
"""


class Model:
    """What a run must look like: who halted it, and what became of each step."""

    def __init__(self, total: int) -> None:
        self.halt: str | None = None
        self.is_queued = self.is_cancelled = False
        self.total = total
        self.done: set[int] = set()
        self.failed: set[int] = set()
        self.held: set[int] = set()


class Plans(RuleBasedStateMachine):
    def __init__(self, db: DB) -> None:
        super().__init__()
        self.db = db
        wipe(db)
        db.execute("update holdfast_test.dials set stands_at = null, ahead = '0'")
        install(db, 4)
        self.plans: dict[UUID, Model] = {}
        self.held: list[ClaimedStep] = []

    def _any(self, place: int, *, is_open: bool = True) -> tuple[UUID, Model] | None:
        over = {run_id for run_id, *_, is_over, _ in self.db.execute(RUNS) if is_over}
        some = [(i, m) for i, m in self.plans.items() if m.is_queued and (i not in over) == is_open]
        return some[place % len(some)] if some else None

    @rule(items=st.integers(1, 14), first=st.sampled_from([None, None, 1, 3]))
    @precondition(lambda self: len(self.plans) < 4)
    def begin(self, items: int, first: int | None) -> None:
        run_id = draft(self.db, items)
        model = self.plans[run_id] = Model(items)
        queue(self.db, run_id, first)
        model.is_queued = True
        model.halt = "first" if first is not None and first < items else None

    @rule(batch=st.integers(1, 6))
    def claim(self, batch: int) -> None:
        steps = claim(self.db, batch=batch)
        for step in steps:
            assert step.run_id is not None
            model = self.plans[step.run_id]
            assert model.halt in (None, "first"), "nothing begins while paused or stopped"
            assert not model.is_cancelled
            assert step.step_id not in model.done | model.held
            model.held.add(step.step_id)
            model.failed.discard(step.step_id)
        self.held += steps

    @rule(place=places, outcome=st.sampled_from(OUTCOMES), many=st.integers(1, 4))
    @precondition(lambda self: bool(self.held))
    def settle(self, place: int, outcome: Outcome, many: int) -> None:
        start = place % len(self.held)
        some, self.held = self.held[start : start + many], self.held[:start] + self.held[start + many :]
        settled = {row.step_id for row in run(self.db, calls.settle_steps([settlement(s, outcome) for s in some]))}
        for step in some:
            assert step.run_id is not None
            model = self.plans[step.run_id]
            assert (step.step_id in settled) == (step.step_id in model.held)
            model.held.discard(step.step_id)
            if step.step_id in settled and isinstance(outcome, Done):
                model.done.add(step.step_id)
            elif step.step_id in settled and isinstance(outcome, Fail):
                model.failed.add(step.step_id)

    @rule()
    @precondition(lambda self: bool(self.held))
    def kill_the_worker(self) -> None:
        """Its leases run out, and the steps are retried; a plain task has one try, so they fail."""
        Clock(self.db).advance(timedelta(minutes=5))
        for step_id, event in rescue(self.db):
            (model,) = (m for m in self.plans.values() if step_id in m.held)
            model.held.discard(step_id)
            if event == "failed":
                model.failed.add(step_id)
        self.held = []

    @rule(place=places, what=st.sampled_from(["pause", "resume", "stop"]))
    def halt(self, place: int, what: str) -> None:
        if (found := self._any(place)) is None:
            return
        run_id, model = found
        if model.halt == "stopped":
            if what != "stop":
                with pytest.raises(errors.WrongState):
                    halt(self.db, what, run_id)
            return
        halt(self.db, what, run_id)
        model.halt = {"pause": "paused", "resume": None, "stop": "stopped"}[what]

    @rule(place=places)
    def cancel(self, place: int) -> None:
        if (found := self._any(place)) is not None:
            run_id, model = found
            run(self.db, calls.cancel(str(run_id)))
            model.is_cancelled, model.halt, model.held = True, None, set()

    @rule(place=places, some=st.sets(places, max_size=3))
    def retry(self, place: int, some: set[int]) -> None:
        if (found := self._any(place, is_open=False)) is None:
            return
        run_id, model = found
        steps = [row[1] for row in self.db.execute(STEPS) if row[0] == run_id]
        left = [step_id for step_id in steps if step_id not in model.done]
        if model.is_cancelled or not left:
            with pytest.raises(errors.WrongState):
                run(self.db, calls.retry(str(run_id)))
            return
        if some:
            run(self.db, calls.retry_steps(str(run_id), [left[number % len(left)] for number in some]))
        else:
            run(self.db, calls.retry(str(run_id)))
        model.halt = None

    @rule()
    def upkeep(self) -> None:
        run(self.db, calls.upkeep())

    @invariant()
    def counts_are_exact_and_nothing_is_broken(self) -> None:
        assert run(self.db, calls.violations()) == []
        for run_id, _, halted, _, _, total, succeeded, failed, _, is_over, _ in self.db.execute(RUNS).fetchall():
            model = self.plans[run_id]
            assert (total, succeeded) == (model.total, len(model.done))
            if not model.is_cancelled:
                assert failed == len(model.failed)
            if is_over:
                assert not model.held
            else:
                assert halted == model.halt or (model.halt == "first" and halted is None)

    def teardown(self) -> None:
        """At rest nothing runnable waits: whoever claims and settles gets through all that is not halted."""
        for run_id, model in self.plans.items():
            if model.halt in ("first", "paused") and self._is_open(run_id):
                halt(self.db, "resume", run_id)
        for _ in range(200):
            Clock(self.db).advance(timedelta(minutes=5))
            rescue(self.db)
            run(self.db, calls.upkeep())
            if not (steps := claim(self.db, batch=5)):
                break
            run(self.db, calls.settle_steps([settlement(step, Done()) for step in steps]))
        states = Counter(is_over for *_, is_over, _ in self.db.execute(RUNS).fetchall())
        assert states[False] == 0, self.db.execute(RUNS).fetchall()
        assert run(self.db, calls.violations()) == []

    def _is_open(self, run_id: UUID) -> bool:
        return any(row[0] == run_id and not row[-2] for row in self.db.execute(RUNS).fetchall())


@pytest.fixture(scope="module")
def stage_db(template: Template) -> Iterator[Any]:
    with template.clone() as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.mark.one_server
def test_a_run_with_a_window_is_what_the_model_says(stage_db: DB) -> None:
    """R3, R11 for large runs: each outcome is recorded once, counts are exact, nothing begins while paused."""
    run_state_machine_as_test(lambda: Plans(stage_db), settings=settings(max_examples=40, stateful_step_count=30))
