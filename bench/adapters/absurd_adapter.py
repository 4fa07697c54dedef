"""absurd: tasks whose steps are checkpointed; it has no bulk call, so spawns share a transaction."""

from __future__ import annotations

import os
import time
from typing import Any

import absurdctl
import probe
import psycopg
from absurd_sdk import Absurd
from driver import BATCH, DSN, SHAPE, WIDTH, lots, main, pace

POLL = float(os.environ.get("BENCH_POLL", "0.05"))


def app(place: Any) -> Absurd:
    """Open it on an address or on a connection."""
    opened = Absurd(place, queue_name="q")

    @opened.register_task(name="noop")
    def noop(params: dict[str, float], ctx: object) -> None:
        probe.hit(params.get("sent", 0.0))

    @opened.register_task(name="flow")
    def flow_of(params: dict[str, int], ctx: Any) -> None:
        """Run steps, one after the other: inside a task it has no others."""
        for number in range(params["steps"]):
            ctx.step(f"step {number}", probe.hit)

    return opened


def setup() -> None:
    with psycopg.connect(DSN, autocommit=True) as connection:
        connection.execute(absurdctl.BUNDLED_SCHEMA_SQL)
    opened = app(DSN)
    opened.create_queue("q")
    opened.close()


def enqueue(n: int) -> float:
    with psycopg.connect(DSN) as connection:
        opened = app(connection)
        begun = time.perf_counter()
        for size in lots(n):
            for _ in range(size):
                opened.spawn("noop", {})
            connection.commit()
        return time.perf_counter() - begun


def worker() -> None:
    opened = app(DSN)
    probe.barrier()
    opened.start_worker(concurrency=1, batch_size=BATCH, poll_interval=POLL)


def trickle(rate: float, seconds: float) -> None:
    opened = app(DSN)
    for now in pace(rate, seconds):
        opened.spawn("noop", {"sent": now})
    opened.close()


def flow(n: int) -> None:
    with psycopg.connect(DSN) as connection:
        opened = app(connection)
        for _ in range(n):
            opened.spawn("flow", {"steps": WIDTH if SHAPE == "chain" else WIDTH + 1})


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle, flow=flow)
