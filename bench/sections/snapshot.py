"""Drain of many tasks while another connection holds a snapshot open, as a report or a dump does, and without one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import psycopg

from bench import Bench
from engines import FAST, Engine

NAME = "snapshot"
TITLE = "Drain while a snapshot is held open"
WAIT = 900.0
MEASURED = ("holdfast", "baseline")


def measure(bench: Bench) -> None:
    """Drain without the snapshot, then with it, one process each."""
    for engine in bench.engines("drain"):
        if engine.pending is None:
            bench.left_out(engine, "its queue is not in PostgreSQL")
        elif engine.name not in MEASURED:
            bench.left_out(engine, "not measured here: so long a drain takes it minutes, and the run has to end")
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            n = bench.tasks or bench.size(4 * FAST, FAST // 4)
            for what, is_held in (("without", False), ("held", True)):
                bench.record(engine, what, number, n / drain(bench, engine, n, is_held=is_held), "tasks/s", n=n)


def drain(bench: Bench, engine: Engine, n: int, *, is_held: bool) -> float:
    """Drain n tasks; return the seconds from the first handler call."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, n)
    bench.settle(engine, dsn)
    with held(bench.server.admin(dsn)) if is_held else nullcontext(), bench.workers(engine, dsn) as crew:
        return bench.wait_drained(engine, dsn, n, crew, within=WAIT)


@contextmanager
def held(admin: str) -> Iterator[None]:
    """Hold a snapshot while the block runs; it sees the database as it was when the block began."""
    with psycopg.connect(admin) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from pg_class")
        yield
        connection.rollback()
