"""The yardstick: baseline.sql, and the shortest loop around it; the next claim overlaps the last settle."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import probe
import psycopg
import uvloop
from driver import BATCH, DSN, apace, main
from psycopg import AsyncConnection

SCHEMA = Path(__file__).resolve().parents[1] / "baseline.sql"
CLAIM = "select * from baseline.claim(%s, %s, '60 s')"
SETTLE = "select baseline.settle(%b::bigint[], %b::bigint[], %s::text[]::jsonb[])"
INSERT = """insert into baseline.steps (machine, kind, state, due_at, input)
            values ('work.task', 'noop', 'pending', clock_timestamp(), %s)"""
CHANNEL = "baseline"
POLL = 0.5

Row = tuple[Any, ...]


def setup() -> None:
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute(SCHEMA.read_bytes())


def enqueue(n: int) -> float:
    columns = "copy baseline.steps (machine, kind, state, due_at, input) from stdin"
    with psycopg.connect(DSN) as connection:
        begun = time.perf_counter()
        moment = connection.execute("select clock_timestamp()").fetchone()
        with connection.cursor().copy(columns) as copy:
            for _ in range(n):
                copy.write_row(("work.task", "noop", "pending", *moment, "{}"))  # type: ignore[misc]
        connection.commit()
        return time.perf_counter() - begun


def worker() -> None:
    uvloop.run(work())


async def work() -> None:
    """Work for as long as the process lives; a notification ends the wait for more."""
    batch = BATCH or 500
    async with await connect() as claims, await connect() as settles, await connect() as listener:
        await listener.execute(f"listen {CHANNEL}")

        async def claim() -> list[Row]:
            return await (await claims.execute(CLAIM, ("bench", batch), prepare=True, binary=True)).fetchall()

        async def settle(rows: list[Row], results: list[str]) -> None:
            # a claim's columns: step_id, run_id, kind, input, attempt, lease_id
            await settles.execute(SETTLE, ([r[0] for r in rows], [r[5] for r in rows], results), prepare=True)

        probe.barrier()
        while True:
            await overlap(claim, settle)
            async for _ in listener.notifies(timeout=POLL, stop_after=1):
                pass


async def overlap(
    claim: Callable[[], Awaitable[list[Row]]], settle: Callable[[list[Row], list[str]], Awaitable[None]]
) -> None:
    """Work until nothing is due."""
    under_way: asyncio.Task[None] | None = None
    rows = await claim()
    while rows or under_way:
        results = [handle(row) for row in rows]
        if under_way:
            await under_way
        under_way = asyncio.create_task(settle(rows, results)) if rows else None  # type: ignore[arg-type]
        rows = await claim()
        if not rows and under_way:  # what the settle frees may be due now
            await under_way
            under_way = None
            rows = await claim()


def handle(row: Row) -> str:
    probe.hit(json.loads(row[3]).get("sent", 0.0))
    return "null"


async def trickle(rate: float, seconds: float) -> None:
    async with await connect() as connection:
        async for now in apace(rate, seconds):
            async with connection.pipeline():
                await connection.execute(INSERT, [json.dumps({"sent": now})])
                await connection.execute(f"notify {CHANNEL}")


async def connect() -> AsyncConnection[Row]:
    connection = await AsyncConnection.connect(DSN, autocommit=True)
    psycopg.types.json.set_json_loads(lambda raw: raw, connection)
    return connection


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
