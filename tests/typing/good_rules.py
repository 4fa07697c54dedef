"""Rules, channels and runs, as a typed team writes them: neither tool finds anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, assert_type
from uuid import UUID

from holdfast import Env, Holdfast
from holdfast.rules import (
    Change,
    Guard,
    Item,
    Price,
    Refusal,
    Rule,
    Unchanged,
    evaluate,
    everything,
    field,
    item,
    percent,
    price,
    sku,
    tag,
    to_json,
)
from holdfast.rules.channel import Channel, ChannelCall, Health, Write, Wrote
from holdfast.rules.handle import RuleRun
from holdfast.rules.rows import RuleRunRow, TargetRow
from holdfast.rules.table import Table

hf = Holdfast()
shop = Table("shop.products", key="sku", price="price", currency="EUR", dsn=Env("SHOP_DSN"))
hf.rules.channel("shop", shop, batch=100, rate=2, per=1, request_timeout="5s")

summer = Rule(
    "summer",
    where=tag("sale") & (price >= "1.00") & ~sku.in_(["A", "B"]) | (field("brand") == "acme"),
    guard=Guard(minimum="3.50", most_down=30, most_up=None),
    change=percent(Decimal("-12.5")).round("nearest", "0.05").floor(1).compare_at("before"),
)


class Shelf:
    """A channel of one's own."""

    kind = "shelf"
    compares = False
    in_transaction = False

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:
        print(call.correlation_id)
        yield item("1", "9.99", "EUR", tags=["sale"])

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:
        print(call.timeout)
        return {each: Price(999, None, "EUR") for each in ids}

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:
        print(call.timeout)
        return [Wrote("written") for _ in writes]

    def health(self) -> Health:
        return Health(ok=True, detail="")


hf.rules.channel("shelf", Shelf())
known: Channel = Shelf()


def judge(one: Item) -> str:
    match evaluate(summer, one):
        case Change(_, before, after):
            return f"{before.unit_amount} {after.unit_amount}"
        case Unchanged(is_selected=is_selected):
            return str(is_selected)
        case Refusal(reason=reason):
            return reason


def run() -> None:
    preview = hf.rules.preview(summer, channel="shop")
    assert_type(preview, RuleRun)
    assert_type(preview.id, UUID)
    assert_type(preview.summary, RuleRunRow)
    assert_type(preview.summary.counts["failed"], int)
    assert_type(preview.apply(plan="7f3a9c1e", only=["SKU-1", 7], first=50).result(timeout="5m"), RuleRunRow)
    for target in preview.targets("FAILED"):
        assert_type(target, TargetRow)
    hf.rules.preview(to_json(summer), channel="shop", items=Path("items.csv"), apply=True)
    hf.rules.preview(Rule("all", where=everything, change=percent(1)), channel="shop", items=["1", {"id": "2"}])
    assert_type(hf.rules.define(summer), int)
    preview.retry_failed(classes=["TIMEOUT"])
    preview.pause("look first")


async def arun() -> None:
    preview = await hf.rules.apreview(summer, channel="shop")
    assert_type(await preview.asummary(), RuleRunRow)
    assert_type(await (await preview.aapply()).aresult(), RuleRunRow)
    await preview.astop()
