"""Holdfast as its users have it: the public API, and the worker that the command line starts."""

from __future__ import annotations

import json
import os
import sys
import time

import holdfast_batches
import holdfast_flows
import probe
import psycopg
from driver import CONCURRENCY, DSN, KEYS, SHAPE, main, pace

from holdfast import Ctx, Holdfast, masking
from holdfast.kernel import calls, db, migrate

NAMES = os.environ.get("BENCH_NAMES", "").split()  # the limits of the task
IS_SENT = bool(os.environ.get("BENCH_SENT"))  # tasks of a bulk start carry its moment
SLEEP = float(os.environ.get("BENCH_SLEEP", "0"))  # seconds that a handler takes

for secret in os.environ.get("BENCH_SECRETS", "").split():
    masking.known.add(secret)
hf = Holdfast(DSN)
for name, rule in json.loads(os.environ.get("BENCH_LIMITS") or "{}").items():
    hf.limit(name, **rule)
defined = holdfast_flows.define(hf) if SHAPE in holdfast_flows.FLOWS else None


if os.environ.get("BENCH_ACKNOWLEDGE") == "each":

    @hf.task
    def noop(ctx: Ctx, sent: float = 0.0) -> None:
        """Do nothing, in a transaction that ends with the task."""
        probe.hit(sent)
        with ctx.transaction():
            pass

elif holdfast_batches.SIZE:
    noop = holdfast_batches.define(hf)

else:

    @hf.task(limits=NAMES or None)
    def noop(sent: float = 0.0, key: int = 0) -> None:
        """Do nothing."""
        probe.hit(sent)
        if SLEEP:
            time.sleep(SLEEP)


def setup() -> None:
    migrate.run(DSN)


def enqueue(n: int) -> float:
    common = {"sent": time.time()} if IS_SENT else {}
    begun = time.perf_counter()
    noop.start_many({**common, "key": number % KEYS} if KEYS else common for number in range(n))
    return time.perf_counter() - begun


def worker() -> None:
    from holdfast import cli

    os.environ["HOLDFAST_DSN"] = DSN
    at_once = ["--concurrency", str(CONCURRENCY)] if CONCURRENCY else []
    sys.argv = ["holdfast", "worker", "--app", "holdfast_adapter:hf", *at_once]
    probe.barrier()
    cli.main()


def trickle(rate: float, seconds: float) -> None:
    for now in pace(rate, seconds):
        noop.start(sent=now)


def flow(n: int) -> dict[str, float]:
    """Start flows in one transaction; a fan is planned by SQL, because no one writes ten thousand steps by hand."""
    with psycopg.connect(DSN) as connection:
        steps = [{"kind": "noop", "name": name, "after": parents} for name, parents in holdfast_flows.after().items()]
        begun = time.perf_counter()
        for _ in range(n):
            if defined is None:
                db.run(connection, calls.start_run("flow.task", SHAPE, "flow.step", steps=steps))
            else:
                defined.options(conn=connection).start(**holdfast_flows.context())
        connection.commit()
        return {"seconds": time.perf_counter() - begun}


if __name__ == "__main__":
    main(setup=setup, enqueue=enqueue, worker=worker, trickle=trickle, flow=flow)
