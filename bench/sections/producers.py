"""What hints cost those who start tasks: 32 producers beside a worker that sleeps at first, against a build without hints.

A worker wakes by the first hint and is sent no more until it sleeps again. Beside it stands the worst case: one that is marked
asleep and never wakes, so that every start sends a hint.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import uvloop

import processes
from bench import Bench
from engines import Engine
from holdfast.connections import deadline
from holdfast.kernel import calls, db
from hot_loop import connect, install

NAME = "producers"
TITLE = "Starts by 32 producers beside a sleeping worker"
NO_HINTS = Path(__file__).resolve().parents[1] / "builds/no_hints.sql"
WITH, WITHOUT, EVERY = "beside a worker", "beside it, hints made impossible", "every start sends a hint"
PRODUCERS = 32
START = "select holdfast.start_task('noop', '{}')"
POLLS = {"HOLDFAST_POLL_MIN": "50ms", "HOLDFAST_POLL_MAX": "50ms"}  # so that the worker works as soon on either build
ASLEEP = "select count(*) from holdfast.workers where is_asleep"


def measure(bench: Bench) -> None:
    """Start tasks one by one, in each of the three cases in turn."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    each = max(1, (bench.tasks or bench.size(16_000, 3_200)) // PRODUCERS)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            for what in (WITH, WITHOUT, EVERY):
                dsn = bench.server.fresh("producers")
                install(dsn, engine.name)
                if what == WITHOUT:
                    with psycopg.connect(bench.server.admin(dsn), autocommit=True) as connection:
                        connection.execute(NO_HINTS.read_bytes())
                bench.server.settle(dsn)
                with sleeper(dsn) if what == EVERY else worker(bench, engine, dsn):
                    rate = uvloop.run(produce(dsn, each))
                bench.record(engine, what, number, rate, "starts/s", n=each * PRODUCERS)


@contextmanager
def worker(bench: Bench, engine: Engine, dsn: str) -> Iterator[None]:
    """Run a worker, and wait until it sleeps."""
    with bench.workers(engine, dsn, **POLLS) as crew:
        processes.wait_until(lambda: bench.server.ask(dsn, ASLEEP) == 1, processes.READY_WAIT, crew, "to fall asleep")
        yield


@contextmanager
def sleeper(dsn: str) -> Iterator[None]:
    """Listen as a worker does that never wakes."""
    with deadline.connect(dsn) as connection:
        connection.execute("listen holdfast")
        db.run(connection, calls.claim_steps("sleeper"))
        db.run(connection, calls.mark_asleep("sleeper"))
        yield


async def produce(dsn: str, each: int) -> float:
    """Start so many from each connection, all at once, each a commit of its own; return how many that is per second."""
    connections = [await connect(dsn) for _ in range(PRODUCERS)]

    async def start(connection: psycopg.AsyncConnection[tuple[object, ...]]) -> None:
        for _ in range(each):
            await connection.execute(START, prepare=True)

    begun = time.perf_counter()
    await asyncio.gather(*map(start, connections))
    took = time.perf_counter() - begun
    for connection in connections:
        await connection.close()
    return PRODUCERS * each / took
