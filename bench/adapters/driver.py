"""The commands that every adapter in Python answers: setup, enqueue N, worker, trickle RATE SECONDS, flow N."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

DSN = os.environ.get("BENCH_DSN", "")
BATCH = int(os.environ.get("BENCH_BATCH", "0"))
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "0"))
PROCESSES = int(os.environ.get("BENCH_PROCESSES", "1"))
BEGIN_AT = float(os.environ.get("BENCH_BEGIN_AT", "0"))  # so that several producers begin together
LOT = 1000  # tasks of one bulk call


def main(**commands: Callable[..., Any]) -> None:
    """Run the command that is asked for; what it answers is the last line of stdout."""
    name, *arguments = sys.argv[1:]
    answer = commands[name](*map(float if name == "trickle" else int, arguments))
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    if name == "enqueue":
        answer = {"seconds": answer}
    print(json.dumps(answer or {}))


def lots(n: int) -> Iterator[int]:
    """Cut n into the sizes of bulk calls."""
    for begun in range(0, n, LOT):
        yield min(LOT, n - begun)


def pace(rate: float, seconds: float) -> Iterator[float]:
    """Give the moment `rate` times a second; a caller that is late catches up."""
    begun = BEGIN_AT or time.time()
    for number in range(int(rate * seconds)):
        wait = begun + number / rate - time.time()
        if wait > 0:
            time.sleep(wait)
        yield time.time()


async def apace(rate: float, seconds: float) -> AsyncIterator[float]:
    """Give the moment, as `pace` does."""
    begun = BEGIN_AT or time.time()
    for number in range(int(rate * seconds)):
        wait = begun + number / rate - time.time()
        if wait > 0:
            await asyncio.sleep(wait)
        yield time.time()
