"""Cancel and retry of a run with a million steps, by one idle worker, and how long others wait for what it locks."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg

import plans
import processes
from bench import Bench
from engines import Engine
from holdfast.kernel import calls

NAME = "cancel"
TITLE = "Cancel and retry of one run with many steps"
WAIT = 1200.0
FAILED = """
set session_replication_role = replica;
update holdfast.steps set state = 'error', last_event = 'failed', due_at = null, finished_at = created_at, failures = 1;
update holdfast.runs set state = 'error', last_event = 'none_succeeded', live = 0, failed = total,
                         started_at = created_at, finished_at = clock_timestamp();
"""
NEXT_STEP = "select from holdfast.steps where id = (select moved_until + 1 from holdfast.runs where id = %s) for update"
RUN = "select from holdfast.runs where id = %s for update"
MOVING = "select count(*) from holdfast.runs where moving is not null"


def measure(bench: Bench) -> None:
    """Cancel one run and retry another, each in a database of its own with a worker that has nothing else to do."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    count = bench.tasks or bench.size(1_000_000, 20_000)
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            for what, prepare in (("cancel", queued), ("retry", failed)):
                dsn = bench.prepare(engine)
                run_id = prepare(bench, dsn, count)
                bench.server.settle(dsn)
                speed, wait = moved(bench, engine, dsn, run_id, what=what, count=count)
                bench.record(engine, what, number, speed, "steps/s", n=count)
                bench.record(engine, f"{what}, longest wait", number, 1000 * wait, "ms", n=count)


def queued(bench: Bench, dsn: str, count: int) -> UUID:
    """Make a run with a window, and queue it."""
    plans.install(bench.server.admin(dsn))
    run_id = plans.draft(dsn, count)
    plans.queue(dsn, run_id)
    return run_id


def failed(bench: Bench, dsn: str, count: int) -> UUID:
    """Make a run without a window, of which all steps have failed."""
    run_id = plans.draft(dsn, count, machine="flow.task", step_machine="flow.step")
    with psycopg.connect(bench.server.admin(dsn)) as connection:
        connection.execute(FAILED.encode())
    return run_id


def moved(bench: Bench, engine: Engine, dsn: str, run_id: UUID, *, what: str, count: int) -> tuple[float, float]:
    """Make the call, wait until all steps have followed, and return the steps per second and the longest wait.

    The queue is paused: a worker that ran the retried steps would not be idle.
    """
    call = calls.cancel(str(run_id)) if what == "cancel" else calls.retry(str(run_id))
    plans.timed(dsn, calls.pause_queue("default"))
    with bench.workers(engine, dsn) as crew, waiting(dsn, run_id) as waits:
        processes.wait_until(
            lambda: bench.server.ask(dsn, "select count(*) from holdfast.workers") > 0, WAIT, crew, "to connect"
        )
        begun = time.perf_counter()
        plans.timed(dsn, call)
        processes.wait_until(lambda: bench.server.ask(dsn, MOVING) == 0, WAIT, crew, f"to {what} {count} steps")
        seconds = time.perf_counter() - begun
    return count / seconds, max(waits)


@contextmanager
def waiting(dsn: str, run_id: UUID) -> Iterator[list[float]]:
    """Lock the next step to be moved, and the run, again and again while the block runs; collect the waits in seconds."""
    waits = [0.0]
    is_over = threading.Event()

    def wait() -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            while not is_over.wait(0.001):
                for statement in (NEXT_STEP, RUN):
                    begun = time.perf_counter()
                    connection.execute(statement, [run_id])
                    waits.append(time.perf_counter() - begun)

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        yield waits
    finally:
        is_over.set()
        thread.join()
