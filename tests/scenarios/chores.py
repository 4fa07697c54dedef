"""The app of the scenarios: handlers that write down, in a plain file, when they begin and how they end.

The file knows what the database cannot: an attempt that was never accepted. HOLDFAST_TEST_FOLDER names its folder; a
file that a test puts there is a gate, and opens what waits for it.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from holdfast import Continue, Ctx, Holdfast, RetryPolicy
from holdfast.errors import LeaseLost
from holdfast.selftest import history

FOLDER = Path(os.environ["HOLDFAST_TEST_FOLDER"])
LOOK = 0.02
PATIENT = RetryPolicy(limit=100, base=timedelta(milliseconds=10), growth=1)

hf = Holdfast()


def write(ctx: Ctx, what: str, **more: object) -> None:
    """Write a line of history."""
    history.write(FOLDER, ctx, what, **more)


@contextmanager
def written(ctx: Ctx) -> Iterator[None]:
    """Write down begin and end; and what stopped it, with what the context then says to a last note."""
    write(ctx, "begin")
    try:
        yield
    except BaseException as error:
        write(ctx, "stopped", by=type(error).__name__, reason=ctx.stop_reason, note=_last_note(ctx))
        raise
    write(ctx, "end")


def _last_note(ctx: Ctx) -> str:
    try:
        ctx.note("still here")
    except LeaseLost:
        return "LeaseLost"
    return "written"


def is_open(gate: str) -> bool:
    return (FOLDER / gate).exists()


@hf.task(retry=PATIENT)
def doze(ctx: Ctx, seconds: float = 0.0) -> int:
    with written(ctx):
        time.sleep(seconds)
        return ctx.lease_id


@hf.task(retry=PATIENT)
def deposit(ctx: Ctx, seconds: float = 0.0, gate: str | None = None) -> int:
    """Have an effect in the transaction that completes the step."""
    with written(ctx), ctx.transaction() as db:
        write(ctx, "inside")
        while gate is not None and not is_open(gate):
            time.sleep(LOOK)
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
        time.sleep(seconds)
        while gate is not None and not is_open(gate):
            time.sleep(LOOK)
        return ctx.lease_id


@hf.task(retry=PATIENT)
async def adeposit(ctx: Ctx, seconds: float = 0.0, gate: str | None = None) -> int:
    """Have an effect, as `deposit` does, on the loop."""
    with written(ctx):
        async with ctx.transaction() as db:
            await db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
            write(ctx, "inside")
            await asyncio.sleep(seconds)
            while gate is not None and not is_open(gate):  # noqa: ASYNC110 - as below
                await asyncio.sleep(LOOK)
            return ctx.lease_id


@hf.task(cpu=True, retry=PATIENT)
def deposit_apart(ctx: Ctx) -> int:
    """Have an effect, as `deposit` does, in a process."""
    with written(ctx), ctx.transaction() as db:
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
        return ctx.lease_id


@hf.task(retry=PATIENT)
def deposit_much(ctx: Ctx) -> str:
    """Have an effect, as `deposit` does, with a result that does not go into one message with the commit."""
    with written(ctx), ctx.transaction() as db:
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
        return "much" * 4096


@hf.task(retry=PATIENT)
def turn_pages(ctx: Ctx, pages: int) -> int:
    """Have an effect for each page, in the transaction that moves the cursor behind it."""
    page = ctx.cursor or 1
    with written(ctx), ctx.transaction() as db:
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
    if page < pages:
        raise Continue(page + 1)
    return ctx.lease_id


@hf.task
def deposit_once(ctx: Ctx) -> int:
    """Have an effect, as `deposit` does, under no policy: an exception would be final."""
    with written(ctx), ctx.transaction() as db:
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
        return ctx.lease_id


@hf.task(retry=PATIENT)
def remark(ctx: Ctx) -> int:
    """Write under the lease: a note, a beat, how far it is."""
    with written(ctx):
        ctx.note("still here")
        ctx.heartbeat()
        ctx.progress(1, 1)
        return ctx.lease_id


@hf.task(retry=PATIENT)
def stumble(ctx: Ctx, times: int) -> int:
    """Fail in the first attempts."""
    with written(ctx):
        if ctx.attempt <= times:
            raise ValueError("not yet")
        return ctx.lease_id


@hf.task
def stay(ctx: Ctx, gate: str) -> int:
    """Wait, with as many tries as a task has that says nothing."""
    with written(ctx):
        while not is_open(gate):
            time.sleep(LOOK)
        return ctx.lease_id


@hf.task(retry=PATIENT)
def wait(ctx: Ctx, gate: str) -> int:
    with written(ctx):
        while not is_open(gate):
            time.sleep(LOOK)
        return ctx.lease_id


@hf.task(retry=PATIENT)
async def await_gate(ctx: Ctx, gate: str) -> int:
    with written(ctx):
        while not is_open(gate):  # noqa: ASYNC110 - a gate is a file: another process opens it
            await asyncio.sleep(LOOK)
        return ctx.lease_id


@hf.task(cpu=True, retry=PATIENT)
def wait_apart(ctx: Ctx, gate: str) -> int:
    with written(ctx):
        while not is_open(gate):
            time.sleep(LOOK)
        return ctx.lease_id


@hf.task(retry=PATIENT)
def burn(ctx: Ctx, seconds: float) -> None:
    with written(ctx):
        _spin(seconds)


@hf.task(cpu=True, retry=PATIENT)
def burn_apart(ctx: Ctx, seconds: float = 0.0, gate: str | None = None) -> None:
    with written(ctx):
        _spin(seconds)
        while gate is not None and not is_open(gate):
            sum(range(1000))


def _spin(seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        sum(range(1000))


@hf.task(retry=PATIENT)
def hold_connection(ctx: Ctx, gate: str) -> None:
    """Keep one connection of the app's own pool."""
    with hf._engine.connection() as connection:
        connection.execute("select 1")
        with written(ctx):
            while not is_open(gate):
                time.sleep(LOOK)


@hf.task(retry=PATIENT)
def hold_handler_connection(ctx: Ctx, gate: str) -> None:
    """Keep one connection of those that contexts write through."""
    with ctx._executor._opened().connection(), written(ctx):
        while not is_open(gate):
            time.sleep(LOOK)


@hf.task(retry=PATIENT)
def freeze(ctx: Ctx) -> int:
    """Freeze the whole worker, the first time."""
    with written(ctx):
        if not is_open("frozen"):
            (FOLDER / "frozen").touch()
            signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)  # to its own thread, which thus stops here
        return ctx.lease_id


@hf.task
def die(ctx: Ctx) -> None:
    write(ctx, "begin")
    os._exit(1)


@hf.task(cpu=True, retry=RetryPolicy(limit=3, base=timedelta(milliseconds=10)))
def die_apart(ctx: Ctx) -> None:
    write(ctx, "begin")
    os._exit(1)


@hf.task(retry=PATIENT)
def fork(ctx: Ctx, gate: str) -> int:
    """Leave a fork behind, which returns from the handler when the gate is open."""
    if os.fork():
        return ctx.lease_id
    write(ctx, "forked")
    while not is_open(gate):
        time.sleep(LOOK)
    return 0


@hf.task(retry=PATIENT)
def use_multiprocessing(ctx: Ctx) -> int:
    """Fork as a program does that has no worker in it: a pool that gives results, and a process that is ended."""
    forking = multiprocessing.get_context("fork")
    with written(ctx), forking.Pool(2) as pool:
        for _ in range(20):  # each is ended as early as can be
            endless = forking.Process(target=threading.Event().wait)
            endless.start()
            endless.terminate()
            endless.join()
        return pool.apply(int, [str(ctx.lease_id)])
