"""Compare drains under limits with drains without, by one loop over the SQL functions, alternating within one run.

    .venv/bin/python bench/limits.py [--steps 20000] [--rounds 3]

Prints the rate of each drain as a share of the drain without limits: limits that never bind, 1 000 keys of concurrency 1,
and free steps behind ten times as many that are parked.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from holdfast import embedded
from holdfast.kernel import calls, limit_calls, migrate
from holdfast.kernel.db import run
from holdfast.models import Done, Settlement

DB = Connection[Any]
STAGE: LiteralString = """
insert into pg_temp.staged_steps (kind, limits)
select 'noop', case when %(keys)s > 0 then array['key:' || n %% %(keys)s] end from generate_series(1, %(steps)s) n
"""
EMPTY: LiteralString = """
truncate holdfast.steps, holdfast.limits, holdfast.limit_states, holdfast.workers; vacuum analyze holdfast.steps
"""


def main() -> None:
    """Print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hf-limits-", dir="/tmp") as folder:
        home = Path(folder)
        home.chmod(0o711)
        embedded.ensure(home)
        try:
            compare(embedded.admin_dsn(home), options.steps, options.rounds)
        finally:
            embedded.stop(home)


def compare(admin: str, steps: int, rounds: int) -> None:
    """Run all drains in turn, and print the median share of each."""
    with psycopg.connect(admin, autocommit=True) as connection:
        connection.execute("create database bench")
    dsn = make_conninfo(admin, dbname="bench")
    migrate.run(dsn)
    drains: dict[str, tuple[Callable[[DB], None], Callable[[DB], None], int, int]] = {
        "a concurrency and a bucket that never bind": (nothing, never_binds, 500, 0),
        "1 000 keys of concurrency 1": (nothing, one_per_key, 200, 1000),
        "free steps behind ten times as many parked": (nothing, parked_before, 500, 0),
    }
    with psycopg.connect(dsn, autocommit=True) as db:
        for name, (without, under, batch, keys) in drains.items():
            pairs = [
                (drained(db, without, steps, batch, keys), drained(db, under, steps, batch, keys))
                for _ in range(rounds)
            ]
            shares = [limited / free for free, limited in pairs]
            free, limited = (statistics.median(rates) for rates in zip(*pairs, strict=True))
            print(f"{name}: {statistics.median(shares):.2f} ({limited:,.0f} of {free:,.0f} a second)", flush=True)


def nothing(db: DB) -> None:
    """Define no limit."""


def never_binds(db: DB) -> None:
    """Limit the queue, but never reach it."""
    second = timedelta(seconds=1)
    run(db, limit_calls.define_limit("queue:*", concurrency=100_000, rate=1_000_000, per=second, burst=10_000_000))


def one_per_key(db: DB) -> None:
    """Let each key be held once."""
    run(db, limit_calls.define_limit("key:*", concurrency=1))


def parked_before(db: DB) -> None:
    """Start many steps of a shut limit, and let claims park them."""
    run(db, limit_calls.define_limit("key:*", concurrency=0))
    with db.transaction():
        db.execute("select holdfast.stage_steps()")
        db.execute(STAGE, {"keys": 1, "steps": 200_000})
        db.execute("select holdfast.take_staged()")
    while db.execute("select exists (select from holdfast.steps where due_at is not null)").fetchone() == (True,):
        run(db, calls.claim_steps("bench", batch=500))


def drained(db: DB, prepare: Callable[[DB], None], steps: int, batch: int, keys: int) -> float:
    """Load and drain, and give the steps per second."""
    db.execute("set session_replication_role = replica")
    for statement in EMPTY.split(";"):
        db.execute(statement)
    db.execute("reset session_replication_role")
    prepare(db)
    with db.transaction():
        db.execute("select holdfast.stage_steps()")
        db.execute(STAGE, {"keys": keys, "steps": steps})
        db.execute("select holdfast.take_staged()")
    begun, done = time.perf_counter(), 0
    while claimed := run(db, calls.claim_steps("bench", batch=batch)):
        done += len(run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Done()) for s in claimed])))
    took = time.perf_counter() - begun
    if done != steps:
        raise RuntimeError(f"{done} of {steps} steps were settled")
    return steps / took


if __name__ == "__main__":
    main()
