"""The same loop over the functions of the baseline and of holdfast: claim, a no-op, settle.

The next claim overlaps the last settle on a second connection. What differs between two drains is the SQL alone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import uvloop
from psycopg import AsyncConnection

from holdfast.kernel import migrate
from rows import LOADS

BATCH = 500
BASELINE_SQL = Path(__file__).with_name("baseline.sql")

Row = tuple[object, ...]


@dataclass(frozen=True)
class Functions:
    """The statements of the loop for one of them."""

    claim: str
    settle: str
    steps: str


FUNCTIONS = {
    "baseline": Functions(
        "select * from baseline.claim(%s, %s, '60 s')",
        "select baseline.settle(%b::bigint[], %b::bigint[], %s::text[]::jsonb[])",
        "baseline.steps",
    ),
    "holdfast": Functions(
        "select * from holdfast.claim_steps(%s, kinds => array['noop'], batch => %s, lease => '60 s')",
        "select step_id from holdfast.settle_batch(%b::bigint[], %b::bigint[], %s::text[]::jsonb[])",
        "holdfast.steps",
    ),
}


def install(dsn: str, engine: str) -> None:
    """Install the engine's schema in an empty database."""
    if engine == "holdfast":
        migrate.run(dsn)
        return
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(BASELINE_SQL.read_bytes())


def load(admin: str, engine: str, work: str, steps: int, runs: int = 1) -> int:
    """Insert the rows, the same for both, with an administrator's DSN; return the number of steps.

    `steps` are those of all runs; of a fan or a chain, of which there are `runs`, those of one.
    """
    with psycopg.connect(admin, autocommit=True) as connection:
        for statement in LOADS[engine, work]:
            connection.execute(statement.format(n=steps, runs=runs))
        row = connection.execute(f"select count(*) from {FUNCTIONS[engine].steps}").fetchone()
    assert row is not None
    return int(row[0])


def rate(dsn: str, engine: str, steps: int) -> float:
    """Drain all due steps, and return the steps per second."""
    begun = time.perf_counter()
    settled = uvloop.run(drain(dsn, FUNCTIONS[engine]))
    took = time.perf_counter() - begun
    if settled != steps:
        raise RuntimeError(f"{settled} of {steps} steps were settled")
    return steps / took


async def drain(dsn: str, functions: Functions) -> int:
    """Work until nothing is due."""
    async with await connect(dsn) as claims, await connect(dsn) as settles:

        async def claim() -> list[Row]:
            cursor = await claims.execute(functions.claim, ("bench", BATCH), prepare=True, binary=True)
            return await cursor.fetchall()

        async def settle(rows: list[Row]) -> int:
            # claim's columns: step_id, run_id, kind, input, attempt, lease_id, …
            arguments = ([row[0] for row in rows], [row[5] for row in rows], ["null"] * len(rows))
            cursor = await settles.execute(functions.settle, arguments, prepare=True)
            return len(await cursor.fetchall())

        return await overlap(claim, settle)


async def overlap(
    claim: Callable[[], Awaitable[list[Row]]], settle: Callable[[list[Row]], Coroutine[Any, Any, int]]
) -> int:
    """Claim while the previous batch is being settled; return the number of settled steps."""
    settled = 0
    under_way: asyncio.Task[int] | None = None
    rows = await claim()
    while rows or under_way:
        if under_way:
            settled += await under_way
        under_way = asyncio.create_task(settle(rows)) if rows else None
        rows = await claim()
        if not rows and under_way:  # what the settle frees may be due now
            settled += await under_way
            under_way = None
            rows = await claim()
    return settled


async def connect(dsn: str) -> AsyncConnection[Row]:
    """Connect as a worker does: autocommit, JSON as plain text."""
    connection = await AsyncConnection.connect(dsn, autocommit=True)
    psycopg.types.json.set_json_loads(lambda raw: raw, connection)
    return connection
