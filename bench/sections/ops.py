"""The functions of document 002, ours against its own as printed, on plain tables (`ops_anchor.sql`).

Both are in one database. Blocks of calls take turns on one connection, each call a transaction of its own.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import Connection

import engines
from bench import Bench
from hot_loop import install

NAME = "ops"
TITLE = "Ops: the functions of document 002"
DB = Connection[Any]
ANCHOR = Path(__file__).parents[1] / "ops_anchor.sql"
SCHEMAS = {"holdfast": "ops", "baseline": "anchor"}
BLOCK = 50  # calls
CLAIMERS = 8
LINES, PAUSE = 10, 0.7  # lines of a run that prints slowly, as followers see it, and the seconds between them
FINISHED: LiteralString = """
set session_replication_role = replica;
insert into holdfast.steps (machine, state, kind, queue, created_at, claimed_at, finished_at, last_event, attempt)
select 'ops.run', 'success', 'ops:deploy', 'ops', c.at, c.at, c.at, 'succeeded', 1
  from generate_series(1, {finished}) n, lateral (select now() - n * interval '1 s' as at) c;
insert into ops.run_facts (run_id, step_id, status, queued_at, started_at, finished_at, updated_at, tenant, kind, project_id,
                           env_id, env, git_sha, git_ref, claimed_by, queued_by)
select 'run-' || gen_random_uuid(), s.id, 'success', s.created_at, s.created_at, s.created_at, s.created_at, 'default', 'deploy',
       'p', 'env', 'staging', 'sha', 'main', 'w', 'w'
  from holdfast.steps s
 where s.finished_at is not null;
reset session_replication_role;
"""


def measure(bench: Bench) -> None:
    """Time single calls, claims beside much else, and many claimers."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    calls = max(2 * BLOCK, bench.tasks or bench.size(3_000, 500))
    for number, engine in bench.turns():
        with bench.attempt(engine):
            runs = {"calls": single_calls, "logs": followed, "claimers": many_claimers, "crowd": beside_a_crowd}
            for what, run in runs.items():
                dsn = bench.server.fresh(f"ops {what}")
                install(dsn, "holdfast")
                with psycopg.connect(dsn, autocommit=True) as db:
                    db.execute(ANCHOR.read_bytes())
                    run(bench, number, db, calls)


def single_calls(bench: Bench, number: int, db: DB, calls: int) -> None:
    """Record the calls a second of each function, by the median of its blocks."""
    spent: dict[tuple[str, str], list[float]] = {}
    for schema in SCHEMAS.values():
        queued(db, schema, 1000)
    bench.server.settle(db.info.dsn)
    for _ in range(calls // BLOCK + 1):
        for name, schema in SCHEMAS.items():
            runs = timed(
                spent,
                (name, "claim_next_run"),
                lambda s=schema: one(db, f"select run_id from {s}.claim_next_run('w')"),
            )
            timed(
                spent, (name, "append_event"),
                lambda s=schema, r=runs[-1]: one(
                    db, f"select {s}.append_event(%s, 'info', %s)", r, f"line {time.perf_counter_ns()}"
                ),
            )  # fmt: skip
            for each in runs:
                one(db, f"select {schema}.finish_run(%s, 'success')", each)
            timed(
                spent, (name, "queue_run"),
                lambda s=schema: one(db, f"select run_id from {s}.queue_run('p', 'staging', 'sha', 'main')"),
            )  # fmt: skip
    for (name, what), seconds in spent.items():
        rate = 1 / statistics.median(seconds[1:])  # the first has plans to make
        bench.record(engines.named(name), what, number, rate, "calls/s", n=(len(seconds) - 1) * BLOCK)


def many_claimers(bench: Bench, number: int, db: DB, calls: int) -> None:
    """Record the claims a second of eight connections that empty a queue, each run claimed once."""
    amount = bench.tasks or bench.size(20_000, 2_000)
    for name, schema in SCHEMAS.items():
        queued(db, schema, amount)
        bench.server.settle(db.info.dsn)
        had, took = together(db.info.dsn, schema)
        if sorted(had) != sorted(set(had)) or len(had) != amount:
            raise RuntimeError(f"{name}: {len(had)} claims of {amount} runs, {len(set(had))} of them different")
        bench.record(engines.named(name), f"{CLAIMERS} claimers", number, amount / took, "claims/s", n=amount)


def followed(bench: Bench, number: int, db: DB, calls: int) -> None:
    """Record the seconds until `holdfast ops logs -f` prints a line, by the slowest of some."""
    one(db, "select run_id from ops.queue_run('p', 'staging', 'sha', 'main')")
    run_id = one(db, "select run_id from ops.claim_next_run('w')")
    command = [sys.executable, "-m", "holdfast", "ops", "logs", "-f", str(run_id)]
    env = {**os.environ, "HOLDFAST_DSN": db.info.dsn, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as logs:
        waits = []
        for line in ("ready", *(f"line {place}" for place in range(LINES))):
            begun = time.perf_counter()
            one(db, "select ops.append_event(%s, 'info', %s)", run_id, line)
            if not any(line in printed for printed in logs.stdout or ()):
                raise RuntimeError(f"logs -f ended before it printed {line!r}")
            waits.append(time.perf_counter() - begun)
            time.sleep(PAUSE)
        one(db, "select ops.finish_run(%s, 'success')", run_id)
    bench.record(engines.named("holdfast"), "logs -f", number, max(waits[1:]), "s", n=LINES)


def beside_a_crowd(bench: Bench, number: int, db: DB, calls: int) -> None:
    """Record the 99th percentile of a claim, on an otherwise empty table and beside many queued and finished runs."""
    engine = engines.named("holdfast")
    sizes = {"p99 alone": (1000, 0), "p99 in a crowd": (bench.size(100_000, 5_000), bench.size(1_000_000, 20_000))}
    for what, (waiting, finished) in sizes.items():
        if finished:
            with psycopg.connect(bench.server.admin(db.info.dsn), autocommit=True) as admin:
                admin.execute(FINISHED.format(finished=finished))
        queued(db, "ops", waiting)
        bench.server.settle(db.info.dsn)
        times = []
        for _ in range(min(calls, 900)):
            begun = time.perf_counter()
            one(db, "select run_id from ops.claim_next_run('w')")
            times.append(time.perf_counter() - begun)
        bench.record(engine, what, number, 1e3 * statistics.quantiles(times[20:], n=100)[98], "ms", n=len(times) - 20)


def timed(spent: dict[tuple[str, str], list[float]], what: tuple[str, str], call: Callable[[], Any]) -> list[Any]:
    """Call a block of times, note the seconds of one call, and give the answers."""
    begun = time.perf_counter()
    answers = [call() for _ in range(BLOCK)]
    spent.setdefault(what, []).append((time.perf_counter() - begun) / BLOCK)
    return answers


def one(db: DB, query: LiteralString, *arguments: Any) -> Any:
    row = db.execute(query, arguments, prepare=True).fetchone()
    return None if row is None else row[0]


def queued(db: DB, schema: str, amount: int) -> None:
    runs = f"{schema}.queue_run('p', 'staging', 'sha' || n, 'main')"  # one per number: with no number, one in all
    db.execute(f"select count(*) from generate_series(1, {amount}) n, {runs}")  # type: ignore[arg-type]


def together(dsn: str, schema: str) -> tuple[list[str], float]:
    """Let all claimers empty the queue; give what they had, and the seconds it took."""
    gate = threading.Barrier(CLAIMERS + 1)
    had: list[list[str]] = [[] for _ in range(CLAIMERS)]

    def work(place: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as db:
            one(db, "select 1")
            gate.wait(60)
            while (run_id := one(db, f"select run_id from {schema}.claim_next_run('w{place}')")) is not None:  # type: ignore[arg-type]
                had[place].append(run_id)

    threads = [threading.Thread(target=work, args=[place]) for place in range(CLAIMERS)]
    for thread in threads:
        thread.start()
    gate.wait(60)
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return [run_id for each in had for run_id in each], time.perf_counter() - begun
