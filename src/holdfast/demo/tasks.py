"""The tasks of the demo, as a separate app: `holdfast worker --app holdfast.demo.tasks:hf --queue demo-…`.

Each writes its effect in the transaction that completes its step, so that effects count how often it was accepted.
Their names begin with `demo.`, because a kind and its policy apply to the whole database.
"""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta

from holdfast.app import Holdfast
from holdfast.handlers.context import Ctx
from holdfast.handlers.registry import RetryPolicy
from holdfast.reads.demo import EFFECT

hf = Holdfast()

DECLINED_EACH = 7  # one card in this many is declined at first
SOON = RetryPolicy(limit=5, base=timedelta(seconds=0.3), growth=1.5)
HOPELESS = "demo.import_catalog"


class CardDeclined(Exception):
    """The bank declined the card, but may accept it later."""


class CatalogMissing(Exception):
    """The file to import does not exist, and never will."""


@hf.task(name="demo.send_welcome", queue="demo")
async def send_welcome(ctx: Ctx, number: int, seconds: float) -> str:
    """Send a mail to a new user."""
    await asyncio.sleep(seconds)
    async with ctx.transaction() as tx:
        await tx.execute(EFFECT, [ctx.step_id, ctx.attempt, ctx.worker])
    return f"mail-{number}"


@hf.task(name="demo.resize_image", queue="demo")
def resize_image(ctx: Ctx, number: int, seconds: float) -> str:
    """Make a small image of a large one."""
    time.sleep(seconds)
    with ctx.transaction() as tx:
        tx.execute(EFFECT, [ctx.step_id, ctx.attempt, ctx.worker])
    return f"image-{number}.webp"


@hf.task(name="demo.charge_card", queue="demo", retry=SOON)
def charge_card(ctx: Ctx, number: int, seconds: float) -> str:
    """Charge a card, which is sometimes declined and then retried."""
    time.sleep(seconds)
    with ctx.transaction() as tx:
        tx.execute(EFFECT, [ctx.step_id, ctx.attempt, ctx.worker])
        if ctx.attempt == 1 and number % DECLINED_EACH == 0:
            raise CardDeclined("insufficient funds")  # the effect is undone with the attempt
    return f"charge-{number}"


@hf.task(name="demo.send_digest", queue="demo")
def send_digest() -> None:
    """Send the news of the last second, which the demo's schedule starts."""


@hf.task(name=HOPELESS, queue="demo", retry=RetryPolicy(limit=3, base=timedelta(seconds=0.3)))
async def import_catalog(ctx: Ctx, number: int, seconds: float) -> int:
    """Import a catalog that does not exist: fails each time, and in the end for good."""
    await asyncio.sleep(seconds)
    ctx.log.debug("catalog.opened", number=number)
    raise CatalogMissing(f"catalog-{number}.csv: no such file")
