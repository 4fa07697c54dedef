"""Memory: what one worker process and its children hold in RAM on the way through a million tasks."""

from __future__ import annotations

import psutil

import processes
from bench import Bench
from engines import FAST, Engine

NAME = "memory"
TITLE = "Memory of a worker over many tasks"
WAIT = 1200.0
SHARES = (10, 50, 100)
QUICK = ("holdfast", "baseline", "pgqueuer")


def measure(bench: Bench) -> None:
    """Read the resident memory after a tenth, a half and all of the tasks."""
    for engine in bench.engines("drain"):
        if engine.lot < FAST or engine.name == "awa":
            bench.left_out(engine, "a million tasks take it minutes, and the run has to end")
    n = bench.tasks or bench.size(1_000_000, 50_000)
    bench.section.rounds = 1  # a size does not tremble as a time does
    for number, engine in bench.turns("drain", in_quick=QUICK):
        with bench.attempt(engine):
            for share, size in drained(bench, engine, n):
                bench.record(engine, f"at {share} %", number, size, "MiB", n=n)


def drained(bench: Bench, engine: Engine, n: int) -> list[tuple[int, float]]:
    """Drain n tasks with one process; return the memory at each share of them."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, n)
    bench.settle(engine, dsn)
    sizes = []
    with bench.workers(engine, dsn) as crew:
        for share in SHARES:
            least = n * share // 100
            processes.wait_until(lambda: crew.probes.calls() >= least, WAIT, crew, f"to call {least} handlers")  # noqa: B023 - it is called before the next
            sizes.append((share, sum(resident(process.pid) for process in crew.processes)))
        bench.wait_drained(engine, dsn, n, crew, within=WAIT)
    return sizes


def resident(pid: int) -> float:
    """Return the mebibytes that a process and those it has started hold."""
    process = psutil.Process(pid)
    return sum(member.memory_info().rss for member in (process, *process.children(recursive=True))) / 2**20
