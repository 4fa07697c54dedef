"""The database goes away: killed under load, connections cut, down for a while. The worker outlives all of it."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path

import psycopg
import pytest

from holdfast.errors import DatabaseError
from scenarios.crew import Crew, Database, Member, Server, until, waiting_for_a_lock
from scenarios.history import lines
from scenarios.proof import Proof

RESTARTS, BATCH = 10, 100
OUTAGE, ERROR_WAIT = 15, 0.5  # seconds; the wait is the crew's setting


def probe(worker: Member) -> str:
    """Give the address of a worker's probe, as it printed it."""
    until(lambda: "probe: http" in worker.text(), "it printed its port")
    found = re.search(r"probe: (http://127\.0\.0\.1:\d+)/healthz", worker.text())
    assert found is not None
    return found[1]


def status(address: str, path: str) -> int:
    try:
        with urllib.request.urlopen(f"{address}/{path}", timeout=20) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def start_for_sure(database: Database, key: str) -> int:
    """Start a task by its key, again until it is acknowledged: an answer that was cut off may have been a yes."""
    found: list[int] = []

    def start() -> bool:
        try:
            found.append(database.start("deposit", key=key, seconds=0.01))
        except (psycopg.OperationalError, DatabaseError):
            return False
        return True

    until(start, f"{key} was acknowledged")
    return found[0]


@pytest.mark.both_servers
@pytest.mark.timeout(300)
def test_ten_kills_of_the_server_under_load_lose_nothing_and_count_nothing_twice(
    crew: Crew, database: Database, server: Server, folder: Path, proof: Proof
) -> None:
    """R9, W-33, W-34: workers come back by themselves after each; what they did in transactions is there once."""
    workers = [crew.hire_ready() for _ in range(2)]
    started: set[int] = set()
    for number in range(RESTARTS):
        done = database.count("succeeded")
        started |= {start_for_sure(database, f"{number}:{i}") for i in range(5)}
        for kind in ("doze", "deposit"):
            database.start_many(kind, BATCH // 2, seconds=0.02)
        until(lambda: database.held_by() or database.count("succeeded") > done, "the workers worked")  # noqa: B023
        server.restart()
        proof.add(rounds=1, kills=1)
        started |= {start_for_sure(database, f"{number}:{i}") for i in range(10)}

    wanted = RESTARTS * (BATCH + 10)
    until(lambda: database.count("succeeded") >= wanted, "all were done")

    assert len(started) == RESTARTS * 10
    proof.check(database, folder, started=wanted)
    assert [worker.process.poll() for worker in workers] == [None, None]
    assert all(worker.said("worker.error_wait") for worker in workers)


@pytest.mark.both_servers
@pytest.mark.timeout(300)
def test_connections_that_are_cut_lose_nothing_and_hints_work_again(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R10, W-34: any of them, at random, and then the one that listens."""
    worker = crew.hire_ready(poll_max="500ms")
    for _ in range(10):
        done = database.count("succeeded")
        database.start_many("doze", BATCH, seconds=0.02)
        until(lambda: database.held_by() or database.count("succeeded") > done, "the worker worked")  # noqa: B023
        proof.add(rounds=1)
        cut(database, *proof.chance.sample(backends(database), k=1))
    until(lambda: database.count("succeeded") >= 10 * BATCH, "all were done")
    proof.check(database, folder, started=10 * BATCH)
    assert not worker.has_ended


@pytest.mark.both_servers
def test_a_worker_whose_listening_connection_was_cut_hears_again(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R10: it polls once an hour here, so that only a hint can have told it."""
    crew.hire_ready(poll_min="1h", poll_max="1h")
    until(lambda: is_asleep(database), "it fell asleep")
    first = listening(database)
    cut(database, *first)
    until(lambda: listening(database) and listening(database) != first, "it listened anew")
    until(lambda: is_asleep(database), "it fell asleep again")

    step = database.start("doze")

    until(lambda: database.is_over(step), "the hint was heard")
    proof.check(database, folder, started=1)


def test_a_report_that_fails_leaves_a_claim_under_way_alone(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R10, W-34: an event loop aborts when a connection is closed that somebody waits on, and the worker with it."""
    first = database.start("doze")
    worker = crew.hire(call_deadline="1h", lease="60s")
    until(lambda: database.is_over(first), "the connection for reports was there")
    step = database.start("wait", gate="go")
    until(lambda: len(lines(folder, "begin")) == 2, "the handler began")
    with psycopg.connect(database.dsn) as lock:
        lock.execute("lock table holdfast.queues")
        until(lambda: waiting_for_a_lock(database), "a claim was under way")
        cut(database, *speaking(database, "settle_"))
        crew.open("go")
        until(lambda: database.is_over(step), "it was reported in the end")
        assert not worker.said("worker.error_wait")

    worker.await_said("worker.error_wait")
    last = database.start("doze")
    until(lambda: database.is_over(last), "the worker claimed again")
    proof.check(database, folder, started=3)


def backends(database: Database) -> list[int]:
    """List the server's processes for the worker's connections; there is one, or will be. Ours has another name."""
    wanted = "select pid from pg_stat_activity where datname = current_database() and application_name = 'holdfast'"
    until(lambda: database.rows(wanted), "the worker was connected")
    return [pid for (pid,) in database.rows(wanted)] or backends(database)


def listening(database: Database) -> list[int]:
    return speaking(database, "^listen|pg_notify")


def speaking(database: Database, of: str) -> list[int]:
    """List the server's processes for those connections that last said a thing."""
    wanted = """select pid from pg_stat_activity
                 where datname = current_database() and application_name = 'holdfast' and query ~* %s"""
    return [pid for (pid,) in database.rows(wanted, of)]


def cut(database: Database, *pids: int) -> None:
    for pid in pids:
        database.rows("select pg_terminate_backend(%s)", pid)


def is_asleep(database: Database) -> bool:
    return bool(database.value("select bool_or(is_asleep) from holdfast.worker_list"))


@pytest.mark.both_servers
def test_a_worker_outlives_an_outage_and_says_how_it_is(
    crew: Crew, database: Database, server: Server, folder: Path, proof: Proof
) -> None:
    """R13, W-12, W-33, W-34: alive all the time, ready but for the outage."""
    worker = crew.hire("--probe-port", "0")
    address = probe(worker)
    until(lambda: status(address, "readyz") == 200, "it was ready")
    server.halt()
    until(lambda: status(address, "readyz") == 503, "it was not")
    worker.await_said("worker.error_wait", times=3)
    assert status(address, "healthz") == 200
    assert not worker.has_ended

    server.start()

    until(lambda: status(address, "readyz") == 200, "it was ready again")
    assert status(address, "healthz") == 200
    step = database.start("doze")
    until(lambda: database.is_over(step), "it worked again")
    proof.check(database, folder, started=1)


@pytest.mark.long
@pytest.mark.both_servers
@pytest.mark.timeout(300)
def test_an_outage_of_fifteen_seconds_under_load_loses_nothing(
    crew: Crew, database: Database, server: Server, folder: Path, proof: Proof
) -> None:
    """R13, W-34, W-48: the wait is the same each time, as set, for it is the one that a person expects to know."""
    workers = [crew.hire_ready() for _ in range(2)]
    for kind in ("doze", "deposit"):
        database.start_many(kind, BATCH, seconds=0.05)
    until(database.held_by, "the workers worked")
    server.halt()
    proof.add(rounds=1, kills=1)
    until(lambda: min(waited(worker) for worker in workers) >= OUTAGE, "the outage had lasted")

    server.start()

    until(lambda: database.count("succeeded") >= 2 * BATCH, "all were done")
    proof.check(database, folder, started=2 * BATCH)
    assert [worker.process.poll() for worker in workers] == [None, None]
    assert {line["wait"] for worker in workers for line in worker.said("worker.error_wait")} == {ERROR_WAIT}


def waited(worker: Member) -> float:
    """Add up the waits that a worker told of."""
    return sum(line["wait"] for line in worker.said("worker.error_wait"))


def test_a_worker_that_starts_during_an_outage_waits_for_its_end(
    crew: Crew, database: Database, server: Server, folder: Path, proof: Proof
) -> None:
    """R13, W-02, W-15, W-34"""
    step = database.start("doze")
    server.halt()
    worker = crew.hire("--probe-port", "0")
    address = probe(worker)
    worker.await_said("worker.error_wait", times=2)
    assert (status(address, "healthz"), status(address, "readyz")) == (200, 503)

    server.start()

    until(lambda: database.is_over(step), "the step was done")
    assert status(address, "readyz") == 200
    proof.check(database, folder, started=1)


def test_an_outage_while_a_handler_ends_does_not_fail_its_task(
    crew: Crew, database: Database, server: Server, folder: Path
) -> None:
    """W-63: what cannot be reported is no error of the task's; within its lease it is reported later."""
    step = database.start("wait", gate="go")
    worker = crew.hire(lease="60s")
    until(lambda: lines(folder, "begin"), "the handler began")
    server.halt()
    crew.open("go")
    until(lambda: lines(folder, "end"), "the handler ended")
    worker.await_said("worker.error_wait", times=2)

    server.start()

    until(lambda: database.is_over(step), "it was reported")
    assert database.story(step) == ["claimed", "succeeded"]
    assert database.step(step)["failures"] == 0


@pytest.mark.both_servers
def test_an_outage_longer_than_the_lease_costs_a_try_and_no_failure_of_the_handlers(
    crew: Crew, database: Database, server: Server, folder: Path, proof: Proof
) -> None:
    """W-63, R13: the handler is stopped when its lease runs out, and the step recovered by that lease."""
    step = database.start("wait", gate="go")
    worker = crew.hire()
    until(lambda: lines(folder, "begin"), "the handler began")
    server.halt()
    worker.await_said("lease.lost")

    server.start()
    until(lambda: len(lines(folder, "begin")) == 2, "it was tried again")
    crew.open("go")

    until(lambda: database.is_over(step), "the step was over")
    assert database.story(step) == ["claimed", "expired", "claimed", "succeeded"]
    proof.check(database, folder, started=1)
