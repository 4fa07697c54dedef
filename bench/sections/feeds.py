"""Ingest at size: a large source beside a small one, five runs over the same rows, and the document's example."""

from __future__ import annotations

import psycopg

from bench import Bench
from sections.ingest import PAGE, SMALL, filled, fresh, pull

NAME = "feeds"
TITLE = "Ingest: many records, many runs, and the document's example"
LARGE, LITTLE, EXAMPLE = 5_000_000, 50_000, 500_000
SIZE = """
select sum(pg_total_relation_size(c.oid))::float8 / 2 ^ 20 from pg_class c
 where c.relname in ('payloads_bench', 'sightings_bench', 'bench_orders') and c.relkind = 'r'
"""


def measure(bench: Bench) -> None:
    """Measure the cost of a record and the memory at both sizes, the tables after each run, and the minutes of the example."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    bench.section.rounds = 1  # each of these runs takes minutes
    large = bench.tasks or bench.size(LARGE, 2_000)
    little = min(large, bench.size(LITTLE, 1_000))
    example = min(large, bench.size(EXAMPLE, 2_000))
    for number, engine in bench.turns():
        with bench.attempt(engine):
            for label, rows in (("few", little), ("many", large)):
                pulled = pull(fresh(bench), filled(bench, rows), PAGE, 1)
                cost = 1e6 * (pulled.pages + pulled.batches) / rows
                bench.record(engine, f"a record of {label}", number, cost, "us", n=rows)
                bench.record(engine, f"memory, {label}", number, pulled.memory, "MiB", n=rows)
            source, dsn = filled(bench, example), fresh(bench)
            pulled = pull(dsn, source, SMALL, 1)
            bench.record(
                engine, "the document's example", number, (pulled.pages + pulled.batches) / 60, "min", n=example
            )
            bench.record(engine, "tables after one run", number, size(dsn), "MiB", n=example)
            for _ in range(bench.size(4, 1)):
                pull(dsn, source, PAGE, 1)
            bench.record(engine, "tables after five runs", number, size(dsn), "MiB", n=example)


def size(dsn: str) -> float:
    """Return the mebibytes of the tables of a feed, with their indexes, as autovacuum left them."""
    with psycopg.connect(dsn) as db:
        row = db.execute(SIZE).fetchone()
    return 0.0 if row is None else float(row[0])
