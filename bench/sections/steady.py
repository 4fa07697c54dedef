"""Steady load with per-task acknowledgement: what an engine holds at 70 % of the rate it drains at in that mode."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import processes
from bench import Bench
from engines import Engine
from processes import Crew
from readings import percentile

NAME = "steady"
TITLE = "Steady load, each task acknowledged by itself"
SHARE = 0.7
A_PRODUCER = 400  # tasks a second that one producer is trusted with
PRODUCERS = 2
SENDERS = 4  # at once, in a producer
STATISTICS_WAIT = 1.2  # seconds: sessions tell the statistics what they did once a second
DRAIN_WAIT = 90.0
ARRIVAL_WAIT = 60.0
IN_QUICK = ("holdfast", "baseline", "pgqueuer", "graphile-worker")
DEAD = "select coalesce(sum(n_dead_tup), 0)::bigint from pg_stat_user_tables"
SIZE = "select pg_database_size(current_database())"


@dataclass(frozen=True)
class Held:
    """The result of a load: tasks per second that were sent and begun while it lasted, and how long they waited."""

    sent: float
    begun: float
    p50: float
    p99: float


def measure(bench: Bench) -> None:
    """Drain a lot in the mode of one acknowledgement per task, then hold a share of that rate with the same worker."""
    for number, engine in bench.turns("steady", in_quick=IN_QUICK):
        with bench.attempt(engine):
            n = bench.tasks or bench.size(3000, 600)
            dsn = bench.prepare(engine)
            bench.enqueue(engine, dsn, n, **engine.each)
            bench.settle(engine, dsn)
            with bench.workers(engine, dsn, **engine.each) as crew:
                rate = n / bench.wait_drained(engine, dsn, n, crew, within=DRAIN_WAIT)
                bench.record(engine, "drain", number, rate, "tasks/s", n=n)
                hold(bench, engine, crew, dsn=dsn, number=number, rate=rate * SHARE)


def hold(bench: Bench, engine: Engine, crew: Crew, *, dsn: str, number: int, rate: float) -> None:
    """Send at the rate for a while, and record the result."""
    seconds, producers = bench.size(6, 3), min(PRODUCERS, math.ceil(rate / A_PRODUCER))
    senders = producers * SENDERS
    tasks = round(rate / senders * seconds) * senders
    before = crew.probes.calls()
    bench.settle(engine, dsn)
    size = bench.server.ask(dsn, SIZE) if engine.pending else 0
    bench.produce(engine, dsn, rate, seconds, count=producers, **engine.each, BENCH_SENDERS=SENDERS)
    processes.wait_until(lambda: crew.probes.calls() >= before + tasks, ARRIVAL_WAIT, crew, "to pick the tasks up")
    held = judge(crew.probes.moments())
    bench.record(engine, "asked", number, rate, "tasks/s", producers=producers, sent=round(held.sent, 1))
    bench.record(engine, "held", number, held.begun, "tasks/s", of_sent=round(held.begun / held.sent, 3))
    bench.record(engine, "pickup p50", number, held.p50 * 1000, "ms")
    bench.record(engine, "pickup p99", number, held.p99 * 1000, "ms")
    if engine.pending:
        time.sleep(STATISTICS_WAIT)
        bench.record(engine, "dead tuples", number, bench.server.ask(dsn, DEAD), "rows", tasks=tasks)
        bench.record(engine, "on disk", number, (bench.server.ask(dsn, SIZE) - size) / tasks, "bytes/task")


def judge(moments: Sequence[tuple[float, float]]) -> Held:
    """Judge a load by the times of each task's enqueue and begin."""
    first, last = min(sent for sent, _ in moments), max(sent for sent, _ in moments)
    in_time = sum(began <= last for _, began in moments)
    waits = [began - sent for sent, began in moments]
    lasted = last - first
    return Held(len(moments) / lasted, in_time / lasted, percentile(waits, 0.5), percentile(waits, 0.99))
