"""What the tests of the HTTP channel arrange: items of their own in a simulated shop, runs and their targets."""

from __future__ import annotations

from datetime import datetime
from itertools import count
from typing import Any

from holdfast import Holdfast
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.http import HttpChannel
from holdfast.rules.rows import TargetRow
from holdfast.testing import Clock
from simulated import SimulatedShop

LIMIT = "select paused_until, open_until, failures, tokens from holdfast.limit_states where name = 'rules:shop'"
HALF = Rule("half", where=everything, change=percent(-50))
_numbers = count(1)


def some_items(number: int) -> list[str]:
    """Take items that no other test has."""
    return [f"item-{next(_numbers)}" for _ in range(number)]


def applied(hf: Holdfast, shop: SimulatedShop, items: list[str], **options: Any) -> RuleRun:
    """Register the shop and queue a run that halves the prices of some items."""
    if "shop" not in hf.rules.channels:
        hf.rules.channel("shop", HttpChannel(shop.url), **{"batch": 10, **options})
    return hf.rules.preview(HALF, channel="shop", items=items, apply=True)


def by_item(run: RuleRun) -> dict[str, TargetRow]:
    return {target.item_id: target for target in run.targets()}


def found(run: RuleRun) -> dict[str, tuple[str, str | None, str | None]]:
    """Read status, reason and class of each target."""
    return {item: (each.status, each.reason, each.error_class) for item, each in by_item(run).items()}


def sent(shop: SimulatedShop, items: list[str]) -> list[list[str]]:
    """Read the items of each write that named one of some items."""
    return [call["ids"] for call in shop.calls() if not set(items).isdisjoint(call["ids"])]


def halved(shop: SimulatedShop, items: list[str]) -> bool:
    """Return whether each item shows half of what it began with, and was written once."""
    began = {each["item"]: each["price"] for each in shop.entries("value") if each["by"] == "start"}
    now, writes = shop.prices(items), shop.writes()
    return all(float(now[item]) * 2 == float(began[item]) and writes[item] == 1 for item in items)


def limit(hf: Holdfast) -> tuple[datetime | None, datetime | None, int, Any]:
    """Read until when the channel's limit is paused and its breaker open, its failures and its tokens."""
    with hf.rules.connection() as connection:
        rows = connection.execute(LIMIT).fetchall()
    return rows[0] if rows else (None, None, 0, None)


def wait_of(run: RuleRun, clock: Clock) -> float:
    """Read in how many seconds the run's first target is due."""
    due = next(run.targets()).next_due_at
    assert due is not None
    return (due - clock.now()).total_seconds()
