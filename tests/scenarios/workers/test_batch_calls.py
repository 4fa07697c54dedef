"""Calls of batch handlers whose worker is stopped, frozen or cut off: each step is served as if it were alone."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from holdfast.kernel import bulk, calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.proxy import FaultProxy
from scenarios.workers.test_stopping import LEASE, busy, is_handed_back

APP = "batch_chores"
SIZE = 4
KINDS = ["push", "apush", "push_apart"]  # in a thread, on the loop, in a process
LASTING = {"lease": LEASE, "error_wait": "50ms"}  # nothing expires


def define(database: Database, *kinds: str) -> None:
    """Say what a worker would say of them: the steps are started first, so that one claim takes a whole lot."""
    with database.connection() as connection:
        for kind in kinds:
            run(connection, calls.define_kind(kind, batch=SIZE, batch_by="lot"))


def start(database: Database, kind: str, count: int = 3, **item: str) -> list[int]:
    """Start as many steps of one lot at once."""
    last = database.value("select coalesce(max(id), 0) from holdfast.steps")
    text = json.dumps({"lot": "a", **item})
    with database.connection() as connection:
        bulk.start_tasks(connection, [bulk.Start(kind, text, None)] * count)
    return [step for (step,) in database.rows("select id from holdfast.steps where id > %s order by id", last)]


def finish_the_rest(crew: Crew) -> None:
    assert crew.hire("--burst", app=APP, lease=LEASE).exit_code() == 0


@pytest.mark.parametrize("times", [1, 2], ids=["once", "twice"])
def test_calls_that_do_not_end_in_time_are_handed_back_at_no_cost(
    crew: Crew, database: Database, folder: Path, proof: Proof, times: int
) -> None:
    """R31: every step of them, and they may share calls again."""
    define(database, *KINDS)
    steps = [step for kind in KINDS for step in start(database, kind, gate="go")]
    worker = busy(crew, folder, len(steps), app=APP, grace="300ms" if times == 1 else "60s")

    worker.send(signal.SIGTERM)
    if times == 2:
        worker.await_said("worker.draining")
        worker.send(signal.SIGTERM)

    assert worker.exit_code() == (0 if times == 1 else 130)
    assert [database.story(step) for step in steps] == [["claimed", "released"]] * len(steps)
    assert all(is_handed_back(database, step) for step in steps)
    assert database.value("select count(*) from holdfast.steps where alone") == 0
    crew.open("go")
    finish_the_rest(crew)
    proof.check(database, folder, started=len(steps))


def test_calls_that_were_fetched_ahead_are_handed_back_at_once(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: only the call that runs gets a grace."""
    define(database, "push")
    quick = sum(len(start(database, "push", 1, lot=f"quick {n}")) for n in range(60))
    worker = crew.hire("-c", "1", app=APP, lease=LEASE)
    until(lambda: database.count("succeeded") == quick, "it had reason to take many calls at a time")
    slow = [step for n in range(10) for step in start(database, "push", 2, lot=f"slow {n}", gate="go")]
    until(lambda: any(line.step in slow for line in lines(folder, "begin")), "one call began")

    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    until(lambda: sum(database.held_by().values()) <= 2, "all calls but the one were handed back")
    crew.open("go")

    assert worker.exit_code() == 0
    assert database.value("select max(failures) from holdfast.steps") == 0
    finish_the_rest(crew)
    proof.check(database, folder, started=quick + len(slow))


@pytest.mark.parametrize(("kind", "mark"), [("push", "begin"), ("pay", "inside")])
def test_a_frozen_worker_settles_and_commits_no_step_of_its_call(
    crew: Crew, database: Database, folder: Path, proof: Proof, kind: str, mark: str
) -> None:
    """R3: the steps are another worker's by then, each in a call of its own."""
    define(database, kind)
    steps = start(database, kind, gate="go")
    zombie = crew.hire_ready(app=APP)
    until(lambda: len({line.step for line in lines(folder, mark)}) == len(steps), "its call began")
    zombie.send(signal.SIGSTOP)
    other = crew.hire_ready(app=APP, lease=LEASE)
    until(lambda: len(begun_by(folder, other.pid)) == len(steps), "the other took all of them over")
    other.send(signal.SIGSTOP)
    crew.open("go")

    zombie.send(signal.SIGCONT)

    until(lambda: len(zombie.said("step.outcome_not_accepted")) >= len(steps), "its outcomes were refused")
    assert not database.is_over(*steps)
    other.send(signal.SIGCONT)
    until(lambda: database.is_over(*steps), "the other had done all of them")
    accepted = database.rows("select lease_id from holdfast.journal where event = 'succeeded'")
    assert {lease for (lease,) in accepted} == begun_by(folder, other.pid)
    proof.check(database, folder, started=len(steps))


def begun_by(folder: Path, pid: int) -> set[int]:
    """The leases under which handlers of a process began."""
    return {line.lease for line in lines(folder, "begin") if line.pid == pid}


@pytest.mark.timeout(300)
def test_a_connection_that_breaks_anywhere_in_a_call_loses_and_repeats_no_step(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R3, R11: at the claim, a write of the handler, the settle and the commit; unanswered, or never heard."""
    far_crew.hire_ready(app=APP, **LASTING)
    started = 0
    for kind, statement in (
        ("push", "settle_"), ("pay", "insert into public.effects"), ("pay", "settle_"),  # with its commit
    ):  # fmt: skip
        for fault in (proxy.cut, proxy.lose):
            fault(statement)
            proof.add(rounds=1)
            steps = start(database, kind)
            started += len(steps)
            until(lambda: not proxy.is_armed, f"{statement} failed")
            until(lambda: database.is_over(*steps), f"all were over after {statement}")  # noqa: B023
    proxy.cut("claim_steps", has_rows=True)
    steps = start(database, "push")
    until(lambda: not proxy.is_armed, "the answer to a claim was lost")
    until(lambda: sum(database.held_by().values()) == len(steps), "the claim was made")
    with database.connection() as connection:
        Clock(connection).advance(LASTING["lease"])
    until(lambda: database.is_over(*steps), "all were over after the claim")
    assert [database.story(step) for step in steps] == [["claimed", "expired", "claimed", "succeeded"]] * len(steps)
    proof.check(database, folder, started=started + len(steps))
