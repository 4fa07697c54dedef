"""The app of the scenarios with a flow: a map over a list that is known when it runs, a join, and a flow within.

Steps that are called by hand write down what they do, as the chores do, and give their lease.
"""

from __future__ import annotations

import time

from chores import hf, written

from holdfast import Ctx
from holdfast.flow.backoff import Backoff

QUICK = Backoff(default_backoff_seconds=(0.01,), max_backoff_seconds=0.05)
PATIENT = 100  # executions: each kill costs one
BILLING = "bills"  # a queue of its own: who is to die there meets nothing else

billing = hf.flow("billing", backoff=QUICK)
order = hf.flow("order", backoff=QUICK)


@billing.step(retry=PATIENT)
def draw(ctx: Ctx, items: int) -> int:
    with written(ctx):
        return ctx.lease_id


@billing.step(after=draw, retry=PATIENT)
async def send(ctx: Ctx, items: int) -> int:
    with written(ctx):
        async with ctx.transaction() as db:
            await db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
            return ctx.lease_id


@order.step(retry=PATIENT)
def items(ctx: Ctx, count: int) -> list[int]:
    with written(ctx):
        return list(range(count))


@order.step(each=items, retry=PATIENT)
def ship(ctx: Ctx, item: int) -> int:
    """Have an effect in the transaction that completes the step; some fail at first."""
    with written(ctx), ctx.transaction() as db:
        if item % 7 == 0 and ctx.attempt == 1:
            raise ValueError("not yet")
        db.execute("insert into public.effects values (%s, %s)", [ctx.step_id, ctx.lease_id])
        time.sleep(0.02)
        return ctx.lease_id


@order.step(after=ship, retry=PATIENT)
def join(ctx: Ctx, ship: list[int]) -> list[int]:
    with written(ctx):
        return ship


@order.subflow(billing, after=join, retry=PATIENT, queue=BILLING)
def bill(join: list[int]) -> dict[str, int]:
    return {"items": len(join)}


@order.step(after=bill, retry=PATIENT)
def close(ctx: Ctx, bill: dict[str, int]) -> int:
    with written(ctx):
        return ctx.lease_id
