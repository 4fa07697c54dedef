"""Random calls of the SQL surface of ops by several workers, held against a model of document 002's diagram."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import note, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run
from properties.database import Database
from properties.ops_model import ENDS, Refused, Run

WORKERS = ("a", "b", "c")
RUNS = "select run_id, status, claimed_by, started_at, metadata ->> 'reason' from ops.runs"
EVENTS = "select run_id, message from ops.run_events order by event_id"
LEASES = """select f.run_id, s.lease_until from ops.run_facts f join holdfast.steps s on s.id = f.step_id
             where s.lease_until is not null"""
places = st.integers(0, 10**6)
workers = st.sampled_from(WORKERS)
fences = st.sampled_from((None, *WORKERS))


class Ops(RuleBasedStateMachine):
    def __init__(self, database: Database) -> None:
        super().__init__()
        self.database = database
        self.db = database.person
        self.now: datetime = database.wipe()
        self.runs: dict[str, Run] = {}
        self.by_key: dict[str, str] = {}
        self.event_ids: dict[tuple[str, str], str] = {}  # of events with a key

    @invariant()
    def runs_and_events_are_as_the_model_says(self) -> None:
        seen = {run_id: row for run_id, *row in self.db.execute(RUNS)}
        assert seen == {i: [r.status, r.worker, r.started_at, r.reason] for i, r in self.runs.items()}
        told: dict[str, list[str]] = {run_id: [] for run_id in self.runs}
        for run_id, message in self.db.execute(EVENTS):
            told[run_id].append(message)
        assert told == {run_id: each.told for run_id, each in self.runs.items()}
        held = {run_id: each.leased_until for run_id, each in self.runs.items() if each.is_held}
        assert dict(self.db.execute(LEASES).fetchall()) == held

    def teardown(self) -> None:
        assert {v for v in self.database.violations() if v[0] != "lease_was_rescued"} == set()

    @rule(key=st.sampled_from((None, None, "k1", "k2", "k3")))
    @precondition(lambda self: len(self._open()) < 8)
    def queue(self, key: str | None) -> None:
        query = "select run_id, status from ops.queue_run('p', 'staging', 'sha', 'main', p_idempotency_key => %s)"
        ((run_id, status),) = self.db.execute(query, [key]).fetchall()
        known = self.by_key.get(key) if key is not None else None
        assert run_id == (known or run_id)
        if known is None:
            assert run_id not in self.runs
            self.runs[run_id] = Run(self.now)
            if key is not None:
                self.by_key[key] = run_id
        assert status == self.runs[run_id].status

    @rule(worker=workers)
    def claim(self, worker: str) -> None:
        rows = self.database.workers[worker].execute("select run_id from ops.claim_next_run(%s)", [worker]).fetchall()
        first = next((run_id for run_id, each in self.runs.items() if each.status == "queued"), None)
        assert [run_id for (run_id,) in rows] == ([] if first is None else [first])
        if first is not None:
            self.runs[first].claim(worker, self.now)

    @rule(
        place=places,
        worker=workers,
        level=st.sampled_from(("info", "warn")),
        message=st.sampled_from(("built", "shipped")),
        key=st.sampled_from((None, None, "e1", "e2")),
        times=st.integers(1, 2),
    )
    @precondition(lambda self: self.runs)
    def append(self, place: int, worker: str, level: str, message: str, key: str | None, times: int) -> None:
        run_id = self._pick(place)
        answers = set()
        for _ in range(times):  # O-04: a call repeated is the same call
            answers.add(
                self._same(
                    lambda: self.runs[run_id].append(level, message, key, self.now) and None,
                    "append_event", worker, run_id, level, message, Jsonb({"n": place}), key,
                )
            )  # fmt: skip
        assert len(answers) == 1
        (event_id,) = answers
        if key is not None and event_id is not None:
            assert self.event_ids.setdefault((run_id, key), event_id) == event_id

    @rule(place=places, status=st.sampled_from(ENDS), fence=fences, times=st.integers(1, 2))
    @precondition(lambda self: self.runs)
    def finish(self, place: int, status: str, fence: str | None, times: int) -> None:
        run_id = self._pick(place)
        for _ in range(times):
            self._same(
                lambda: self.runs[run_id].finish(status, fence),
                "finish_run", fence or "a", run_id, status, Jsonb({}), fence,
            )  # fmt: skip

    @rule(place=places, fence=fences)
    @precondition(lambda self: self.runs)
    def heartbeat(self, place: int, fence: str | None) -> None:
        run_id = self._pick(place)
        is_on: list[bool] = []
        answer = self._same(
            lambda: is_on.append(self.runs[run_id].heartbeat(fence, self.now)), "heartbeat", fence or "a", run_id, fence
        )
        assert [answer] == is_on or answer is None

    @rule(place=places, times=st.integers(1, 2))
    @precondition(lambda self: self.runs)
    def cancel(self, place: int, times: int) -> None:
        run_id = self._pick(place)
        for _ in range(times):
            self._same(self.runs[run_id].cancel, "cancel_run", "a", run_id, None, None)

    @rule(times=st.integers(1, 2))
    def sweep(self, times: int) -> None:
        stale = [each for each in self.runs.values() if each.is_stale(self.now)]
        answers = [self.db.execute("select ops.cancel_stale_runs()").fetchone() for _ in range(times)]
        assert answers == [({"cancelled": len(stale)},), ({"cancelled": 0},)][:times]
        for each in stale:
            each.give_up()

    @rule()
    def rescue(self) -> None:
        silent = [each for each in self.runs.values() if each.is_expired(self.now)]
        assert len(run(self.db, calls.rescue_steps(batch=100))) == len(silent)
        for each in silent:
            each.give_up()

    @rule(span=st.sampled_from((1, 9, 11, 99, 101, 299, 301)))
    def wait(self, span: int) -> None:
        self.now += timedelta(seconds=span)
        self.database.set_clock(self.now)

    def _same(self, expected: Callable[[], Any], function: str, worker: str, *given: Any) -> Any:
        """Call a function; it is refused where the model refuses it, by the same code."""
        try:
            expected()
            code = None
        except Refused as refusal:
            code = refusal.code
        query = f"select ops.{function}({', '.join(['%s'] * len(given))})"
        row, refused_with = None, None
        try:
            row = self.database.workers[worker].execute(query, given).fetchone()
        except psycopg.Error as error:
            refused_with = error.sqlstate
        assert refused_with == code, function
        return None if row is None else row[0]

    def _open(self) -> list[Run]:
        return [each for each in self.runs.values() if not each.is_over]

    def _pick(self, place: int) -> str:
        """Choose a run, more often one that is not over."""
        runs = [run_id for run_id, each in self.runs.items() if not each.is_over or place % 3 == 0] or [*self.runs]
        note(f"place {place}: {runs[place % len(runs)]}")
        return runs[place % len(runs)]


@pytest.mark.one_server
@pytest.mark.timeout(600)
def test_ops_runs_do_what_the_diagram_says(dsn: str) -> None:
    """O-03 to O-06, O-08 to O-16, O-47, O-50, O-76, O-92, C-31 to C-36, C-40, C-84"""
    database = Database(dsn)

    def ops() -> Ops:  # a failure prints a @reproduce_failure(…): it goes here
        return Ops(database)

    try:
        run_state_machine_as_test(ops, settings=settings(stateful_step_count=40))
    finally:
        database.close()
