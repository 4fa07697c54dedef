"""Batch handlers: no-ops 250 at a time and with a key each, against one by one; rows written, against a loop by hand."""

from __future__ import annotations

import time

import psycopg

from bench import Bench
from hot_loop import install
from sections.drain import drain

NAME = "batches"
TITLE = "Tasks in batches of 250"
SIZE = 250
SINGLE, BATCHED, KEYED, ROWS = "one by one", "in batches of 250", "a key per task", "rows"
WRITTEN = "create table written (sent float, key int)"
LOAD = """
insert into baseline.steps (machine, kind, state, due_at, input)
select 'work.task', 'noop', 'pending', now(), '{"sent": 0.0, "key": 0}' from generate_series(1, %s)
"""
CLAIM = "select step_id, lease_id, input from baseline.claim('bench', %s, '60 s')"
INSERT = "insert into written (sent, key) select * from unnest(%s::float[], %s::int[])"
SETTLE = "select baseline.settle(%s::bigint[], %s::bigint[], array_fill('null'::jsonb, array[%s]))"


def measure(bench: Bench) -> None:
    """Drain no-ops each way, and write rows with holdfast and by hand."""
    bench.asked = [engine for engine in bench.asked if engine.is_ours]
    for number, engine in bench.turns("drain"):
        with bench.attempt(engine):
            n = bench.lot(engine)
            if engine.name == "baseline":
                dsn = bench.server.fresh(engine.name)
                install(dsn, engine.name)
                bench.record(engine, ROWS, number, n / by_hand(bench, dsn, n), "tasks/s", n=n)
                continue
            batched = {"BENCH_CALLS": SIZE}
            environments = {SINGLE: {}, BATCHED: batched, KEYED: {**batched, "BENCH_KEYS": n}}
            for what in sorted(environments, reverse=number % 2 == 0):
                seconds = drain(bench, engine, n, 1, **environments[what])
                bench.record(engine, what, number, n / seconds, "tasks/s", n=n)
            dsn = bench.prepare(engine)
            with psycopg.connect(dsn) as connection:
                connection.execute(WRITTEN)
            environment = {"BENCH_CALLS": SIZE, "BENCH_WRITES": 1}
            bench.enqueue(engine, dsn, n, **environment)
            bench.settle(engine, dsn)
            with bench.workers(engine, dsn, 1, **environment) as crew:
                seconds = bench.wait_drained(engine, dsn, n, crew)
            if bench.server.ask(dsn, "select count(*) from written") != n:
                raise RuntimeError("a task is over without its row, or has two")
            bench.record(engine, ROWS, number, n / seconds, "tasks/s", n=n)


def by_hand(bench: Bench, dsn: str, n: int) -> float:
    """Claim, then insert and settle in one transaction, until nothing is left; return the seconds."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(WRITTEN)
        connection.execute(LOAD, [n])
        bench.server.settle(dsn)
        begun = time.perf_counter()
        while rows := connection.execute(CLAIM, [SIZE]).fetchall():
            ids, leases, inputs = zip(*rows, strict=True)
            with connection.transaction():
                connection.execute(INSERT, [[each["sent"] for each in inputs], [each["key"] for each in inputs]])
                connection.execute(SETTLE, [list(ids), list(leases), len(ids)])
        return time.perf_counter() - begun
