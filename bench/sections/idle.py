"""Idle: statements per minute that one settled worker process sends while there is nothing to do.

All workers idle at the same time, each on a database of its own: a count is no time. What is counted is what reaches the
server, by its own log; for an engine on redis, the commands that its server has processed.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import psycopg

import statement_log
from bench import Bench
from engines import Engine
from processes import Crew

Log = psycopg.Connection[tuple[object, ...]]

NAME = "idle"
TITLE = "Statements of an idle worker"
QUICK = ("holdfast", "baseline", "pgqueuer", "graphile-worker")


def measure(bench: Bench) -> None:
    """Prepare a database for each, and count while a worker of each has nothing to do."""
    prepared: list[tuple[Engine, str]] = []
    for engine in bench.engines("drain", in_quick=QUICK):
        with bench.attempt(engine):
            prepared.append((engine, bench.prepare(engine)))
            if engine.name == "holdfast":
                schedule(prepared[-1][1])
    databases = [database(address) for engine, address in prepared if engine.pending]
    try:
        with statement_log.logged(bench.server.admin(), databases) as log, ExitStack() as stack:
            count(bench, log, prepared, stack)
    except (psycopg.Error, RuntimeError) as error:  # a server of the user's own may not let us see its log
        for engine, _ in prepared:
            bench.left_out(engine, f"the server's log cannot be read: {error}")


def count(bench: Bench, log: Log, prepared: list[tuple[Engine, str]], stack: ExitStack) -> None:
    """Start a worker of each, wait until its polls have grown to their longest, and count once per round."""
    crews: list[tuple[Engine, str, Crew]] = []
    for engine, address in prepared:
        with bench.attempt(engine):
            crews.append((engine, address, stack.enter_context(bench.workers(engine, address))))
    settled, window = bench.size(45, 15), bench.size(60, 30)  # upkeep comes each 30 s
    bench.say(f"all workers idle; {settled} s to settle, then {bench.rounds} times {window} s to count")
    time.sleep(settled)
    for number in range(1, bench.rounds + 1):
        since, before = statement_log.position(log), redis_commands(prepared)
        time.sleep(window)
        counted, after = statement_log.counts(log, since), redis_commands(prepared)
        for engine, address, crew in crews:
            made, unit = counted[database(address)], "statements/min"
            if engine.pending is None:
                made, unit = after - before - 1, "commands/min"  # the question itself is one
            with bench.attempt(engine):
                crew.check()  # the dead are silent too
                bench.record(engine, "idle", number, made * 60 / window, unit)


def schedule(address: str) -> None:
    """Define schedules with ticks in an hour and later: an idle worker knows of them and makes no statement for them."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("select holdfast.define_schedule('hourly', 'noop', every => '1 h')")
        connection.execute("select holdfast.define_schedule('yearly', 'noop', cron => '0 0 1 1 *')")


def database(address: str) -> str:
    """Return the database of an address; a redis has its number."""
    return urlsplit(address).path.removeprefix("/")


def redis_commands(prepared: list[tuple[Engine, str]]) -> int:
    """Return how many commands the run's redis has processed; 0 where there is none."""
    address = next((address for engine, address in prepared if engine.pending is None), None)
    if address is None:
        return 0
    where = urlsplit(address)
    with socket.create_connection((where.hostname or "127.0.0.1", where.port or 6379), timeout=5) as connection:
        connection.sendall(b"INFO stats\r\n")
        said = connection.recv(65536).decode()
    return int(said.split("total_commands_processed:")[1].split()[0])
