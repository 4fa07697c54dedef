"""The demo's order flow: a card that is declined once, a carrier that asks for a pause, parcels side by side, customs.

Customs refuses for good until a person has dealt with it. Every attempt is one row of the journal; the demo reads there
what it says happened.
"""

from __future__ import annotations

from holdfast.demo.tasks import CardDeclined, hf
from holdfast.handlers.context import Ctx
from holdfast.models import Fail, Retry

QUEUE = "demo"
PAUSE = 1.0  # seconds, as the carrier's Retry-After has it

order = hf.flow("order", namespace="demo", description="From payment to parcels")


@order.step(queue=QUEUE)
def reserve(order_id: int, goods: list[str]) -> list[str]:
    """Set goods aside."""
    return [f"{name} of order {order_id}" for name in goods]


@order.step(after=reserve, queue=QUEUE)
def charge(ctx: Ctx, order_id: int) -> str:
    """Charge the card, which is declined at first."""
    if ctx.attempt == 1:
        raise CardDeclined("insufficient funds")
    return f"charge-{order_id}"


@order.step(after=reserve, queue=QUEUE)
def book_carrier(ctx: Ctx, order_id: int) -> str:
    """Book a carrier, who answers 429 with a Retry-After at first."""
    if ctx.attempt == 1:
        raise Retry("429: too many requests", after=PAUSE)
    return f"tour-{order_id}"


@order.step(after=reserve, queue=QUEUE)
def clear_customs() -> dict[str, str]:
    """Ask customs, which wants a form that nobody has."""
    raise Fail("form CN23 is missing")


@order.step(each=reserve, after=[charge, book_carrier, clear_customs], queue=QUEUE)
def ship(item: str, book_carrier: str) -> str:
    """Send one parcel."""
    return f"{item} with {book_carrier}"


@order.step(after=ship, queue=QUEUE)
def close(ship: list[str]) -> str:
    """Say what became of the order."""
    return f"{len(ship)} parcels sent"
