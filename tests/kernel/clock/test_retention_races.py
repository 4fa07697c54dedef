"""Retention when a retry, a start, a reader or another session does something at the same moment: one of them wins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest

from holdfast import errors
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.kernel.handle import follow
from holdfast.kernel.retention_calls import Sweep
from holdfast.models import Done, Settlement
from holdfast.testing import Clock
from kernel.retention import days, flow, is_there, left_of, sweep, task
from kernel.steps import DB, at_once, ids_by_name, node, start, until_blocked, value, violations

pytestmark = pytest.mark.one_server


@contextmanager
def session(dsn: str) -> Iterator[DB]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


def chunk(db: DB, batch: int = 100) -> Sweep:
    """Sweep until something is removed; a chunk without removals ends after 50 ms, wherever it is then."""
    (part,) = run(db, retention_calls.sweep_now(batch=batch, afresh=True))
    while part.is_through is False and not (part.steps or part.runs):
        (part,) = run(db, retention_calls.sweep_now(batch=batch))
    return part


def retry_of(subject: Any) -> Any:
    def act(connection: DB) -> str:
        try:
            return run(connection, calls.retry(str(subject)))[0]
        except errors.Pruned:
            return "pruned"

    return act


@pytest.mark.parametrize("what", ["task", "run", "step of a run"])
def test_a_retry_that_came_first_keeps_it_whole(dsn: str, db: DB, clock: Clock, what: str) -> None:
    """The retry is not committed yet: the sweep does not wait for it, and leaves all of it."""
    subject, run_id = failed(db, what)
    clock.advance(days(91))
    with session(dsn) as person:
        with person.transaction():
            run(person, calls.retry(str(subject)))
            db.execute("set lock_timeout = '2s'")
            assert (chunk(db).steps, chunk(db).runs) == (0, 0)
        sweep(db)
    assert is_there(db, subject)
    if run_id is not None:
        assert left_of(db, run_id, list(ids_by_name(db, run_id).values()))["steps"] == 3
    assert violations(db) == []


@pytest.mark.parametrize("batch", [100, 1], ids=["whole", "large"])
@pytest.mark.parametrize("what", ["task", "run", "step of a run"])
def test_a_retry_that_came_later_finds_it_pruned(dsn: str, db: DB, clock: Clock, what: str, batch: int) -> None:
    """The sweep is not committed yet: the retry waits for it, and is then told what became of it."""
    subject, _ = failed(db, what)
    clock.advance(days(91))
    answers: list[str] = []
    with session(dsn) as sweeper, session(dsn) as person:
        with sweeper.transaction():
            chunk(sweeper, batch)
            thread = threading.Thread(target=lambda: answers.append(retry_of(subject)(person)))
            thread.start()
            until_blocked(db, person.info.backend_pid)
        thread.join()
    assert answers == ["pruned"]
    sweep(db)
    assert violations(db) == []


def failed(db: DB, what: str) -> tuple[Any, Any]:
    """Give the id to retry, and the run that it belongs to."""
    if what == "task":
        return task(db, "failed"), None
    run_id = flow(db, "failed")
    return (run_id if what == "run" else ids_by_name(db, run_id)["a"]), run_id


@pytest.mark.parametrize("what", ["task", "run", "step of a run"])
def test_of_a_retry_and_a_sweep_at_once_one_wins(dsn: str, db: DB, clock: Clock, what: str) -> None:
    """R6: never half: it is there with all its steps and retried, or gone with all of them."""
    clock.freeze()
    cases = []
    for _ in range(25):
        subject, run_id = failed(db, what)
        cases.append((subject, run_id, [] if run_id is None else list(ids_by_name(db, run_id).values())))
    clock.advance(days(91))
    for subject, run_id, steps in cases:
        (answer, _) = at_once(dsn, retry_of(subject), lambda c: chunk(c, 3))
        is_kept = answer != "pruned"
        assert is_there(db, subject) == is_kept
        if run_id is not None:
            left = left_of(db, run_id, steps)
            assert left == ({"steps": 3, "run_steps": 3, "edges": 2, "note_keys": 2, "runs": 1} if is_kept else {})
        assert violations(db) == []


def test_a_run_that_is_retried_from_a_step_stays_until_the_new_run_is_over(dsn: str, db: DB, clock: Clock) -> None:
    """The new run is not committed yet, but its start has locked the old one."""
    run_id = flow(db, "failed")
    step = ids_by_name(db, run_id)["a"]
    clock.advance(days(91))
    with session(dsn) as person, person.transaction():
        run(person, flow_calls.retry_from(step))
        assert chunk(db).runs == 0
    assert chunk(db).runs == 0
    assert is_there(db, run_id)


def test_a_start_of_a_run_for_another_one_keeps_that(dsn: str, db: DB, clock: Clock) -> None:
    run_id = flow(db)
    clock.advance(days(31))
    start_of = calls.start_run("flow.task", "check", "flow.step", steps=[node("a")], of_run=run_id)
    with session(dsn) as person, person.transaction():
        run(person, start_of)
        assert chunk(db).runs == 0
    assert chunk(db).runs == 0


class Stopped:
    """An executor that lets something happen after the first call."""

    def __init__(self, db: DB, between: Any) -> None:
        self._db, self._between = db, between
        self._calls = 0

    def make(self, call: Any) -> list[Any]:
        rows = run(self._db, call)
        self._calls += 1
        if self._calls == 1:
            self._between()
        return rows


@pytest.mark.parametrize("batch", [100, 2], ids=["whole", "large"])
@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_a_reader_gets_the_result_or_is_told_that_it_was_pruned(db: DB, clock: Clock, outcome: str, batch: int) -> None:
    """result() reads the outcome, then the results: what is pruned in between is not an empty result."""
    from holdfast.flow.handle import FlowRun

    run_id = flow(db, outcome)
    clock.advance(days(91))
    executor: Any = Stopped(db, lambda: chunk(db, batch))
    handle = FlowRun(run_id, executor, lambda _step, stored, _place: stored)

    with pytest.raises(errors.Pruned) as gone:
        follow(executor, handle._result(5))

    assert (gone.value.outcome, gone.value.rule) == (outcome, f"{outcome}: {30 if outcome == 'succeeded' else 90} days")


def test_readers_and_a_sweep_at_once(dsn: str, db: DB, clock: Clock) -> None:
    """Each read of a task gives its result or says that it was pruned, never that it did not exist."""
    tasks = [task(db) for _ in range(40)]
    clock.advance(days(31))

    def read(connection: DB) -> set[str]:
        seen = set()
        for step_id in tasks * 3:
            rows = run(connection, calls.step_results([step_id]))
            found = (
                rows[0].outcome if rows else [r.outcome for r in run(connection, retention_calls.pruned(str(step_id)))]
            )
            seen.add("there" if rows else f"pruned {found}")
        return seen

    def prune(connection: DB) -> set[str]:
        while chunk(connection, 2).steps:
            pass
        return set()

    read_first, read_second, _ = at_once(dsn, read, read, prune)

    assert read_first | read_second <= {"there", "pruned ['succeeded']"}
    assert not any(is_there(db, each) for each in tasks)


def test_a_sweep_beside_claims_and_settles_removes_only_what_is_over(dsn: str, db: DB, clock: Clock) -> None:
    """With a rule that keeps nothing, tasks go as soon as they end; each is done once."""
    run(db, retention_calls.set_retention(days(0)))
    clock.advance(days(2))
    tasks = [start(db) for _ in range(200)]

    def work(connection: DB) -> int:
        done = 0
        while steps := run(connection, calls.claim_steps(str(connection.info.backend_pid), batch=5)):
            done += len(run(connection, calls.settle_steps([Settlement(s.step_id, s.lease_id, Done()) for s in steps])))
        return done

    def prune(connection: DB) -> int:
        return sum(chunk(connection, 20).steps for _ in range(30))

    first, second, _ = at_once(dsn, work, work, prune)

    assert first + second == len(tasks)
    sweep(db)
    assert value(db, "select count(*) from holdfast.steps") == 0
    assert value(db, "select count(*) from holdfast.journal where event = 'succeeded'") == len(tasks)
