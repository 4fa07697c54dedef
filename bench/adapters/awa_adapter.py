"""awa: a core in Rust with a client for Python; its queue storage is installed before the first enqueue."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from urllib.parse import parse_qs, quote, urlsplit

import awa
import probe
import uvloop
from driver import BATCH, CONCURRENCY, DSN, apace, lots, main

CONNECTIONS = 10


@dataclass
class Noop:
    sent: float = 0.0


def client(**options: int) -> awa.AsyncClient:
    return awa.AsyncClient(address(DSN), **options)


def address(dsn: str) -> str:
    """Write a socket's folder as the host: its parser takes no address without one."""
    parts = urlsplit(dsn)
    folder = parse_qs(parts.query).get("host", [""])[0]
    return f"postgresql://{parts.username}@{quote(folder, safe='')}{parts.path}" if folder.startswith("/") else dsn


async def setup() -> None:
    opened = client()
    await opened.migrate()
    await opened.install_queue_storage()  # without it the first worker would, and bulk enqueues are refused until then
    await opened.close()


async def enqueue(n: int) -> float:
    opened = client()
    begun = time.perf_counter()
    for size in lots(n):
        await opened.enqueue_many_copy([Noop() for _ in range(size)], queue="q")
    took = time.perf_counter() - begun
    await opened.close()
    return took


async def worker() -> None:
    opened = client(max_connections=CONNECTIONS)

    @opened.task(Noop, queue="q")
    async def noop(job: awa.Job) -> None:
        probe.hit(job.args.sent)

    probe.barrier()
    await opened.start(awa.PartitionedQueue("q", 1).queue_configs(CONCURRENCY, claim_batch_size=BATCH))
    await asyncio.Event().wait()


async def trickle(rate: float, seconds: float) -> None:
    opened = client()
    async for now in apace(rate, seconds):
        await opened.insert(Noop(now), queue="q")


if __name__ == "__main__":
    uvloop.install()
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
