"""What start() costs on a connection of the caller's, against the same SQL function called bare through that library.

Blocks of both take turns on one connection, each block inside one transaction. What is timed are the starts, not the commit, which
would hide what start() adds.
"""

from __future__ import annotations

import asyncio
import inspect
import statistics
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from bench import Bench
from holdfast import Holdfast
from hot_loop import install

NAME = "own"
TITLE = "start() on the caller's own connection"
BLOCK = 50  # starts
BARE, START = "bare", "start()"
INPUT = '{"order_id": 7, "note": "a parcel"}'
BY_NAME = text("select holdfast.start_task(:name, cast(:input as jsonb), queue => :queue)")
ARGUMENTS = {"name": "send", "input": INPUT, "queue": "default"}
BY_PLACE = "select holdfast.start_task($1, $2::jsonb, queue => $3)"


@dataclass(frozen=True)
class Way:
    """One library: `bare` and `start` make one start each, `commit` ends a block."""

    bare: Callable[[], Any]
    start: Callable[[], Any]
    begin: Callable[[], Any]
    commit: Callable[[], Any]


def measure(bench: Bench) -> None:
    """Start tasks through each library, both ways in turn."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    blocks = max(3, (bench.tasks or bench.size(4_000, 600)) // BLOCK)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            for library, opened in LIBRARIES.items():
                dsn = bench.server.fresh("own")
                install(dsn, engine.name)
                bench.server.settle(dsn)
                for what, cost in asyncio.run(costs(dsn, opened, blocks)).items():
                    bench.record(engine, f"{library}, {what}", number, 1e6 * cost, "us/start", n=blocks * BLOCK)


async def costs(dsn: str, opened: Any, blocks: int) -> dict[str, float]:
    """Give the seconds of one start by either way: the median of its blocks."""
    app = Holdfast(dsn)

    @app.task
    def send(order_id: int, note: str) -> None: ...

    spent: dict[str, list[float]] = {BARE: [], START: []}
    async with opened(dsn, send) as way:
        for _ in range(blocks + 1):
            for what, start in ((BARE, way.bare), (START, way.start)):
                await _done(way.begin())
                begun = time.perf_counter()
                for _ in range(BLOCK):
                    await _done(start())
                spent[what].append((time.perf_counter() - begun) / BLOCK)
                await _done(way.commit())
    return {what: statistics.median(each[1:]) for what, each in spent.items()}  # the first has plans to make


async def _done(result: Any) -> None:
    if inspect.iscoroutine(result):
        await result


@asynccontextmanager
async def over_psycopg(dsn: str, send: Any) -> AsyncIterator[Way]:
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn))
    with Session(engine) as session:
        yield Way(
            lambda: session.execute(BY_NAME, ARGUMENTS).scalar_one(),
            lambda: send.options(conn=session).start(7, "a parcel"),
            session.connection,
            session.commit,
        )
    engine.dispose()


@asynccontextmanager
async def over_asyncpg(dsn: str, send: Any) -> AsyncIterator[Way]:
    engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(**_address(dsn)))
    async with AsyncSession(engine) as session:
        yield Way(
            lambda: session.execute(BY_NAME, ARGUMENTS),
            lambda: send.options(conn=session).astart(7, "a parcel"),
            lambda: session.execute(text("select 1")),
            session.commit,
        )
    await engine.dispose()


@asynccontextmanager
async def by_asyncpg(dsn: str, send: Any) -> AsyncIterator[Way]:
    connection = await asyncpg.connect(**_address(dsn))
    yield Way(
        lambda: connection.fetchval(BY_PLACE, "send", INPUT, "default"),
        lambda: send.options(conn=connection).astart(7, "a parcel"),
        lambda: connection.execute("begin"),
        lambda: connection.execute("commit"),
    )
    await connection.close()


def _address(dsn: str) -> dict[str, Any]:
    parts = conninfo_to_dict(dsn)
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "database"}
    return {theirs: parts[ours] for ours, theirs in names.items() if parts.get(ours)}


LIBRARIES = {"SQLAlchemy": over_psycopg, "SQLAlchemy over asyncpg": over_asyncpg, "asyncpg": by_asyncpg}
