"""Chores whose handlers serve many steps with one call; each step writes its own lines of history."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from chores import LOOK, PATIENT, hf, is_open, write, written

from holdfast import Batch

SIZE = 4
INSERT = "insert into public.effects select * from unnest(%s::bigint[], %s::bigint[])"


@dataclass
class Item:
    """The input of one step; those with the same lot share calls."""

    lot: str
    gate: str | None = None


@contextmanager
def all_written(batch: Batch, items: list[Item]) -> Iterator[None]:
    assert len({item.lot for item in items}) == 1
    with ExitStack() as stack:
        for ctx in batch.steps:
            stack.enter_context(written(ctx))
        yield


def leases(batch: Batch) -> list[int]:
    return [ctx.lease_id for ctx in batch.steps]


@hf.task(batch=SIZE, by="lot", retry=PATIENT)
def push(batch: Batch, items: list[Item]) -> list[int]:
    with all_written(batch, items):
        while items[0].gate is not None and not is_open(items[0].gate):
            time.sleep(LOOK)
        return leases(batch)


@hf.task(batch=SIZE, by="lot", retry=PATIENT)
async def apush(batch: Batch, items: list[Item]) -> list[int]:
    with all_written(batch, items):
        while items[0].gate is not None and not is_open(items[0].gate):  # noqa: ASYNC110 - a gate is a file
            await asyncio.sleep(LOOK)
        return leases(batch)


@hf.task(batch=SIZE, by="lot", cpu=True, retry=PATIENT)
def push_apart(batch: Batch, items: list[Item]) -> list[int]:
    with all_written(batch, items):
        while items[0].gate is not None and not is_open(items[0].gate):
            time.sleep(LOOK)
        return leases(batch)


@hf.task(batch=SIZE, by="lot", retry=PATIENT)
def pay(batch: Batch, items: list[Item]) -> list[int]:
    """Have an effect per step in the transaction that completes them all."""
    with all_written(batch, items), batch.transaction() as db:
        db.execute(INSERT, [[ctx.step_id for ctx in batch.steps], leases(batch)])
        for ctx in batch.steps:
            write(ctx, "inside")
        while items[0].gate is not None and not is_open(items[0].gate):
            time.sleep(LOOK)
        return leases(batch)
