"""Ingest: pages and batches of a feed against the same work written by hand, on one source table."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import psycopg
from psycopg import Connection

import engines
import home
from bench import Bench
from hot_loop import install
from ingest_app import TARGET
from ingest_map import to_order

NAME = "ingest"
TITLE = "Ingest: pages, batches and queries of a feed"
DB = Connection[Any]
PAGE, SMALL, BATCH, UPSERT = 1000, 30, 2000, 100
WAIT = 1800.0
SOURCE = """
create table orders (id bigint primary key, name text, cents bigint, note text, changed_at timestamptz not null);
create index on orders (changed_at, id);
"""
FILL = """
insert into orders select n, 'name ' || n, n * 7, repeat(md5(n::text), 7), now() - interval '2 days' + n * interval '1 ms'
  from generate_series(1, {}) n
"""
RAW = """
create table raw (key text primary key, payload jsonb not null, updated_at timestamptz, consolidated boolean not null default false);
create table place (at timestamptz, id bigint);
insert into place values ('-infinity', 0);
create index on raw (key) where not consolidated;
"""
NEXT = """
select t.id::text, row_to_json(t)::text, t.changed_at, t.id from orders t
 where (t.changed_at, t.id) > (%s, %s) order by t.changed_at, t.id limit %s
"""
PUT = """
insert into raw (key, payload, updated_at) select * from {} order by 1
on conflict (key) do update set payload = excluded.payload, updated_at = excluded.updated_at, consolidated = false
"""
UPSERTED = """
insert into bench_orders (id, name, cents, note) select * from unnest(%s::bigint[], %s::text[], %s::bigint[], %s::text[])
on conflict (id) do update set name = excluded.name, cents = excluded.cents, note = excluded.note, deleted_at = null
"""
SPANS = """
select extract(epoch from max(e.at) filter (where e.event = 'CONSOLIDATE') - min(e.at) filter (where e.event = 'run.workers_running'))::float8,
       extract(epoch from max(e.at) filter (where e.event = 'run.completed') - max(e.at) filter (where e.event = 'CONSOLIDATE'))::float8
  from ingest.events e where e.run_id = %s
"""
RUNS = """
set session_replication_role = replica;
insert into ingest.run_facts (run_id, feed, tenant, run_type, expected_workers, completed_workers, started_at, completed_at, state,
                              watermark_after, updated_to, trace_id)
select gen_random_uuid(), 'bench', 'default', 'incremental', 30, 30, a.at, a.at + interval '5 min', 'completed', a.at, a.at, 't'
  from generate_series(1, {}) n, lateral (select now() - n * interval '15 min' as at) a;
insert into ingest.partitions (run_id, partition_id, tenant, worker_id, status, work_item_payload, started_at, completed_at, completed)
select f.run_id, 'partition-' || p, 'default', 'w', 'completed', '{{}}', f.started_at, f.completed_at, true
  from ingest.run_facts f, generate_series(0, 29) p;
reset session_replication_role;
"""
RECENT = """
select r.run_id, r.run_type, r.completed_workers || '/' || r.expected_workers as progress,
       case when r.completed_at is not null then 'completed' when r.failed_workers > 0 then 'failed' else 'in_progress' end as status,
       r.started_at, r.completed_at, extract(epoch from (coalesce(r.completed_at, now()) - r.started_at)) / 60 as duration_minutes
  from ingest.run_metadata r
 where r.started_at > now() - interval '24 hours'
 order by r.started_at desc
"""


class Pulled(NamedTuple):
    """The seconds of a run's pages and of its consolidation, the bytes of log that it wrote, and the workers' most MiB."""

    pages: float
    batches: float
    wal: int
    memory: float


def measure(bench: Bench) -> None:
    """Measure pages and batches of both, more processes, an unchanged run, and the query of the last 24 hours."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    rows = bench.tasks or bench.size(500_000, 5_000)
    few = min(rows, bench.size(30_000, 1_500))
    for number, engine in bench.turns():
        with bench.attempt(engine):
            sources = {count: filled(bench, count) for count in {rows, few}}
            by_hand(bench, number, sources[rows], rows, PAGE)
            by_hand(bench, number, sources[few], few, SMALL)
            for processes in (1, 2, 8):
                dsn = fresh(bench)
                pulled = pull(dsn, sources[rows], PAGE, processes)
                if processes == 1:
                    bench.record(engine, f"pages of {PAGE}", number, rows / pulled.pages, "rows/s", n=rows)
                    again = pull(dsn, sources[rows], PAGE, 1)
                    bench.record(engine, "log of a first run", number, pulled.wal / rows, "bytes/row", n=rows)
                    bench.record(engine, "log of an unchanged run", number, again.wal / rows, "bytes/row", n=rows)
                label = f"{processes} process{'es' if processes > 1 else ''}"
                bench.record(engine, f"batches, {label}", number, rows / pulled.batches, "rows/s", n=rows)
            small = pull(fresh(bench), sources[few], SMALL, 1)
            bench.record(engine, f"pages of {SMALL}", number, few / small.pages, "rows/s", n=few)
            recent_runs(bench, number, bench.size(10_000, 500))


def filled(bench: Bench, rows: int) -> str:
    """Make a source of its own, with so many rows of about 300 bytes."""
    dsn = bench.server.fresh(f"ingest source {rows}")
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(SOURCE)
        db.execute(FILL.format(rows))  # type: ignore[arg-type]
    bench.server.settle(dsn)
    return dsn


def fresh(bench: Bench) -> str:
    dsn = bench.server.fresh("ingest holdfast")
    install(dsn, "holdfast")
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(TARGET)
    return dsn


def pull(dsn: str, source: str, page: int, processes: int) -> Pulled:
    """Pull the source with workers, full, and return how long its parts took."""
    env = {
        **os.environ, "HOLDFAST_DSN": dsn, "BENCH_SOURCE": source, "BENCH_PAGE": str(page), "PYTHONPATH": str(home.HERE),
        "HOLDFAST_LOG_LEVEL": "error",
    }  # fmt: skip
    start = "from ingest_app import feed; print(feed.start(full=True).id)"
    with workers(env, processes) as pid, psycopg.connect(dsn, autocommit=True) as db:
        await_all(db, processes)  # else the start of the last processes would be part of the first batches
        before = position(db)
        run_id = subprocess.run([sys.executable, "-c", start], env=env, check=True, capture_output=True, text=True)
        spans = ended(db, run_id.stdout.strip())
        return Pulled(*spans, position(db) - before, most_memory(pid))


@contextmanager
def workers(env: dict[str, str], processes: int) -> Iterator[int]:
    """Run a worker of so many processes while the block runs, which receives its process id."""
    command = [sys.executable, "-m", "holdfast", "worker", "--app", "ingest_app:hf", "--processes", str(processes)]
    with subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as crew:
        try:
            yield crew.pid
        finally:
            crew.terminate()
            crew.wait(60)


def await_all(db: DB, processes: int) -> None:
    """Wait until so many worker processes have connected."""
    until = time.monotonic() + 120
    while db.execute("select count(*) from holdfast.worker_list").fetchone() != (processes,):
        if time.monotonic() > until:
            raise RuntimeError(f"{processes} worker processes did not connect in two minutes")
        time.sleep(0.05)


def most_memory(pid: int) -> float:
    """Return the most mebibytes that a process and those it has started held at any time, as the kernel counted them."""
    process = psutil.Process(pid)
    members = [process, *process.children(recursive=True)]
    texts = [Path(f"/proc/{member.pid}/status").read_text("ascii") for member in members]
    return sum(int(text.partition("VmHWM:")[2].split()[0]) for text in texts) / 1024


def ended(db: DB, run_id: str) -> tuple[float, float]:
    """Wait for the end of a run, and return the seconds of its pages and of its consolidation."""
    until = time.monotonic() + WAIT
    while time.monotonic() < until:
        row = db.execute("select state, reason from ingest.run_metadata where run_id = %s", [run_id]).fetchone()
        state, reason = row or ("planning", None)
        if state == "completed":
            return db.execute(SPANS, [run_id]).fetchone()  # type: ignore[return-value]
        if state in ("failed", "cancelled"):
            raise RuntimeError(f"the run is {state}: {reason}")
        time.sleep(0.1)
    raise RuntimeError(f"the run did not end in {WAIT:g} s")


def position(db: DB) -> int:
    row = db.execute("select pg_current_wal_lsn() - '0/0'").fetchone()
    return 0 if row is None else int(row[0])


def by_hand(bench: Bench, number: int, source: str, rows: int, page: int) -> None:
    """Do the same as a loop: pages by COPY (small ones by arrays) with a commit each; large ones are then consolidated."""
    baseline = engines.named("baseline")
    dsn = bench.server.fresh("ingest baseline")
    with psycopg.connect(dsn) as db, psycopg.connect(source, autocommit=True) as there:
        db.execute(RAW)
        db.execute(TARGET)
        db.execute("create temporary table staged (key text, payload jsonb, updated_at timestamptz)")
        db.commit()
        begun, place = time.perf_counter(), ("-infinity", 0)
        while records := there.execute(NEXT, [*place, page]).fetchall():
            put_staged(db, records) if page == PAGE else put_arrays(db, records)
            place = records[-1][2:]
            db.execute("update place set (at, id) = (%s, %s)", place)
            db.commit()
        bench.record(baseline, f"pages of {page}", number, rows / (time.perf_counter() - begun), "rows/s", n=rows)
        if page == PAGE:
            begun = time.perf_counter()
            while consolidated(db):
                db.commit()
            bench.record(baseline, "batches, 1 process", number, rows / (time.perf_counter() - begun), "rows/s", n=rows)


def put_staged(db: DB, records: list[Any]) -> None:
    with db.cursor() as cursor, cursor.copy("copy staged from stdin") as copy:
        for record in records:
            copy.write_row(record[:3])
    db.execute(PUT.format("staged"))  # type: ignore[arg-type]
    db.execute("truncate staged")


def put_arrays(db: DB, records: list[Any]) -> None:
    columns = [list(column) for column in zip(*(record[:3] for record in records), strict=True)]
    db.execute(PUT.format("unnest(%s::text[], %s::text[]::jsonb[], %s::timestamptz[])"), columns)  # type: ignore[arg-type]


def consolidated(db: DB) -> bool:
    """Map, upsert and mark one batch; return whether there was one."""
    rows = db.execute(
        "select key, payload::text from raw where not consolidated order by key limit %s", [BATCH]
    ).fetchall()
    orders = [to_order(json.loads(payload, parse_float=Decimal)) for _, payload in rows]
    for begin in range(0, len(orders), UPSERT):
        some = orders[begin : begin + UPSERT]
        db.execute(UPSERTED, [[getattr(each, name) for each in some] for name in ("id", "name", "cents", "note")])
    db.execute("update raw set consolidated = true where key = any (%s)", [[key for key, _ in rows]])
    return bool(rows)


def recent_runs(bench: Bench, number: int, runs: int) -> None:
    """Record the milliseconds of the document's query of the last 24 hours, beside many runs of 30 partitions."""
    dsn = fresh(bench)
    with psycopg.connect(bench.server.admin(dsn), autocommit=True) as admin:
        admin.execute(RUNS.format(runs))  # type: ignore[arg-type]
    bench.server.settle(dsn)
    times = []
    with psycopg.connect(dsn, autocommit=True) as db:
        for _ in range(20):
            begun = time.perf_counter()
            found = db.execute(RECENT).fetchall()
            times.append(time.perf_counter() - begun)
    if not found:
        raise RuntimeError("the query found no run of the last 24 hours")
    bench.record(engines.named("holdfast"), "24-hour query", number, 1e3 * statistics.median(times), "ms", n=runs)
