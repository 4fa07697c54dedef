"""pgqueuer, on asyncpg and uvloop."""

from __future__ import annotations

import logging
import time
from datetime import timedelta

import asyncpg
import probe
import uvloop
from driver import BATCH, DSN, apace, lots, main
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

logging.disable(logging.INFO)


async def setup() -> None:
    connection = await asyncpg.connect(DSN)
    await Queries(AsyncpgDriver(connection)).install()
    await connection.close()


async def enqueue(n: int) -> float:
    connection = await asyncpg.connect(DSN)
    queries = Queries(AsyncpgDriver(connection))
    begun = time.perf_counter()
    for size in lots(n):
        await queries.enqueue(["noop"] * size, [None] * size, [0] * size)
    took = time.perf_counter() - begun
    await connection.close()
    return took


async def worker() -> None:
    connection = await asyncpg.connect(DSN)
    queue = PgQueuer(AsyncpgDriver(connection))

    @queue.entrypoint("noop")
    async def noop(job: Job) -> None:
        probe.hit(float(job.payload) if job.payload else 0.0)

    probe.barrier()
    await queue.run(batch_size=BATCH, dequeue_timeout=timedelta(seconds=30))


async def trickle(rate: float, seconds: float) -> None:
    connection = await asyncpg.connect(DSN)
    queries = Queries(AsyncpgDriver(connection))
    async for now in apace(rate, seconds):
        await queries.enqueue("noop", repr(now).encode())
    await connection.close()


if __name__ == "__main__":
    uvloop.install()
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
