"""Ingest beside dlt: the same rows of the same source table, with the same mapping function, merged into a table."""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import time
from typing import NamedTuple

import psycopg

import home
from bench import Bench
from engines import Engine
from sections.ingest import PAGE, filled, fresh, pull

NAME = "pulls"
TITLE = "Ingest: a table of another database, beside dlt"
# How dlt reads, how it loads, and in how many parallel resources.
SETTINGS = (
    ("sqlalchemy", "insert_values", 1), ("sqlalchemy", "csv", 1), ("sqlalchemy", "csv", 2), ("pyarrow", "insert_values", 1),
    ("pyarrow", "csv", 1), ("pyarrow", "csv", 2),
)  # fmt: skip
VECTORISED = ("vectorised", "csv", 1)
DLT = Engine(
    "dlt", "dlt_adapter.py", "python", "dlt", None,
    settings="postgres destination, merge by upsert, each backend with insert-values and CSV, one and two resources",
    promises="a load is one transaction; the state of the pull is in the target", can=frozenset(),
)  # fmt: skip


class Used(NamedTuple):
    """The seconds that a pull took, and the seconds of CPU of its client's processes, their start included."""

    seconds: float
    cpu: float


def measure(bench: Bench) -> None:
    """Pull the rows with both in turn, with dlt at each setting; the fastest one counts."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    rows = bench.tasks or bench.size(500_000, 5_000)
    home.ensure_python()
    for number, engine in bench.turns():
        with bench.attempt(engine):
            source = filled(bench, rows)
            ours = pulled(bench, source)
            bench.record(engine, "pull", number, rows / ours.seconds, "rows/s", n=rows)
            bench.record(engine, "pull, CPU", number, 1e6 * ours.cpu / rows, "us/row", n=rows)
            theirs = {setting: loaded(bench, source, rows, setting) for setting in SETTINGS}
            for (backend, form, workers), used in theirs.items():
                what = f"pull, {backend}, {form}, {workers}"
                bench.record(DLT, what, number, rows / used.seconds, "rows/s", n=rows)
            fastest = min(theirs.values())
            bench.record(DLT, "pull", number, rows / fastest.seconds, "rows/s", n=rows)
            bench.record(DLT, "pull, CPU", number, 1e6 * fastest.cpu / rows, "us/row", n=rows)
            columns = loaded(bench, source, rows, VECTORISED)
            bench.record(DLT, "pull, columns mapped", number, rows / columns.seconds, "rows/s", n=rows)


def pulled(bench: Bench, source: str) -> Used:
    """Pull with one worker process."""
    before = cpu()
    dsn = fresh(bench)
    pull(dsn, source, PAGE, 1)
    with psycopg.connect(dsn) as db:
        row = db.execute(
            "select extract(epoch from r.completed_at - r.started_at)::float8 from ingest.run_metadata r"
        ).fetchone()
    return Used(0.0 if row is None else row[0], cpu() - before)


def loaded(bench: Bench, source: str, rows: int, setting: tuple[str, str, int]) -> Used:
    """Pull with dlt in an interpreter of its own."""
    backend, form, workers = setting
    dsn = bench.server.fresh("pulls dlt")
    folder = home.home() / f"dlt-{time.monotonic_ns()}"
    command = [
        home.peers_python(), home.ADAPTERS / DLT.adapter, source, dsn, backend, form, str(workers), str(folder),
    ]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    if done.returncode:
        raise RuntimeError(f"dlt with {backend}, {form}, {workers}: {done.stderr[-600:]}")
    with psycopg.connect(dsn) as db:
        if db.execute("select count(*), count(distinct id) from pulled.bench_orders").fetchone() != (rows, rows):
            raise RuntimeError(f"dlt with {backend}, {form}, {workers} did not bring {rows} rows")
    figures = json.loads(done.stdout.splitlines()[-1])
    return Used(figures["seconds"], figures["cpu"])


def cpu() -> float:
    """Return the seconds of CPU of the processes that were started here and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
