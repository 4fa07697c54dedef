"""Leases are kept by a thread, a loop and a connection of their own: no handler can keep them from being renewed."""

from __future__ import annotations

import signal
from datetime import datetime
from pathlib import Path

import pytest

from holdfast.connections import handler_tx
from holdfast.connections.pool import POOL_SIZE
from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.steps import seconds
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof

LEASE = 1.5  # seconds; not less, as a machine that is busy may keep a renewal waiting


def test_handlers_that_take_three_leases_keep_them_whatever_they_do(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R7, W-57: burning CPU in Python, sleeping in C, burning in a process; another worker would take a lost one."""
    steps = [
        database.start(kind, seconds=3 * LEASE)
        for kind in ("burn", "burn", "doze", "burn_apart")
    ]  # fmt: skip
    for _ in range(2):
        crew.hire(lease=f"{LEASE}s")

    until(lambda: database.is_over(*steps), "all were over")

    assert [database.story(step) for step in steps] == [["claimed", "succeeded"]] * len(steps)
    assert len(lines(folder, "begin")) == len(steps)
    proof.check(database, folder, started=len(steps))


@pytest.mark.timeout(200)
def test_handlers_that_hold_all_connections_hold_up_no_renewal_no_claim_and_no_sweep(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R8: those of the app's own pool, and those that contexts write through."""
    holders = [database.start("hold_connection", gate="go") for _ in range(POOL_SIZE)]
    holders += [database.start("hold_handler_connection", gate="go") for _ in range(handler_tx.SIZE)]
    worker = crew.hire("-c", "20", lease="5s")
    until(lambda: len(lines(folder, "begin")) == len(holders), "both pools were used up")
    leases = lease_ends(database, holders)

    lost = claimed_by_a_silent_worker(database)
    until(lambda: database.is_over(lost), "what a silent worker held was rescued, claimed and done")
    until(lambda: min(lease_ends(database, holders)) > max(leases), "all leases were renewed")

    crew.open("go")
    until(lambda: database.is_over(*holders), "all were over")
    assert database.story(lost) == ["claimed", "expired", "claimed", "succeeded"]
    assert not worker.said("lease.lost")
    proof.check(database, folder, started=len(holders) + 1)


def test_a_worker_that_wakes_begins_nothing_that_it_has_lost(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R3, W-61: it was frozen in the first handler of a batch; another worker did all of it meanwhile."""
    quick = database.start_many("doze", 100)
    frozen = crew.hire("-c", "1")
    until(lambda: database.count("succeeded") == quick, "it had reason to take many at a time")
    lost = database.start_many("freeze", 20)
    until((folder / "frozen").exists, "it was frozen")
    assert database.held_by()[frozen.name] > 1
    other = crew.hire_ready()
    until(lambda: database.count("succeeded") == quick + lost, "the other did all")
    other.kill()

    frozen.send(signal.SIGCONT)

    last = database.start("doze")
    until(lambda: database.is_over(last), "it worked again, and what had waited for its one slot was through")
    begun = [line for line in lines(folder, "begin") if line.kind == "freeze" and line.pid == frozen.pid]
    assert len(begun) == 1
    proof.check(database, folder, started=quick + lost + 1)


def lease_ends(database: Database, steps: list[int]) -> list[datetime]:
    return [end for (end,) in database.rows("select lease_until from holdfast.steps where id = any (%s)", steps)]


def claimed_by_a_silent_worker(database: Database) -> int:
    """A step whose worker is gone before anybody saw it; claimed in the transaction that starts it."""
    with database.connection() as connection, connection.transaction():
        (step,) = run(connection, calls.start_task("doze", {}))
        (claimed,) = run(connection, calls.claim_steps("silent", "default", ["doze"], batch=1, lease=seconds(0.5)))
        assert claimed.step_id == step
    return step
