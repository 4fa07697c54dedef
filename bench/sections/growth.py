"""Growth: how fast a worker process drains beside a thousand, a hundred thousand, a million and three million finished tasks."""

from __future__ import annotations

import processes
from bench import Bench
from engines import FAST, Engine
from history import HISTORIES, grow

NAME = "growth"
TITLE = "Drain beside finished work"
WAIT = 600.0
SEED = 1000  # tasks that the engine works itself, to be cloned
SIZES = (1_000, 100_000, 1_000_000, 3_000_000)
FEW_SIZES = (1_000, 100_000)  # of a quick run, and of slow engines
QUICK = ("holdfast", "baseline", "pgqueuer")
NO_HISTORY = {
    "graphile-worker": "it deletes finished jobs, so there is no history to grow",
    "celery+redis": "it keeps no finished tasks unless a result store is set up",
    "awa": "it keeps finished jobs for a short time, in batch rows of a ring that it truncates",
}


def measure(bench: Bench) -> None:
    """Grow the history upward in one database, so that a round loads it once."""
    for engine in bench.engines("drain"):
        if engine.name not in HISTORIES:
            bench.left_out(engine, NO_HISTORY.get(engine.name, "its history is not known to the bench"))
    for number, engine in bench.turns("drain", in_quick=QUICK):
        with bench.attempt(engine):
            dsn = seeded(bench, engine)
            for size in sizes(bench, engine):
                grow(bench.server.admin(dsn), engine.name, size)
                due, n = fill(bench, engine, dsn)
                label = f"beside {size:,}".replace(",", " ")
                bench.record(engine, label, number, rate(bench, engine, dsn, n, due), "tasks/s", n=n, due=due)
            bench.server.drop(bench.server.name_of(engine.name))  # its rows are many: leave the disk to the next


def sizes(bench: Bench, engine: Engine) -> tuple[int, ...]:
    """Tell beside how many finished tasks it is measured."""
    return SIZES if engine.lot == FAST and not bench.quick else FEW_SIZES


def seeded(bench: Bench, engine: Engine) -> str:
    """Give the address of a database in which the engine itself has finished some tasks."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, SEED)
    with bench.workers(engine, dsn) as crew:
        bench.wait_drained(engine, dsn, SEED, crew)
    return dsn


def fill(bench: Bench, engine: Engine, dsn: str) -> tuple[int, int]:
    """Enqueue the tasks that are due; tell how many, and for how many of them the drain is timed."""
    due = bench.tasks or (bench.size(100_000, 20_000) if engine.lot == FAST else 4_000)
    bench.enqueue(engine, dsn, due)
    bench.settle(engine, dsn)
    return due, due // (5 if engine.lot == FAST else 2)


def rate(bench: Bench, engine: Engine, dsn: str, n: int, due: int) -> float:
    """Drain what is due with one process, and tell how many of the first n or so that is a second.

    Between two looks at the counter: what was claimed before the first call would count for nothing.
    """
    with bench.workers(engine, dsn) as crew:
        processes.wait_until(lambda: has_begun(crew), WAIT, crew, "to call a handler")
        (first,) = crew.probes.counts()
        enough = min(first.calls + n, due)
        processes.wait_until(lambda: crew.probes.calls() >= enough, WAIT, crew, f"to call {enough} handlers")
        (last,) = crew.probes.counts()
        bench.wait_drained(engine, dsn, due, crew, within=WAIT)  # the rest: nothing half done is left to the next size
    if last.calls == first.calls:
        raise RuntimeError(f"{last.calls} tasks were through before the first look: too few to be timed")
    return (last.calls - first.calls) / (last.last - first.last)


def has_begun(crew: processes.Crew) -> bool:
    """Say whether the first call is written down whole: a look may fall into the middle of it."""
    return any(count.last >= count.first > 0 for count in crew.probes.counts())
