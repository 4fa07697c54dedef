"""Functions that documents name as module:function."""

from __future__ import annotations

from dataclasses import dataclass

SHOP = "no function"


@dataclass
class Bank:
    url: str
    tries: int = 1


def reserve(order_id: int) -> list[str]:
    return [f"{order_id}-a", f"{order_id}-b"]


def charge(order_id: int, config: Bank) -> str:
    return f"{order_id} at {config.url}"


def is_large(reserve: list[str]) -> bool:
    return len(reserve) > 10


def approve(reserve: list[str]) -> str:
    return "approved"


async def ship(item: str, order_id: int) -> str:
    return f"{item} of {order_id}"


def bill(charge: str) -> dict[str, str]:
    return {"text": charge}


def draw(text: str) -> str:
    return f"bill: {text}"


def close(ship: list[str], approve: str | None, bill: dict[str, str]) -> list[object]:
    return [ship, approve, bill]
