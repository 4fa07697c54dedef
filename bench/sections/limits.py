"""Limits: what they cost where they never bind, drains under a thousand keys and behind parked steps, and an exact rate."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import processes
from bench import Bench
from engines import FAST, SLOW, Engine

NAME = "limits"
TITLE = "Work under limits"
LABELS = {1: "1 process", 2: "2 processes"}
LOOSE = {"queue:*": {"concurrency": 100_000, "rate": 1_000_000, "per": 1, "burst": 100_000_000}}
KEYS, AT_ONCE = 1_000, 200
KEYED = {"key:*": {"concurrency": 1}}
SHUT = {"shut": {"concurrency": 0}}
RATE, WORKERS, SKIPPED = 100, 4, 3  # seconds, until the burst is over
PACED = {"api": {"rate": RATE, "per": 1, "burst": RATE // 2}}  # less than what would shift the mean of a minute by 1
WAIT = 900.0
PARKED = "select coalesce(sum(parked), 0) from holdfast.limit_states"
# Unlike a count of what is unfinished, it does not read what is parked.
AT_WORK = """
select (exists (select from holdfast.steps where due_at is not null)
        or exists (select from holdfast.steps where lease_until is not null))::int
"""
PEERS = ("graphile-worker", "procrastinate")


def measure(bench: Bench) -> None:
    """Measure holdfast with and without each limit in turn, and the peers that have queues or locks by name."""
    bench.asked = [engine for engine in bench.asked if engine.name in {"holdfast", *PEERS}]
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            keyed(bench, engine, number)
            if engine.name == "holdfast":
                never_binding(bench, engine, number)
                behind_parked(bench, engine, number)
                paced(bench, engine, number)


def never_binding(bench: Bench, engine: Engine, number: int) -> None:
    """Drain without a limit and under a concurrency and a bucket that never bind, with one and with two processes."""
    n = bench.lot(engine)
    for count, label in LABELS.items():
        for what, limits in (("no limit", {}), ("limits that never bind", LOOSE)):
            rate = n / drain(bench, engine, n, count, **given(limits))
            bench.record(engine, f"{what}, {label}", number, rate, "tasks/s", n=n)


def keyed(bench: Bench, engine: Engine, number: int) -> None:
    """Drain tasks of a thousand keys, of each of which one runs at a time; holdfast also without the limit."""
    n = bench.tasks or bench.size(SLOW if engine.lot == SLOW else FAST, SLOW // 2 if engine.lot == SLOW else FAST // 5)
    if engine.name == "holdfast":
        rate = n / drain(bench, engine, n, 1, BENCH_CONCURRENCY=AT_ONCE)
        bench.record(engine, f"no limit, {AT_ONCE} at once", number, rate, "tasks/s", n=n)
        more = {"BENCH_CONCURRENCY": AT_ONCE, **given(KEYED, "key:{key}")}
    else:
        more = {}
    rate = n / drain(bench, engine, n, 1, BENCH_KEYS=KEYS, **more)
    bench.record(engine, "1 000 keys", number, rate, "tasks/s", n=n)


def drain(bench: Bench, engine: Engine, n: int, count: int, **environment: object) -> float:
    """Drain n tasks that are there before the workers start; return the seconds from the first handler call."""
    dsn = bench.prepare(engine)
    bench.enqueue(engine, dsn, n, **environment)
    bench.settle(engine, dsn)
    with bench.workers(engine, dsn, count, **environment) as crew:
        return bench.wait_drained(engine, dsn, n, crew, within=WAIT)


def behind_parked(bench: Bench, engine: Engine, number: int) -> None:
    """Drain free tasks alone, and again where ten times as many are parked on a limit that is shut."""
    n = bench.tasks or bench.size(20_000, 4_000)
    for what, parked in (("free tasks alone", 0), ("free tasks behind parked ones", 10 * n)):
        dsn = bench.prepare(engine)
        if parked:
            park(bench, engine, dsn, parked)
        bench.enqueue(engine, dsn, n, **given(SHUT))
        bench.settle(engine, dsn)
        seconds = drain_free(bench, engine, dsn, n)
        bench.record(engine, what, number, n / seconds, "tasks/s", n=n, parked=parked)


def drain_free(bench: Bench, engine: Engine, dsn: str, n: int) -> float:
    """Drain the n tasks that are free; return the seconds from the first handler call."""
    with bench.workers(engine, dsn, **given(SHUT)) as crew:
        processes.wait_until(lambda: crew.probes.calls() >= n, WAIT, crew, f"to call {n} handlers")
        processes.wait_until(lambda: not bench.server.ask(dsn, AT_WORK), WAIT, crew, "to finish")
        return time.time() - crew.probes.first()


def park(bench: Bench, engine: Engine, dsn: str, amount: int) -> None:
    """Start tasks that a shut limit refuses, and let a worker park them."""
    bench.enqueue(engine, dsn, amount, **given(SHUT, "shut"))
    with bench.workers(engine, dsn, **given(SHUT)) as crew:
        processes.wait_until(lambda: bench.server.ask(dsn, PARKED) >= amount, WAIT, crew, "to park them")


def paced(bench: Bench, engine: Engine, number: int) -> None:
    """Let four workers share a rate, and count the handlers that began in each second after the burst."""
    seconds = 2 if bench.tasks else bench.size(60, 10)
    dsn = bench.prepare(engine)
    limits = given(PACED, "api")
    bench.enqueue(engine, dsn, RATE * (seconds + SKIPPED + 15), BENCH_SENT=1, **limits)
    bench.settle(engine, dsn)
    with bench.workers(engine, dsn, WORKERS, **limits) as crew:
        processes.wait_until(lambda: crew.probes.calls() > 0, WAIT, crew, "to begin")
        begun = crew.probes.first()
        until = begun + SKIPPED + seconds + 1
        processes.wait_until(lambda: time.time() > until, WAIT, crew, "to work at the rate")
        moments = [at - begun - SKIPPED for _, at in crew.probes.moments()]
    counts = by_second(moments, seconds)
    bench.record(
        engine, f"{RATE}/s over {WORKERS} workers", number, sum(counts) / seconds, "begun/s",
        seconds=seconds, least=min(counts), most=max(counts),
    )  # fmt: skip


def by_second(moments: Sequence[float], seconds: int) -> list[int]:
    """Count moments by whole seconds, from 0 up to `seconds`."""
    counts = [0] * seconds
    for moment in moments:
        if 0 <= moment < seconds:
            counts[int(moment)] += 1
    return counts


def given(limits: dict[str, Any], *names: str) -> dict[str, object]:
    """Return the environment of holdfast's adapter: the rules, and what its task names."""
    return {"BENCH_LIMITS": json.dumps(limits), "BENCH_NAMES": " ".join(names)}
