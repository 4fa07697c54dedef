"""dbos: workflows in a queue; it has no bulk call, so enqueues share a transaction."""

from __future__ import annotations

import asyncio
import os
import threading
import time

import probe
from dbos import DBOS, DBOSClient
from driver import CONCURRENCY, DSN, SHAPE, WIDTH, lots, main, pace

POLL = float(os.environ.get("BENCH_POLL", "0.01"))
POOL = 20
NOOP = {"workflow_name": "noop", "queue_name": "q"}


@DBOS.workflow(name="noop")
def noop(sent: float = 0.0) -> None:
    probe.hit(sent)


@DBOS.step()
def step() -> None:
    probe.hit()


@DBOS.step()
async def async_step() -> None:
    probe.hit()


@DBOS.workflow(name="in turn")
def in_turn() -> None:
    for _ in range(WIDTH + 1):
        step()


@DBOS.workflow(name="chain")
def chain() -> None:
    for _ in range(WIDTH):
        step()


@DBOS.workflow(name="fan")
async def fan() -> None:
    await asyncio.gather(*(async_step() for _ in range(WIDTH)))
    await async_step()


@DBOS.workflow(name="diamond")
async def diamond() -> None:
    await async_step()
    await asyncio.gather(*(async_step() for _ in range(5)))
    await async_step()


def launch() -> None:
    DBOS(
        config={
            "name": "bench",
            "system_database_url": DSN,
            "log_level": "ERROR",
            "application_version": "1",
            "executor_id": f"bench-{os.getpid()}",
            "sys_db_pool_size": POOL,
        }
    )
    DBOS.launch()
    DBOS.register_queue("q", worker_concurrency=CONCURRENCY, polling_interval_sec=POLL)


def setup() -> None:
    launch()
    DBOS.destroy()


def enqueue(n: int) -> float:
    client = DBOSClient(system_database_url=DSN)
    begun = time.perf_counter()
    for size in lots(n):
        with client._sys_db.engine.begin() as connection:
            for _ in range(size):
                client.enqueue_in_transaction(connection, NOOP)
    return time.perf_counter() - begun


def worker() -> None:
    probe.barrier()
    launch()
    threading.Event().wait()


def trickle(rate: float, seconds: float) -> None:
    client = DBOSClient(system_database_url=DSN)
    for now in pace(rate, seconds):
        client.enqueue(NOOP, now)


def flow(n: int) -> None:
    client = DBOSClient(system_database_url=DSN)
    with client._sys_db.engine.begin() as connection:
        for _ in range(n):
            client.enqueue_in_transaction(connection, {**NOOP, "workflow_name": SHAPE})


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle, flow=flow)
