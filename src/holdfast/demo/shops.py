"""The demo's three shops: each takes two calls at once, and one of them asks for a pause.

A limit counts the calls of all workers together. The handler records its calls on its own, outside the transaction of
its step, so that the demo can compare the record with the journal.
"""

from __future__ import annotations

import time

from holdfast.demo.tasks import hf
from holdfast.errors import RateLimited
from holdfast.handlers.context import Ctx
from holdfast.handlers.registry import RetryPolicy
from holdfast.reads import demo_shops

LIMIT = "demo-shop:*"
SLOTS = 2
SHOPS = ("acme", "globex", "initech")
BUSY = "globex"  # it answers 429 until a caller obeys
PAUSE = 1.0  # seconds, in its Retry-After

hf.limit(LIMIT, concurrency=SLOTS, rate=1000, per=1)


@hf.task(name="demo.update_price", queue="demo", limits=[LIMIT.replace("*", "{shop}")], retry=RetryPolicy(limit=5))
def update_price(ctx: Ctx, batch: str, shop: str, number: int, seconds: float) -> str:
    """Send a price to a shop."""
    call = {"batch": batch, "shop": shop, "step": ctx.step_id, "attempt": ctx.attempt}
    with hf._engine.connection() as connection:
        obeyed = demo_shops.call_began(connection, **call)
    time.sleep(seconds)
    status = 429 if shop == BUSY and not obeyed else 200
    with hf._engine.connection() as connection:
        demo_shops.call_ended(connection, **call, status=status)
    if status == 429:
        raise RateLimited("429: too many requests", retry_after=PAUSE)
    return f"price-{number} at {shop}"
