"""Handlers that fork in a real worker: what the fork takes with it, and what reaches the worker from it."""

from __future__ import annotations

import signal
import socket
from pathlib import Path

import psutil

from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.server.test_outages import probe

CONNECTIONS = """select count(*) from pg_stat_activity
                  where datname = current_database() and application_name = 'holdfast'"""


def test_a_fork_that_outlives_its_worker_holds_nothing_of_it(crew: Crew, database: Database, folder: Path) -> None:
    """R1: the server would not notice that the worker is gone, nor would the processes of cpu tasks."""
    steps = [database.start("burn_apart", seconds=0), database.start("deposit"), database.start("fork", gate="go")]
    worker = crew.hire("-c", "1", "--probe-port", "0")
    port = int(probe(worker).rpartition(":")[2])
    until(lambda: database.is_over(*steps) and lines(folder, "forked"), "the fork was there")
    fork = psutil.Process(lines(folder, "forked")[0].pid)
    apart = psutil.Process(next(line.pid for line in lines(folder) if line.kind == "burn_apart"))

    worker.kill()

    until(lambda: database.value(CONNECTIONS) == 0, "the server closed all connections of the worker")
    until(lambda: not apart.is_running(), "the process of cpu tasks ended")
    with socket.create_server(("127.0.0.1", port)):
        assert fork.status() != psutil.STATUS_ZOMBIE
    crew.open("go")
    until(lambda: not fork.is_running(), "the fork ended where its handler returned")


def test_multiprocessing_in_a_handler_works_and_its_signals_do_not_reach_the_worker(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: a pool ends its processes by SIGTERM; each was taken for one to the worker, which drained."""
    step = database.start("use_multiprocessing")
    worker = crew.hire_ready()
    until(lambda: database.is_over(step), "the pool gave its result")

    last = database.start("doze")
    until(lambda: database.is_over(last), "the worker worked on")

    assert not worker.said("worker.draining")
    worker.send(signal.SIGTERM)
    assert worker.exit_code() == 0
    proof.check(database, folder, started=2)
