"""Retention: how fast a worker process drains while a million finished tasks are removed beside it, and alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta

import psycopg

from bench import Bench
from engines import Engine
from history import grow
from holdfast.worker.options import Options
from holdfast.worker.sweeper import Sweeper
from sections.growth import fill, rate, seed

NAME = "retention"
TITLE = "Drain beside a sweep"
ALONE, BESIDE = "alone", "beside a sweep"
AGE = """
set session_replication_role = replica;
update holdfast.steps set created_at = created_at - interval '40 days', finished_at = finished_at - interval '40 days';
reset session_replication_role;
update holdfast.retention_sweep set begins_at = clock_timestamp() - interval '1 hour';
"""
LEFT = "select count(*) from holdfast.steps where finished_at < clock_timestamp() - interval '30 days'"


def measure(bench: Bench) -> None:
    """Grow the history once, and drain beside copies of it, with and without a sweep."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    size = 10 * bench.tasks if bench.tasks else bench.size(1_000_000, 100_000)
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            if number == 1:
                make_old(bench, engine, size)
            for what in (ALONE, BESIDE):
                dsn = bench.server.fresh(engine.name, "old tasks", is_large=True)
                due, n = fill(bench, engine, dsn)
                with sweeping(dsn) if what == BESIDE else nullcontext():
                    speed = rate(bench, engine, dsn, n, due)
                removed = size - left(bench.server.admin(dsn))
                bench.say(f"{what}: {removed:,} old tasks were removed meanwhile".replace(",", " "))
                bench.record(engine, what, number, speed, "tasks/s", n=n, due=due)
                if what == BESIDE and removed == 0:
                    raise RuntimeError("nothing was removed beside the drain")


def make_old(bench: Bench, engine: Engine, size: int) -> None:
    """Make a database in which so many tasks ended long ago."""
    seed(bench, engine)
    bench.say(f"{engine.name}: making {size:,} old tasks".replace(",", " "))
    dsn = bench.server.fresh("old tasks", engine.name, is_large=True)
    admin = bench.server.admin(dsn)
    grow(admin, engine.name, size)
    with psycopg.connect(admin, autocommit=True) as connection:
        for statement in AGE.strip().split(";\n"):
            connection.execute(statement)  # type: ignore[arg-type]
    bench.server.settle(dsn)


def left(admin: str) -> int:
    """Count the old tasks that are still there."""
    with psycopg.connect(admin) as connection:
        row = connection.execute(LEFT).fetchone()
        return 0 if row is None else int(row[0])


@contextmanager
def sweeping(dsn: str) -> Iterator[None]:
    """Sweep as a worker does, at its pace, while the block runs."""
    loop = asyncio.new_event_loop()
    sweeper = Sweeper(dsn, Options(recovery_interval=timedelta(milliseconds=1)))
    task = loop.create_task(sweeper.sweep())

    def work() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            loop.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
