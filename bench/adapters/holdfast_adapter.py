"""Holdfast as its users have it: the public API, and the worker that the command line starts."""

from __future__ import annotations

import os
import sys
import time

import probe
import psycopg
from driver import DSN, main, pace

from holdfast import Ctx, Holdfast
from holdfast.kernel import calls, db, migrate

hf = Holdfast(DSN)
MIDDLE = [f"middle {number}" for number in range(1, 6)]
DIAMOND = [
    {"kind": "noop", "name": "first"},
    *({"kind": "noop", "name": name, "after": ["first"]} for name in MIDDLE),
    {"kind": "noop", "name": "last", "after": MIDDLE},
]


if os.environ.get("BENCH_ACKNOWLEDGE") == "each":

    @hf.task
    def noop(ctx: Ctx, sent: float = 0.0) -> None:
        """Do nothing, in a transaction that ends with the task."""
        probe.hit(sent)
        with ctx.transaction():
            pass

else:

    @hf.task
    def noop(sent: float = 0.0) -> None:
        """Do nothing."""
        probe.hit(sent)


def setup() -> None:
    migrate.run(DSN)


def enqueue(n: int) -> float:
    begun = time.perf_counter()
    noop.start_many({} for _ in range(n))
    return time.perf_counter() - begun


def worker() -> None:
    from holdfast import cli

    os.environ["HOLDFAST_DSN"] = DSN
    sys.argv = ["holdfast", "worker", "--app", "holdfast_adapter:hf"]
    probe.barrier()
    cli.main()


def trickle(rate: float, seconds: float) -> None:
    for now in pace(rate, seconds):
        noop.start(sent=now)


def flow(n: int) -> None:
    with psycopg.connect(DSN) as connection:
        for _ in range(n):
            db.run(connection, calls.start_run("flow.task", "diamond", "flow.step", steps=DIAMOND))


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle, flow=flow)
