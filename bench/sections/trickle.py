"""Trickle: milliseconds from the call of enqueue to the handler's first line, at 20 tasks per second."""

from __future__ import annotations

import processes
from bench import Bench
from engines import Engine
from processes import Crew
from readings import percentile

NAME = "trickle"
TITLE = "Latency of a trickle"
RATE = 20
ARRIVAL_WAIT = 15.0
IN_QUICK = ("holdfast", "baseline", "pgqueuer", "graphile-worker", "pg-boss")
WARM = 10  # tasks before those that count: caches, plans, and connections that open with the first


def measure(bench: Bench) -> None:
    """Let one waiting worker process pick tasks up."""
    for number, engine in bench.turns("trickle", in_quick=IN_QUICK):
        with bench.attempt(engine):
            seconds = bench.size(8, 3)
            dsn = bench.prepare(engine)
            with bench.workers(engine, dsn) as crew:
                waits = trickle(bench, engine, dsn, crew, seconds)
            for label, share in (("p50", 0.5), ("p99", 0.99)):
                bench.record(engine, label, number, percentile(waits, share) * 1000, "ms", tasks=len(waits))


def trickle(bench: Bench, engine: Engine, dsn: str, crew: Crew, seconds: float) -> list[float]:
    """Enqueue at the rate, and return the seconds that each task waited, but for the first ones."""
    tasks = WARM + int(RATE * seconds)
    bench.produce(engine, dsn, RATE, tasks / RATE)
    processes.wait_until(lambda: crew.probes.calls() >= tasks, ARRIVAL_WAIT, crew, "to pick the tasks up")
    return [began - sent for sent, began in sorted(crew.probes.moments())[WARM:]]
