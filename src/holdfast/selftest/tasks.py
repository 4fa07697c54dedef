"""The tasks of a self-test: each writes down, in a plain file, when it begins and how it ends, and gives its lease.

Two of them have an effect in the transaction that completes their step, and now and then fail at first.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from holdfast.app import Holdfast
from holdfast.handlers.context import Ctx
from holdfast.handlers.registry import RetryPolicy
from holdfast.reads.self_test import EFFECT
from holdfast.selftest import history

FOLDER_VARIABLE = "HOLDFAST_SELF_TEST_FOLDER"
PATIENT = RetryPolicy(limit=100, base=timedelta(milliseconds=20), growth=1)
FAILS_EACH = 9  # of so many tasks one fails at its first attempt

hf = Holdfast()


class Declined(Exception):
    """It fails now, and will not the next time."""


@contextmanager
def _written(ctx: Ctx) -> Iterator[None]:
    folder = Path(os.environ[FOLDER_VARIABLE])
    history.write(folder, ctx, "begin")
    try:
        yield
    except BaseException as error:
        history.write(folder, ctx, "stopped", by=type(error).__name__, reason=ctx.stop_reason)
        raise
    history.write(folder, ctx, "end")


def _decline(ctx: Ctx, number: int) -> None:
    if ctx.attempt == 1 and number % FAILS_EACH == 0:
        raise Declined(f"task {number} fails at first")  # its effect is undone with the attempt


@hf.task(name="selftest.plain", retry=PATIENT)
def plain(ctx: Ctx, number: int, seconds: float) -> int:
    """Take some time."""
    with _written(ctx):
        time.sleep(seconds)
        _decline(ctx, number)
    return ctx.lease_id


@hf.task(name="selftest.paid", retry=PATIENT)
def paid(ctx: Ctx, number: int, seconds: float) -> int:
    """Have an effect, in a thread."""
    with _written(ctx), ctx.transaction() as tx:
        tx.execute(EFFECT, [ctx.step_id, ctx.lease_id])
        time.sleep(seconds)
        _decline(ctx, number)
    return ctx.lease_id


@hf.task(name="selftest.paid_async", retry=PATIENT)
async def paid_async(ctx: Ctx, number: int, seconds: float) -> int:
    """Have an effect, on the loop."""
    with _written(ctx):
        async with ctx.transaction() as tx:
            await tx.execute(EFFECT, [ctx.step_id, ctx.lease_id])
            await asyncio.sleep(seconds)
            _decline(ctx, number)
    return ctx.lease_id


PAID = (paid.name, paid_async.name)
KINDS = (plain.name, *PAID)
