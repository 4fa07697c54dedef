"""Bulk start: tasks per second by the best bulk call that each engine has."""

from __future__ import annotations

from bench import Bench

NAME = "bulk"
TITLE = "Bulk start of tasks"


def measure(bench: Bench) -> None:
    """Enqueue each engine's lot into an empty database."""
    for number, engine in bench.turns("bulk"):
        with bench.attempt(engine):
            n = bench.lot(engine)
            dsn = bench.prepare(engine)
            bench.record(engine, "bulk start", number, n / bench.enqueue(engine, dsn, n), "tasks/s", n=n)
