"""Holdfast as its users have it: the public API, and the worker that the command line starts."""

from __future__ import annotations

import os
import sys
import time

import probe
from driver import DSN, main, pace

from holdfast import Ctx, Holdfast, cli
from holdfast.kernel import migrate

hf = Holdfast(DSN)


if os.environ.get("BENCH_ACKNOWLEDGE") == "each":

    @hf.task
    def noop(ctx: Ctx, sent: float = 0.0) -> None:
        """Do nothing, in a transaction that ends with the task."""
        probe.hit(sent)
        with ctx.transaction():
            pass

else:

    @hf.task
    async def noop(sent: float = 0.0) -> None:
        """Do nothing."""
        probe.hit(sent)


def setup() -> None:
    migrate.run(DSN)


def enqueue(n: int) -> float:
    begun = time.perf_counter()
    noop.start_many({} for _ in range(n))
    return time.perf_counter() - begun


def worker() -> None:
    os.environ["HOLDFAST_DSN"] = DSN
    sys.argv = ["holdfast", "worker", "--app", "holdfast_adapter:hf"]
    probe.barrier()
    cli.main()


def trickle(rate: float, seconds: float) -> None:
    for now in pace(rate, seconds):
        noop.start(sent=now)


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle)
