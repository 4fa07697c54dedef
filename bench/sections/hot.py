"""The SQL by itself: the same loop, in this process, over the functions of holdfast and of the baseline."""

from __future__ import annotations

from bench import Bench
from hot_loop import install, load, rate

NAME = "hot"
TITLE = "The SQL by itself, without a worker around it"
WORKS = ("tasks", "one run", "diamonds")


def measure(bench: Bench) -> None:
    """Drain tasks, the steps of one run and the steps of diamonds, each in an empty database."""
    bench.asked = [engine for engine in bench.asked if engine.is_ours]
    steps = bench.tasks or bench.size(100_000, 20_000)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            for work in WORKS:
                dsn = bench.server.fresh(engine.name)
                install(dsn, engine.name)
                loaded = load(bench.server.admin(dsn), engine.name, work, steps)
                bench.server.settle(dsn)
                bench.record(engine, work, number, rate(dsn, engine.name, loaded), "steps/s", n=loaded)
