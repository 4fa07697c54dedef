"""Drive the hand-written baseline and the engine with one and the same loop, and print the ratios.

    make bench                      the embedded PostgreSQL, in a folder of its own
    HOLDFAST_BENCH_DSN=… make bench    a server of yours (a login that may create databases)

Each round drains the same work through both, in turn; what counts is the ratio inside a round. One process claims, runs a
no-op and settles, the next claim overlapping the last settle on a second connection; batches of 500.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import uvloop
from psycopg import AsyncConnection
from psycopg.conninfo import make_conninfo

from holdfast import embedded
from holdfast.kernel import bulk, migrate

HERE = Path(__file__).parent
BATCH = 500
RUN = "00000000-0000-7000-8000-000000000001"
BARS = {"tasks": 0.7, "one run": 0.7, "diamonds": 0.7, "bulk start": 0.5}


@dataclass(frozen=True)
class Engine:
    name: str
    claim: str
    settle: str
    tables: tuple[str, ...]


BASELINE = Engine(
    "baseline",
    "select * from baseline.claim(%s, %s, '60 s')",
    "select baseline.settle(%b::bigint[], %b::bigint[], %s::text[]::jsonb[])",
    ("baseline.steps", "baseline.runs", "baseline.edges"),
)
HOLDFAST = Engine(
    "holdfast",
    "select * from holdfast.claim_steps(%s, kinds => array['noop'], batch => %s, lease => '60 s')",
    "select step_id from holdfast.settle_batch(%b::bigint[], %b::bigint[], %s::text[]::jsonb[])",
    ("holdfast.steps", "holdfast.runs", "holdfast.edges"),
)

# The same rows for both, made in the server: (engine, work) to statements. {n} is the number of steps.
LOADS = {
    ("baseline", "tasks"): [
        """insert into baseline.steps (machine, kind, state, due_at, input)
           select 'work.task', 'noop', 'pending', now(), jsonb_build_object('x', g) from generate_series(1, {n}) g""",
    ],
    ("holdfast", "tasks"): [
        """insert into holdfast.steps (machine, kind, state, due_at, created_at, input)
           select 'work.task', 'noop', 'pending', now(), now(), jsonb_build_object('x', g) from generate_series(1, {n}) g""",
    ],
    ("baseline", "one run"): [
        "insert into baseline.runs (id, total) values ('00000000-0000-7000-8000-000000000001', {n})",
        """insert into baseline.steps (run_id, machine, kind, state, due_at, input)
           select '00000000-0000-7000-8000-000000000001', 'flow.step', 'noop', 'pending', now(), jsonb_build_object('x', g)
             from generate_series(1, {n}) g""",
    ],
    ("holdfast", "one run"): [
        """insert into holdfast.runs (id, machine, name, state, total, live, created_at)
           values ('00000000-0000-7000-8000-000000000001', 'flow.task', 'bench', 'pending', {n}, {n}, now())""",
        """insert into holdfast.steps (run_id, machine, kind, state, due_at, created_at, input)
           select '00000000-0000-7000-8000-000000000001', 'flow.step', 'noop', 'pending', now(), now(),
                  jsonb_build_object('x', g)
             from generate_series(1, {n}) g""",
    ],
    # Diamonds of seven: one, five beside each other, one.
    ("baseline", "diamonds"): [
        """insert into baseline.runs (id, total)
           select ('00000000-0000-7000-8000-' || lpad(to_hex(r), 12, '0'))::uuid, 7 from generate_series(0, {n} / 7 - 1) r""",
        """insert into baseline.steps (id, run_id, machine, kind, state, due_at, waits, input) overriding system value
           select r * 7 + k + 1, ('00000000-0000-7000-8000-' || lpad(to_hex(r), 12, '0'))::uuid, 'flow.step', 'noop', 'pending',
                  case when k = 0 then now() end, (array[0, 1, 1, 1, 1, 1, 5])[k + 1], jsonb_build_object('x', k)
             from generate_series(0, {n} / 7 - 1) r, generate_series(0, 6) k""",
        """insert into baseline.edges
           select r * 7 + e.a, r * 7 + e.b from generate_series(0, {n} / 7 - 1) r,
             (values (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7)) e (a, b)""",
    ],
    ("holdfast", "diamonds"): [
        """insert into holdfast.runs (id, machine, name, state, total, live, created_at)
           select ('00000000-0000-7000-8000-' || lpad(to_hex(r), 12, '0'))::uuid, 'flow.task', 'bench', 'pending', 7, 1, now()
             from generate_series(0, {n} / 7 - 1) r""",
        """insert into holdfast.steps (id, run_id, machine, kind, state, due_at, waits, created_at, input)
           select r * 7 + k + 1, ('00000000-0000-7000-8000-' || lpad(to_hex(r), 12, '0'))::uuid, 'flow.step', 'noop',
                  'pending', case when k = 0 then now() end, (array[0, 1, 1, 1, 1, 1, 5])[k + 1], now(), jsonb_build_object('x', k)
             from generate_series(0, {n} / 7 - 1) r, generate_series(0, 6) k""",
        """insert into holdfast.edges
           select r * 7 + e.a, r * 7 + e.b from generate_series(0, {n} / 7 - 1) r,
             (values (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (2, 7), (3, 7), (4, 7), (5, 7), (6, 7)) e (a, b)""",
    ],
}


async def no_op(row: tuple[object, ...]) -> str:
    return "null"


async def drain(dsn: str, engine: Engine) -> int:
    """Work until nothing is due; the next claim overlaps the last settle."""
    async with await connect(dsn) as claims, await connect(dsn) as settles:

        async def claim() -> list[tuple[object, ...]]:
            cursor = await claims.execute(engine.claim, ("bench", BATCH), prepare=True, binary=True)
            return await cursor.fetchall()

        async def settle(rows: list[tuple[object, ...]], results: list[str]) -> int:
            # claim columns: step_id, run_id, kind, input, attempt, lease_id, …
            cursor = await settles.execute(
                engine.settle, ([r[0] for r in rows], [r[5] for r in rows], results), prepare=True
            )
            return len(await cursor.fetchall())

        return await overlap(claim, settle)


async def overlap(
    claim: Callable[[], Awaitable[list[tuple[object, ...]]]],
    settle: Callable[[list[tuple[object, ...]], list[str]], Awaitable[int]],
    run: Callable[[tuple[object, ...]], Awaitable[str]] = no_op,
) -> int:
    settled = 0
    under_way: asyncio.Task[int] | None = None
    rows = await claim()
    while rows or under_way:
        results = [await run(row) for row in rows]
        if under_way:
            settled += await under_way
        under_way = asyncio.create_task(settle(rows, results)) if rows else None
        rows = await claim()
        if not rows and under_way:  # what the settle frees may be due now
            settled += await under_way
            under_way = None
            rows = await claim()
    return settled


async def connect(dsn: str) -> AsyncConnection[tuple[object, ...]]:
    connection = await AsyncConnection.connect(dsn, autocommit=True)
    psycopg.types.json.set_json_loads(lambda raw: raw, connection)
    return connection


def load(dsn: str, engine: Engine, work: str, n: int) -> int:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table in engine.tables:
            connection.execute(f"truncate {table}")
        connection.execute(  # as a start does
            "insert into holdfast.queues (queue, created_at) values ('default', now()) on conflict do nothing"
        )
        for statement in LOADS[engine.name, work]:
            connection.execute(statement.format(n=n))
        count = connection.execute(f"select count(*) from {engine.tables[0]}").fetchone()
        for table in engine.tables:
            connection.execute(f"vacuum analyze {table}")
        connection.execute("checkpoint")
        assert count is not None
        return int(count[0])


def measure(dsn: str, engine: Engine, work: str, n: int) -> float:
    expected = load(dsn, engine, work, n)
    begun = time.perf_counter()
    settled = uvloop.run(drain(dsn, engine))
    took = time.perf_counter() - begun
    if settled != expected:
        raise SystemExit(f"{engine.name}, {work}: {settled} of {expected} settled")
    return expected / took


def copy_rows(n: int) -> Iterator[tuple[str, str]]:
    for number in range(n):
        yield "noop", f'{{"sku": "A-{number:07}", "price": {number % 1000}}}'


def bare_copy(dsn: str, n: int) -> float:
    """COPY the rows straight into a table of the baseline: one run of n steps."""
    with psycopg.connect(dsn) as connection:
        connection.execute("truncate baseline.steps")
        begun = time.perf_counter()
        with connection.cursor().copy(
            "copy baseline.steps (run_id, machine, state, due_at, kind, input) from stdin"
        ) as copy:
            moment = datetime.now(UTC)
            for kind, text in copy_rows(n):
                copy.write_row((RUN, "flow.step", "pending", moment, kind, text))
        connection.commit()
        return n / (time.perf_counter() - begun)


def bulk_start(dsn: str, n: int) -> float:
    """Start one run of n steps by COPY, through the staging table."""
    with psycopg.connect(dsn) as connection:
        connection.execute("truncate holdfast.steps, holdfast.run_steps, holdfast.runs, holdfast.edges")
        connection.commit()
        begun = time.perf_counter()
        bulk.start_steps(connection, copy_rows(n), machine="flow.task", name="bench", step_machine="flow.step")
        connection.commit()
        return n / (time.perf_counter() - begun)


def rounds(dsn: str, work: str, n: int, repeats: int) -> list[tuple[float, float]]:
    pairs = []
    for number in range(repeats):
        if work == "bulk start":
            pair = bare_copy(dsn, n), bulk_start(dsn, n)
        else:
            pair = measure(dsn, BASELINE, work, n), measure(dsn, HOLDFAST, work, n)
        pairs.append(pair)
        print(
            f"{work}, round {number + 1}: {pair[0]:,.0f} and {pair[1]:,.0f} a second, {pair[1] / pair[0]:.2f}",
            file=sys.stderr,
        )
    return pairs


def summary(work: str, pairs: list[tuple[float, float]]) -> dict[str, object]:
    ratios = sorted(ours / theirs for theirs, ours in pairs)
    return {
        "work": work,
        "baseline_per_second": round(statistics.median(theirs for theirs, _ in pairs)),
        "holdfast_per_second": round(statistics.median(ours for _, ours in pairs)),
        "ratio": round(statistics.median(ratios), 2),
        "ratio_least": round(ratios[0], 2),
        "ratio_most": round(ratios[-1], 2),
        "bar": BARS[work],
    }


@contextmanager
def database() -> Iterator[str]:
    """Give the DSN of a fresh, migrated database with the baseline beside it."""
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as folder, server(Path(folder) / "home") as admin:
        name = f"holdfast_bench_{os.getpid()}"
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(f"create database {name}")
        dsn = make_conninfo(admin, dbname=name)
        try:
            migrate.run(dsn)
            with psycopg.connect(dsn, autocommit=True) as connection:
                connection.execute((HERE / "baseline.sql").read_text())
            yield dsn
        finally:
            with psycopg.connect(admin, autocommit=True) as connection:
                connection.execute(f"drop database {name} with (force)")


@contextmanager
def server(home: Path) -> Iterator[str]:
    named = os.environ.get("HOLDFAST_BENCH_DSN")
    if named:
        yield named
        return
    embedded.ensure(home)
    try:
        yield embedded.admin_dsn(home)
    finally:
        embedded.stop(home)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=list(BARS), action="append", help="this work alone (may be given again)")
    parser.add_argument("--steps", type=int, default=100_000, help="steps a round (default 100000)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each (default 5)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    options = parser.parse_args()
    with database() as dsn:
        figures = [summary(w, rounds(dsn, w, options.steps, options.rounds)) for w in options.only or BARS]
    if options.json:
        print(json.dumps(figures, indent=2))
        return
    print(f"\n{'work':12}{'baseline/s':>12}{'holdfast/s':>12}{'ratio':>8}{'spread':>14}{'bar':>6}")
    for f in figures:
        spread = f"{f['ratio_least']}-{f['ratio_most']}"
        print(
            f"{f['work']:12}{f['baseline_per_second']:>12,}{f['holdfast_per_second']:>12,}{f['ratio']:>8}{spread:>14}{f['bar']:>6}"
        )


if __name__ == "__main__":
    main()
