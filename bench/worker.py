"""The whole worker against a bare loop on the hand-written baseline: one process, no-op tasks with a checked input.

    make bench-worker [ARGS="--steps 100000 --rounds 5"]

Both run as a process of their own that claims, checks each input by pydantic, calls a handler and settles; the time is
from the first claim to the last settle, as the process itself tells it. What counts is the ratio inside a round.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

import psycopg
import uvloop
from pydantic import TypeAdapter
from typing_extensions import TypedDict

from holdfast import Holdfast, log
from holdfast.worker.options import Options
from holdfast.worker.process import run_worker
from hot_path import BASELINE, BATCH, HOLDFAST, Engine, connect, database, load, overlap

BAR = 0.7
hf = Holdfast(os.environ.get("HOLDFAST_TEST_TARGET", "dbname=nowhere"))


@hf.task(name="noop")
def noop(x: int) -> None:
    """Do nothing."""


@hf.task(name="anoop")
async def anoop(x: int) -> None:
    """Do nothing, on the loop."""


class Input(TypedDict):
    x: int


async def bare_loop(dsn: str) -> int:
    """Work on the baseline with nothing around the handler but the check of its input."""
    read = TypeAdapter(Input).validate_json
    async with await connect(dsn) as claims, await connect(dsn) as settles:

        async def claim() -> list[tuple[object, ...]]:
            cursor = await claims.execute(BASELINE.claim, ("bench", BATCH), prepare=True, binary=True)
            return await cursor.fetchall()

        async def settle(rows: list[tuple[object, ...]], results: list[str]) -> int:
            arguments = ([r[0] for r in rows], [r[5] for r in rows], results)
            cursor = await settles.execute(BASELINE.settle, arguments, prepare=True)
            return len(await cursor.fetchall())

        async def run(row: tuple[object, ...]) -> str:
            return json.dumps(noop(**read(row[3])))  # type: ignore[arg-type]

        return await overlap(claim, settle, run)


def child(engine: str, dsn: str, concurrency: int) -> None:
    """Be the process that works, and print how long it took and how much memory it has."""
    log.configure("error")
    begun, before = time.perf_counter(), time.process_time()
    if engine == "baseline":
        uvloop.run(bare_loop(dsn))
    else:
        run_worker(dsn, hf.registry, Options(burst=True, concurrency=concurrency))
    took, cpu = time.perf_counter() - begun, time.process_time() - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"took": took, "cpu": cpu, "peak_kib": peak}))


def measure(dsn: str, engine: Engine, options: argparse.Namespace) -> float:
    expected = load(dsn, engine, "tasks", options.steps)
    if options.handler != "noop" and engine is HOLDFAST:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute("update holdfast.steps set kind = %s", [options.handler])
    command = [
        sys.executable,
        __file__,
        "--child",
        engine.name,
        "--dsn",
        dsn,
        "--concurrency",
        str(options.concurrency),
    ]
    said = subprocess.run(
        command, check=True, capture_output=True, text=True, env={**os.environ, "HOLDFAST_TEST_TARGET": dsn}
    )
    told = json.loads(said.stdout.splitlines()[-1])
    done = "select count(*) from holdfast.steps where state = 'done'"
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            done if engine is HOLDFAST else "select count(*) from baseline.steps where state <> 'pending'"
        ).fetchone()
    if row != (expected,):
        raise SystemExit(f"{engine.name}: {row} of {expected} are done\n{said.stderr}")
    print(
        f"  {engine.name:9} {expected / told['took']:>9,.0f}/s  cpu {told['cpu'] / expected * 1e6:5.1f} us/task  peak {told['peak_kib'] // 1024} MiB",
        file=sys.stderr,
    )
    return expected / told["took"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--concurrency", type=int, default=10)
    parser.add_argument("--handler", choices=["noop", "anoop"], default="noop")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--dsn", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.dsn, options.concurrency)
        return
    with database() as dsn:
        pairs = [(measure(dsn, BASELINE, options), measure(dsn, HOLDFAST, options)) for _ in range(options.rounds)]
    ratios = sorted(ours / theirs for theirs, ours in pairs)
    print(
        f"baseline {statistics.median(t for t, _ in pairs):,.0f}/s, holdfast {statistics.median(o for _, o in pairs):,.0f}/s, "
        f"ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}), bar {BAR}"
    )


if __name__ == "__main__":
    main()
