"""Large runs: what it takes to queue, pause, resume and stop one, how soon that is felt, and what it does to others."""

from __future__ import annotations

import statistics
import time
from uuid import UUID

import plans
import processes
from bench import Bench
from engines import Engine
from holdfast.kernel import calls
from processes import Crew
from sections.memory import resident

NAME = "pause"
TITLE = "Queue, pause, resume and stop a run with many steps"
WAIT = 1200.0
TIMES = 5
SLEEP = 0.05  # seconds of a handler: what a worker has fetched ahead takes longer than a second
QUIET = 3.0  # seconds in which a call after a pause would be seen
FEW = 100
OVER = "select count(*) from holdfast.runs where id = '{}' and finished_at is not null"


def measure(bench: Bench) -> None:
    """Time the calls on a small and a large run, then let a worker work on the large one."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    many = bench.tasks or bench.size(1_000_000, 20_000)
    sizes = {"small": min(10_000, many // 2), "large": many}
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            dsn = bench.prepare(engine)
            plans.install(bench.server.admin(dsn))
            runs = {size: plans.draft(dsn, steps) for size, steps in sizes.items()}
            bench.server.settle(dsn)
            for size, run_id in runs.items():
                for what, seconds in answers(dsn, run_id).items():
                    bench.record(engine, f"{what}, {size}", number, 1000 * seconds, "ms", n=sizes[size])
            felt(bench, engine, number, many)
            drained(bench, engine, number, many)


def answers(dsn: str, run_id: UUID) -> dict[str, float]:
    """Queue, pause, resume and stop a run; return the seconds of each."""
    spent: dict[str, list[float]] = {"queue": [plans.queue(dsn, run_id)], "pause": [], "resume": []}
    for _ in range(TIMES):
        spent["pause"].append(plans.timed(dsn, calls.pause_run(str(run_id))))
        spent["resume"].append(plans.timed(dsn, calls.resume_run(str(run_id))))
    spent["stop"] = [plans.timed(dsn, calls.stop_run(str(run_id)))]
    return {what: statistics.median(each) for what, each in spent.items()}


def felt(bench: Bench, engine: Engine, number: int, many: int) -> None:
    """Pause and stop a run that a worker works on, and time the last handler call after each answer."""
    dsn, run_id = queued(bench, engine, many)
    with bench.workers(engine, dsn, BENCH_SLEEP=SLEEP) as crew:
        for what, call in (("pause", calls.pause_run), ("stop", calls.stop_run)):
            begun = crew.probes.calls()
            processes.wait_until(lambda: crew.probes.calls() > begun + 20, WAIT, crew, "to begin")  # noqa: B023 - it is called before the next
            plans.timed(dsn, call(str(run_id)))
            answered = time.time()
            time.sleep(QUIET)
            late = max(0.001, crew.probes.last() - answered)
            bench.record(engine, f"last call after {what}", number, late, "s", n=many)
            if what == "pause":
                plans.timed(dsn, calls.resume_run(str(run_id)))


def drained(bench: Bench, engine: Engine, number: int, many: int) -> None:
    """Drain a large run, with a small one beside it, and read the worker's memory on the way."""
    dsn, run_id = queued(bench, engine, FEW, is_queued=False)
    with bench.workers(engine, dsn) as crew:
        bench.record(engine, "100 alone", number, finished(bench, dsn, run_id, crew), "s", n=FEW)
    dsn, _ = queued(bench, engine, many)
    few = plans.draft(dsn, FEW)
    with bench.workers(engine, dsn) as crew:
        sizes = {}
        for share in (10, 100):
            least = many * share // 100
            processes.wait_until(lambda: crew.probes.calls() >= least, WAIT, crew, f"to call {least} handlers")  # noqa: B023 - as above
            sizes[share] = sum(resident(process.pid) for process in crew.processes)
            if share == 10:
                bench.record(engine, "100 beside", number, finished(bench, dsn, few, crew), "s", n=FEW)
    for share, size in sizes.items():
        bench.record(engine, f"memory at {share} %", number, size, "MiB", n=many)


def queued(bench: Bench, engine: Engine, count: int, *, is_queued: bool = True) -> tuple[str, UUID]:
    """Make a database with one run, and queue it."""
    dsn = bench.prepare(engine)
    plans.install(bench.server.admin(dsn))
    run_id = plans.draft(dsn, count)
    if is_queued:
        plans.queue(dsn, run_id)
    bench.server.settle(dsn)
    return dsn, run_id


def finished(bench: Bench, dsn: str, run_id: UUID, crew: Crew) -> float:
    """Queue a run, and return the seconds until it is over."""
    begun = time.perf_counter()
    plans.queue(dsn, run_id)
    processes.wait_until(lambda: bench.server.ask(dsn, OVER.format(run_id)), WAIT, crew, "to finish a run")
    return time.perf_counter() - begun
