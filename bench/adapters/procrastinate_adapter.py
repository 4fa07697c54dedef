"""procrastinate, on psycopg's pool."""

from __future__ import annotations

import logging
import time

import probe
import procrastinate
from driver import CONCURRENCY, DSN, KEYS, apace, lots, main

logging.disable(logging.INFO)


def opened() -> procrastinate.App:
    connector = procrastinate.PsycopgConnector(conninfo=DSN, min_size=2, max_size=max(4, CONCURRENCY))
    return procrastinate.App(connector=connector)


app = opened()


@app.task(name="noop")
async def noop(sent: float = 0.0) -> None:
    probe.hit(sent)


async def setup() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def enqueue(n: int) -> float:
    async with app.open_async():
        begun = time.perf_counter()
        for size in lots(n):
            await (defer_locked(size) if KEYS else noop.batch_defer_async(*[{} for _ in range(size)]))
        return time.perf_counter() - begun


async def defer_locked(size: int) -> None:
    """Defer jobs of all keys in turn; a call takes those of one lock."""
    for key in range(min(KEYS, size)):
        jobs = [{} for _ in range(key, size, KEYS)]
        await noop.configure(lock=f"key:{key}").batch_defer_async(*jobs)


async def worker() -> None:
    async with app.open_async():
        probe.barrier()
        await app.run_worker_async(concurrency=CONCURRENCY, wait=True, install_signal_handlers=False)


async def trickle(rate: float, seconds: float) -> None:
    async with opened().open_async() as own:
        task = own.configure_task("noop")
        async for now in apace(rate, seconds):
            await task.defer_async(sent=now)


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
