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
from engines import Engine
from psycopg.conninfo import conninfo_to_dict

from bench import Bench

NAME = "idle"
TITLE = "Statements of an idle worker"


def measure(bench: Bench) -> None:
    """Start a worker of each, wait until its polls have grown to their longest, and count in windows."""
    addresses: dict[str, str] = {}
    able = bench.engines("drain")
    for engine in able:
        with bench.attempt(engine):
            addresses[engine.name] = bench.prepare(engine)
    databases = [database(addresses[engine.name]) for engine in able if engine.name in addresses and engine.pending]
    with statement_log.logged(bench.server.admin(), databases) as log, ExitStack() as workers:
        for engine in able:
            if engine.name in addresses:
                with bench.attempt(engine):
                    workers.enter_context(bench.workers(engine, addresses[engine.name]))
        settled, window = bench.size(45, 15), bench.size(60, 15)
        bench.say(f"all workers idle; {settled} s to settle, then {bench.rounds} times {window} s to count")
        time.sleep(settled)
        for number in range(1, bench.rounds + 1):
            since, before = statement_log.position(log), redis_commands(bench, able, addresses)
            time.sleep(window)
            counted, after = statement_log.counts(log, since), redis_commands(bench, able, addresses)
            for engine in (engine for engine in able if engine.name not in bench.failed):
                if engine.pending is None:
                    made, unit = after - before - 1, "commands/min"  # the question itself is one
                else:
                    made, unit = counted[database(addresses[engine.name])], "statements/min"
                bench.record(engine, "idle", number, made * 60 / window, unit)


def database(dsn: str) -> str:
    return str(conninfo_to_dict(dsn)["dbname"])


def redis_commands(bench: Bench, able: list[Engine], addresses: dict[str, str]) -> int:
    """Tell how many commands the run's redis has processed; 0 where there is none."""
    address = next((addresses[e.name] for e in able if e.pending is None and e.name in addresses), None)
    if address is None:
        return 0
    where = urlsplit(address)
    with socket.create_connection((where.hostname or "127.0.0.1", where.port or 6379), timeout=5) as connection:
        connection.sendall(b"INFO stats\r\n")
        said = connection.recv(65536).decode()
    return int(said.split("total_commands_processed:")[1].split()[0])
