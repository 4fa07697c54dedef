"""Start of one run with a million targets, against a bare COPY of the same rows into a table of the same shape."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import psycopg

from bench import Bench
from holdfast.kernel import bulk
from hot_loop import install

NAME = "targets"
TITLE = "Start of one run with many targets"
RUN = "00000000-0000-7000-8000-000000000001"


def measure(bench: Bench) -> None:
    """Start as many targets on both, each time in an empty database."""
    bench.asked = [engine for engine in bench.asked if engine.is_ours]
    count = bench.tasks or bench.size(1_000_000, 100_000)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            dsn = bench.server.fresh(engine.name)
            install(dsn, engine.name)
            start = bulk_start if engine.name == "holdfast" else bare_copy
            bench.record(engine, "start", number, start(dsn, count), "targets/s", n=count)


def rows(count: int) -> Iterator[bulk.Start]:
    """Make the targets: a kind and an input of some fifty characters."""
    for number in range(count):
        yield bulk.Start("noop", f'{{"sku": "A-{number:07}", "price": {number % 1000}}}')


def bare_copy(dsn: str, count: int) -> float:
    """COPY the rows straight into the baseline's table, and return how many that is per second."""
    with psycopg.connect(dsn) as connection:
        begun = time.perf_counter()
        statement = "copy baseline.steps (run_id, machine, state, due_at, kind, input) from stdin"
        with connection.cursor().copy(statement) as copy:
            moment = datetime.now(UTC)
            for target in rows(count):
                copy.write_row((RUN, "flow.step", "pending", moment, target.kind, target.input))
        connection.commit()
        return count / (time.perf_counter() - begun)


def bulk_start(dsn: str, count: int) -> float:
    """Start one run with the same rows, as users do, and return how many that is per second."""
    with psycopg.connect(dsn) as connection:
        begun = time.perf_counter()
        bulk.start_steps(connection, rows(count), machine="flow.task", name="bench", step_machine="flow.step")
        connection.commit()
        return count / (time.perf_counter() - begun)
