"""Drain: no-op tasks per second, with one and with two worker processes."""

from __future__ import annotations

from bench import Bench
from engines import SLOW, Engine

NAME = "drain"
TITLE = "Drain of no-op tasks"
LABELS = {1: "1 process", 2: "2 processes"}


def measure(bench: Bench) -> None:
    """Drain each engine's lot with one worker process, then with two."""
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            n = bench.lot(engine)
            for processes, label in LABELS.items():
                if bench.quick and engine.lot == SLOW and processes > 1:
                    break
                bench.record(engine, label, number, n / drain(bench, engine, n, processes), "tasks/s", n=n)


def drain(bench: Bench, engine: Engine, n: int, processes: int, **environment: object) -> float:
    """Drain n tasks that are there before the workers start; return the seconds from the first handler call."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, n, **environment)
    bench.settle(engine, dsn)
    with bench.workers(engine, dsn, processes, **environment) as crew:
        return bench.wait_drained(engine, dsn, n, crew)
