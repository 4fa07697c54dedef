"""Idle: statements a minute that one settled worker process sends while there is nothing to do.

All workers idle at the same time, each on a database of its own: a count is no time. What is counted is what reaches the
server, by its own log; for an engine on redis, the commands that its server has processed.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from urllib.parse import urlsplit

import statement_log
from bench import Bench
from engines import Engine
from processes import Crew

NAME = "idle"
TITLE = "Statements of an idle worker"
QUICK = ("holdfast", "baseline", "pgqueuer", "graphile-worker")


def measure(bench: Bench) -> None:
    """Start a worker of each, wait until its polls have grown to their longest, and count in windows."""
    addresses: dict[str, str] = {}
    able = bench.engines("drain", in_quick=QUICK)
    for engine in able:
        with bench.attempt(engine):
            addresses[engine.name] = bench.prepare(engine)
    databases = [database(addresses[engine.name]) for engine in able if engine.name in addresses and engine.pending]
    crews: dict[str, Crew] = {}
    with statement_log.logged(bench.server.admin(), databases) as log, ExitStack() as stack:
        for engine in (engine for engine in able if engine.name in addresses):
            with bench.attempt(engine):
                crews[engine.name] = stack.enter_context(bench.workers(engine, addresses[engine.name]))
        settled, window = bench.size(45, 15), bench.size(60, 15)
        bench.say(f"all workers idle; {settled} s to settle, then {bench.rounds} times {window} s to count")
        time.sleep(settled)
        for number in range(1, bench.rounds + 1):
            since, before = statement_log.position(log), redis_commands(able, addresses)
            time.sleep(window)
            counted, after = statement_log.counts(log, since), redis_commands(able, addresses)
            for engine in (engine for engine in able if engine.name not in bench.failed):
                made, unit = counted[database(addresses[engine.name])], "statements/min"
                if engine.pending is None:
                    made, unit = after - before - 1, "commands/min"  # the question itself is one
                with bench.attempt(engine):
                    crews[engine.name].check()  # the dead are silent too
                    bench.record(engine, "idle", number, made * 60 / window, unit)


def database(address: str) -> str:
    """Name the database of an address; a redis has its number."""
    return urlsplit(address).path.removeprefix("/")


def redis_commands(able: list[Engine], addresses: dict[str, str]) -> int:
    """Tell how many commands the run's redis has processed; 0 where there is none."""
    address = next((addresses[e.name] for e in able if e.pending is None and e.name in addresses), None)
    if address is None:
        return 0
    where = urlsplit(address)
    with socket.create_connection((where.hostname or "127.0.0.1", where.port or 6379), timeout=5) as connection:
        connection.sendall(b"INFO stats\r\n")
        said = connection.recv(65536).decode()
    return int(said.split("total_commands_processed:")[1].split()[0])
