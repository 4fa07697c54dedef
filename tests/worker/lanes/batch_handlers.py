"""Batch handlers that run in a process of their own: it finds them here by name."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from typing import Any

from typing_extensions import TypedDict

from holdfast import Batch, Fail
from worker.running import until


class Job(TypedDict):
    n: int
    fate: str


def compute(batch: Batch, jobs: list[Job]) -> list[Any]:
    """Return one outcome per job; a deadly one takes the process with it."""
    if any(job["fate"] == "die" for job in jobs):
        os.kill(os.getpid(), signal.SIGKILL)
    if any(job["fate"] == "write" for job in jobs):
        with batch.transaction() as tx:
            tx.execute("create table if not exists public.written (n int)")
            tx.cursor().executemany("insert into public.written values (%s)", [[job["n"]] for job in jobs])
    return [Fail("no") if job["fate"] == "fail" else [job["n"], len(batch)] for job in jobs]


def watch(batch: Batch, jobs: list[Job]) -> list[Any]:
    """Wait until a step is marked, and return which are, and why; backwards, as a marked step has no result."""
    batch.steps[-1].note("began")
    until(lambda: any(step.cancelled for step in batch.steps), "the mark")
    assert not batch.cancelled
    return [[step.cancelled, step.stop_reason] for step in batch.steps][::-1]


async def awatch(batch: Batch, jobs: list[Job]) -> list[Any]:
    """Do the same without blocking the loop."""
    return await asyncio.to_thread(watch, batch, jobs)


def linger(batch: Batch, jobs: list[Job]) -> list[Any]:
    """Go on until interrupted."""
    batch.steps[0].note("began")
    while True:
        threading.Event().wait(0.01)


async def alinger(batch: Batch, jobs: list[Job]) -> list[Any]:
    """Go on until interrupted."""
    batch.steps[0].note("began")
    await asyncio.Event().wait()
    return []


def raise_(jobs: list[Job]) -> list[Any]:
    """Fail as a whole."""
    raise ConnectionError("down")


async def araise_(jobs: list[Job]) -> list[Any]:
    """Fail as a whole."""
    raise ConnectionError("down")
