"""The commands that every adapter in Python answers: setup, enqueue N, worker, trickle RATE SECONDS, flow N."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import random
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

DSN = os.environ.get("BENCH_DSN", "")
BATCH = int(os.environ.get("BENCH_BATCH", "0"))
CONCURRENCY = int(os.environ.get("BENCH_CONCURRENCY", "0"))
PROCESSES = int(os.environ.get("BENCH_PROCESSES", "1"))
BEGIN_AT = float(os.environ.get("BENCH_BEGIN_AT", "0"))  # so that several producers begin together
SENDERS = int(os.environ.get("BENCH_SENDERS", "1"))  # at once, in a producer
KEYS = int(os.environ.get("BENCH_KEYS", "0"))  # tasks of one key run one after the other
SHAPE = os.environ.get("BENCH_SHAPE", "")  # of a flow
WIDTH = int(os.environ.get("BENCH_WIDTH", "0"))  # how many steps a fan has before its join, or a chain from end to end
LOT = 1000  # tasks of one bulk call


def main(**commands: Callable[..., Any]) -> None:
    """Run the command that is asked for; what it answers is the last line of stdout."""
    name, *arguments = sys.argv[1:]
    if name == "trickle":
        rate, seconds = map(float, arguments)
        several(commands[name], rate, seconds)
        return
    answer = commands[name](*map(int, arguments))
    if inspect.iscoroutine(answer):
        answer = asyncio.run(answer)
    print(json.dumps({"seconds": answer} if name == "enqueue" else answer or {}))


def several(trickle: Callable[[float, float], Any], rate: float, seconds: float) -> None:
    """Share a rate among senders, each with a connection of its own, so that it is held although each call takes a while."""
    if not inspect.iscoroutinefunction(trickle):
        with ThreadPoolExecutor(SENDERS) as threads:
            for sent in [threads.submit(trickle, rate / SENDERS, seconds) for _ in range(SENDERS)]:
                sent.result()
        return

    async def gather() -> None:
        await asyncio.gather(*(trickle(rate / SENDERS, seconds) for _ in range(SENDERS)))

    asyncio.run(gather())


def lots(n: int) -> Iterator[int]:
    """Cut n into the sizes of bulk calls."""
    for begun in range(0, n, LOT):
        yield min(LOT, n - begun)


def moments(rate: float, seconds: float) -> Iterator[float]:
    """Return the moments at which to send, `rate` per second; each sender begins at a chance place of its beat."""
    begun = (BEGIN_AT or time.time()) + random.random() / rate
    for number in range(round(rate * seconds)):
        yield begun + number / rate


def pace(rate: float, seconds: float) -> Iterator[float]:
    """Return the time whenever it is time to send; a caller that is late catches up."""
    for moment in moments(rate, seconds):
        wait = moment - time.time()
        if wait > 0:
            time.sleep(wait)
        yield time.time()


async def apace(rate: float, seconds: float) -> AsyncIterator[float]:
    """Return the time, as `pace` does."""
    for moment in moments(rate, seconds):
        wait = moment - time.time()
        if wait > 0:
            await asyncio.sleep(wait)
        yield time.time()
