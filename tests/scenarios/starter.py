"""A process that starts tasks, each in a way and a queue that its arguments name: `start:queue start_many:queue …`."""

from __future__ import annotations

import asyncio
import sys

import chores
from cells import MANY

from holdfast.kernel import bulk


def start(queue: str) -> int:
    return chores.deposit.options(key=queue, queue=queue).start().id


async def _astart(queue: str) -> int:
    handle = await chores.adeposit.options(key=queue, queue=queue).astart()
    await chores.hf.aclose()
    return handle.id


def astart(queue: str) -> int:
    return asyncio.run(_astart(queue))


def start_many(queue: str) -> int:
    return chores.deposit.options(queue=queue).start_many([{}] * MANY)


def start_steps(queue: str) -> str:
    steps = [bulk.Start("deposit", "{}", queue)] * MANY
    with chores.hf._engine.connection() as connection:
        return str(bulk.start_steps(connection, steps, machine="flow.task", name=queue, step_machine="flow.step"))


WAYS = {"start": start, "astart": astart, "start_many": start_many, "start_steps": start_steps}

for asked in sys.argv[1:]:
    way, _, queue = asked.partition(":")
    print(WAYS[way](queue), flush=True)
