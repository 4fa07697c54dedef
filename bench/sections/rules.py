"""Rules on a table of prices: previews against bare COPYs, applies against their two parts, and runs beside runs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import Connection

import engines
from bench import Bench
from holdfast import Holdfast
from holdfast.kernel import bulk
from holdfast.rules.handle import RuleRun
from hot_loop import install
from sections.memory import resident

NAME = "rules"
TITLE = "Rules: preview and apply of many targets"
DB = Connection[Any]
APP = Path(__file__).parents[1]
BATCH = 250  # targets of a call, as in rules_app.py
SMALL = 100  # targets of a run beside a large one
LEAST = 20_000  # targets of a large run: fewer are over before it can be paused
WAIT = 3600.0  # seconds
COPIED = {  # what a preview writes per target: columns, and the values of the nth
    "holdfast.steps": (
        "id, run_id, machine, state, kind, queue, tenant, input, limits, batch_key, created_at",
        lambda run, n, at: (
            n, run, "rules.target", "PREVIEW", "rules:shop", "rules:shop", "default", "{}", ["rules:shop"], "", at
        ),
    ),
    "holdfast.run_steps": ("run_id, step_id", lambda run, n, _: (run, n)),
    "rules.target_values": (
        "step_id, run_id, item_id, currency, price_before, price_after, writes_price, writes_compare_at",
        lambda run, n, _: (n, run, f"P{n}", "EUR", 1000 + n % 1000, 900 + n % 1000, True, False),
    ),
}  # fmt: skip
PRODUCTS = """
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2) not null, tags text[] not null);
insert into shop.products
select 'P' || n, 10 + n % 1000, array['big'] || case when n <= {count} / 10 then array['tenth'] else '{{}}' end
  from generate_series(1, {count}) n;
insert into shop.products select 'A' || n, 10, '{{alone}}' from generate_series(1, {small}) n;
insert into shop.products select 'B' || n, 10, '{{beside}}' from generate_series(1, {small}) n;
"""
BY_HAND = """
update shop.products p set price = w.after from unnest(%s::text[], %s::numeric[], %s::numeric[]) w (sku, before, after)
 where p.sku = w.sku and p.price = w.before
"""
LAST = """
select extract(epoch from coalesce(max(s.finished_at), min(c.at)) - min(c.at))
  from holdfast.run_changes c left join holdfast.steps s on s.run_id = c.run_id
 where c.run_id = %s and c.event = %s
"""


def measure(bench: Bench) -> None:
    """Preview many items, and apply some of them, each in a database of its own."""
    import outlets  # it uses this module

    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    many = max(LEAST, bench.tasks or bench.size(1_000_000, LEAST))
    some = bench.tasks or bench.size(100_000, 10_000)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            large_run(bench, number, many)
            applied(bench, number, some)
            outlets.measure(bench, number, some)


def shop(bench: Bench, name: str, count: int) -> str:
    """Make a database with so many prices, and return its address."""
    dsn = bench.server.fresh(f"rules {name}")
    install(dsn, "holdfast")
    with psycopg.connect(dsn, autocommit=True) as db:
        db.execute(PRODUCTS.format(count=count, small=SMALL).encode())
    bench.server.settle(dsn)
    return dsn


def previewed(dsn: str, label: str) -> dict[str, Any]:
    """Preview the items with a tag, in a process of its own."""
    command = [sys.executable, str(APP / "rules_app.py"), label]
    done = subprocess.run(command, env=_environment(dsn), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return dict(json.loads(done.stdout))


def large_run(bench: Bench, number: int, count: int) -> None:
    """Preview, apply, pause and stop a large run, and apply a small one alone and beside it."""
    ours = engines.named("holdfast")
    dsn = shop(bench, "large", count)
    tenth, big, alone, beside = (previewed(dsn, label) for label in ("tenth", "big", "alone", "beside"))
    bench.record(ours, "preview", number, count / big["seconds"], "targets/s", n=count)
    bench.record(engines.named("baseline"), "preview", number, count / copied(bench, dsn, count), "targets/s")
    bench.record(ours, "previewer, a tenth", number, tenth["peak"], "MiB")
    bench.record(ours, "previewer, all", number, big["peak"], "MiB")
    bench.server.settle(dsn)
    hf = Holdfast(dsn)
    run = hf.rules.run(big["run"])
    with worker(dsn, "rules:shop") as process, psycopg.connect(dsn, autocommit=True) as db:
        bench.record(ours, f"{SMALL} alone", number, finished_in(hf.rules.run(alone["run"])), "s")
        begun = time.perf_counter()
        run.apply()
        bench.record(ours, "apply answers", number, time.perf_counter() - begun, "s", n=count)
        halted(bench, number, db, run, "pause")
        run.resume()
        halted(bench, number, db, run, "stop")
        run.retry_all()
        bench.record(ours, f"{SMALL} beside", number, finished_in(hf.rules.run(beside["run"])), "s")
        reached(run, count // 10)
        bench.record(ours, "worker, a tenth", number, resident(process.pid), "MiB")
        reached(run, count)
        bench.record(ours, "worker, all", number, resident(process.pid), "MiB")
    hf.close()


def halted(bench: Bench, number: int, db: DB, run: RuleRun, action: str) -> None:
    """Pause or stop a run; record how long after that its last target ended, which began before."""
    reached(run, run.summary.counts["applied"] + 1)
    run.pause() if action == "pause" else run.stop()
    held = "select exists (select from holdfast.steps where run_id = %s and lease_id is not null)"
    wait_until(lambda: not db.execute(held, [run.id]).fetchall()[0][0], f"the run to {action}")
    rows = db.execute(LAST, [run.id, {"pause": "paused", "stop": "stopped"}[action]]).fetchall()
    bench.record(engines.named("holdfast"), f"after a {action}", number, max(1000 * float(rows[0][0]), 1), "ms")


def finished_in(run: RuleRun) -> float:
    """Apply a run, and return the seconds until it has ended, by the database's clock."""
    run.apply()
    run.result(timeout=WAIT)
    summary = run.summary
    assert summary.finished_at is not None
    assert summary.queued_at is not None
    return (summary.finished_at - summary.queued_at).total_seconds()


def applied(bench: Bench, number: int, count: int) -> None:
    """Apply a run; then do its two parts one after the other: its UPDATEs by hand, and as many no-ops in batches."""
    dsn = shop(bench, "applied", count)
    hf = Holdfast(dsn)
    run = hf.rules.run(previewed(dsn, "big")["run"])
    bench.server.settle(dsn)
    run.apply()
    with worker(dsn, "rules:shop"):
        summary = run.result(timeout=WAIT)
    assert summary.finished_at is not None
    assert summary.started_at is not None
    seconds = (summary.finished_at - summary.started_at).total_seconds()
    bench.record(engines.named("holdfast"), "apply", number, count / seconds, "targets/s", n=count)
    hf.close()
    parts = by_hand(shop(bench, "by hand", count), count) + no_ops(bench, count)
    bench.record(engines.named("baseline"), "apply", number, count / parts, "targets/s", n=count)


def by_hand(dsn: str, count: int) -> float:
    """Make the same UPDATEs as an apply, and return the seconds."""
    with psycopg.connect(dsn, autocommit=True) as db:
        rows = db.execute("select sku, price from shop.products where tags && '{big}'").fetchall()
        begun = time.perf_counter()
        for start in range(0, count, BATCH):
            skus, prices = zip(*rows[start : start + BATCH], strict=True)
            db.execute(BY_HAND, [list(skus), list(prices), [price * 9 / 10 for price in prices]])
        return time.perf_counter() - begun


def no_ops(bench: Bench, count: int) -> float:
    """Drain as many no-op steps of a batch handler, and return the seconds from the first claim to the last outcome."""
    dsn = bench.server.fresh("rules no-ops")
    install(dsn, "holdfast")
    with psycopg.connect(dsn) as connection:
        bulk.start_tasks(
            connection, (bulk.Start("noop", '{"n": 1}', queue="noops", batch_key="") for _ in range(count))
        )
    bench.server.settle(dsn)
    query = "select count(*) filter (where finished_at is null), max(finished_at) - min(claimed_at) from holdfast.steps"
    with worker(dsn, "noops"), psycopg.connect(dsn, autocommit=True) as db:
        wait_until(lambda: db.execute(query).fetchall()[0][0] == 0, "the no-ops to end")
        return float(db.execute(query).fetchall()[0][1].total_seconds())


def copied(bench: Bench, dsn: str, count: int) -> float:
    """COPY as many rows into tables of the same shape and with the same indexes, and return the seconds."""
    seconds = 0.0
    run_id, at = uuid4(), datetime.now(UTC)
    with psycopg.connect(bench.server.admin(dsn), autocommit=True) as db, db.cursor() as cursor:
        for place, (table, (columns, row)) in enumerate(COPIED.items()):
            cursor.execute(f"create table public.bare_{place} (like {table} including defaults including indexes)")
            begun = time.perf_counter()
            with cursor.copy(f"copy public.bare_{place} ({columns}) from stdin") as copy:
                for n in range(1, count + 1):
                    copy.write_row(row(run_id, n, at))
            seconds += time.perf_counter() - begun
            cursor.execute(f"drop table public.bare_{place}")
    return seconds


@contextmanager
def worker(dsn: str, queue: str, **settings: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a worker, and wait until it has claimed or sleeps."""
    command = [sys.executable, "-m", "holdfast", "worker", "--app", "rules_app:hf", "--queue", queue]
    environment = {**_environment(dsn), **settings}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        try:
            with psycopg.connect(dsn, autocommit=True) as db:
                known = "select exists (select from holdfast.workers)"
                wait_until(lambda: bool(db.execute(known).fetchall()[0][0]), "the worker to begin")
            yield process
        finally:
            process.terminate()


def reached(run: RuleRun, count: int) -> None:
    """Wait until so many targets of a run are applied."""
    wait_until(lambda: run.summary.counts["applied"] >= count, f"{count} applied targets")


def wait_until(happened: Callable[[], bool], what: str) -> None:
    """Look every 50 ms."""
    end = time.monotonic() + WAIT
    while not happened():
        if time.monotonic() > end:
            raise RuntimeError(f"in {WAIT:.0f} s it did not come to {what}")
        time.sleep(0.05)


def _environment(dsn: str) -> dict[str, str]:
    return {**os.environ, "HOLDFAST_DSN": dsn, "PYTHONPATH": str(APP), "HOLDFAST_LOG_LEVEL": "warning"}
