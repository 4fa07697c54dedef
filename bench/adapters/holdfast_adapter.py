"""Holdfast as its users have it: the public API, and the worker that the command line starts."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

import probe
import psycopg
from driver import DSN, SHAPE, WIDTH, main, pace

from holdfast import Ctx, Holdfast
from holdfast.kernel import calls, db, migrate

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


def flow(n: int) -> dict[str, float]:
    steps = plan()
    with psycopg.connect(DSN) as connection:
        begun = time.perf_counter()
        for _ in range(n):
            db.run(connection, calls.start_run("flow.task", SHAPE, "flow.step", steps=steps))
        connection.commit()
        return {"seconds": time.perf_counter() - begun}


def plan() -> list[dict[str, Any]]:
    """List the steps of the shape that is asked for, each with those that it waits for."""
    names = [f"step {number}" for number in range(WIDTH + 1)]
    match SHAPE:
        case "diamond":
            middle = {name: names[:1] for name in names[1:-1]}
            after = {names[0]: [], **middle, names[-1]: list(middle)}
        case "fan":
            after = {**{name: [] for name in names[:-1]}, names[-1]: names[:-1]}
        case _:
            after = {name: names[:place][-1:] for place, name in enumerate(names[:-1])}
    return [{"kind": "noop", "name": name, "after": parents} for name, parents in after.items()]


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle, flow=flow)
