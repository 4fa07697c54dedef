"""Growth: how fast a worker process drains beside a thousand, a hundred thousand, a million and three million finished tasks."""

from __future__ import annotations

from collections.abc import Sequence

import processes
from bench import Bench
from engines import Engine
from history import grow

NAME = "growth"
TITLE = "Drain beside finished work"
WAIT = 600.0
SEED = 1000  # tasks that the engine works itself, to be cloned
SIZES = (1_000, 100_000, 1_000_000, 3_000_000)
QUICK_SIZES = (1_000, 100_000)
MEASURED = ("holdfast", "baseline", "pgqueuer")
NO_HISTORY = {
    "graphile-worker": "it deletes finished jobs, so there is no history to grow",
    "celery+redis": "it keeps no finished tasks unless a result store is set up",
    "awa": "it keeps finished jobs for a short time, in batch rows of a ring that it truncates",
}


def measure(bench: Bench) -> None:
    """Grow the history once per size, and drain beside copies of it."""
    for engine in bench.engines("drain"):
        if engine.name in NO_HISTORY:
            bench.left_out(engine, NO_HISTORY[engine.name])
        elif engine.name not in MEASURED:
            bench.left_out(
                engine, "not measured here: three million tasks take it long to make, and the run has to end"
            )
    sizes = QUICK_SIZES if bench.quick else SIZES
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            if number == 1:
                make_histories(bench, engine, sizes)
            for size in sizes:
                dsn = bench.server.fresh(engine.name, beside(engine, size), is_large=True)
                due, n = fill(bench, engine, dsn)
                label = f"beside {size:,}".replace(",", " ")
                bench.record(engine, label, number, rate(bench, engine, dsn, n, due), "tasks/s", n=n, due=due)


def make_histories(bench: Bench, engine: Engine, sizes: Sequence[int]) -> None:
    """Make a database for each size, each a copy of the one before with more clones of what the engine finished itself."""
    seed(bench, engine)
    came_from = engine.name
    for size in sizes:
        bench.say(f"{engine.name}: making {size:,} finished tasks".replace(",", " "))
        dsn = bench.server.fresh(beside(engine, size), came_from, is_large=True)
        grow(bench.server.admin(dsn), engine.name, size)
        bench.server.settle(dsn)
        came_from = beside(engine, size)


def beside(engine: Engine, size: int) -> str:
    """Return the database that has so many finished tasks."""
    return f"{engine.name} beside {size}"


def seed(bench: Bench, engine: Engine) -> None:
    """Let the engine itself finish some tasks, in the database of its name."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, SEED)
    with bench.workers(engine, dsn) as crew:
        bench.wait_drained(engine, dsn, SEED, crew)


def fill(bench: Bench, engine: Engine, dsn: str) -> tuple[int, int]:
    """Enqueue the tasks that are due; return how many, and for how many of them the drain is timed."""
    due = bench.tasks or bench.size(100_000, 20_000)
    bench.enqueue(engine, dsn, due)
    bench.settle(engine, dsn)
    return due, due // 2


def rate(bench: Bench, engine: Engine, dsn: str, n: int, due: int) -> float:
    """Drain what is due with one process, and return how many of the first n or so that is per second.

    Between two looks at the counter: what was claimed before the first call would count for nothing.
    """
    with bench.workers(engine, dsn) as crew:
        processes.wait_until(lambda: crew.probes.calls() > 0, WAIT, crew, "to call a handler")
        (first,) = crew.probes.counts()
        enough = min(first.calls + n, due)
        processes.wait_until(lambda: crew.probes.calls() >= enough, WAIT, crew, f"to call {enough} handlers")
        (last,) = crew.probes.counts()
        bench.wait_drained(engine, dsn, due, crew, within=WAIT)
    if last.calls == first.calls:
        raise RuntimeError(f"{last.calls} tasks were through before the first look: too few to be timed")
    return (last.calls - first.calls) / (last.last - first.last)
