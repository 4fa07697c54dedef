"""Feeds, as a typed team writes them: neither tool finds anything."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, assert_type
from uuid import UUID

from pydantic import BaseModel

from holdfast import Env, Holdfast
from holdfast.ingest import Canonical, IngestRun, Page, Part, Pricing, Rows, RunSummary, Table, Window

hf = Holdfast()


class Order(BaseModel):
    id: int
    cents: int


class Api:
    """A source of one's own."""

    def key(self, record: dict[str, Any]) -> str:
        return str(record["id"])

    async def page(self, window: Window, part: Part, cursor: str | None, limit: int) -> Page:
        return Page([{"id": window.until.year, "cents": limit}], cursor=cursor, has_more=part.low is not None)


def to_order(record: dict[str, Any]) -> Order:
    return Order(id=record["id"], cents=record["cents"])


into = Canonical("orders", Order, key="id")
orders = hf.ingest(
    "orders", source=Rows([{"id": 1}], key="id"), into=into, map=to_order, price=Pricing("cents", "1.15")
)
shop = hf.ingest(
    "shop", source=Table(Env("SHOP_DSN"), "orders", key="id", updated_at="at"), into=into, cron="*/15 * * * *"
)
other = hf.ingest("other", source=Api(), into=into, overlap="15m", workers=4, max_rejects=3)


def start() -> None:
    run = orders.start(full=True)
    assert_type(run, IngestRun)
    assert_type(run.id, UUID)
    assert_type(run.result(timeout="1m"), RunSummary)
    run.force(reason="half is enough", advance_watermark=False)
    run.resume_consolidation(reason="fixed")
    assert_type(orders.watermark, datetime | None)
    shop.backfill(since=datetime(2024, 1, 1, tzinfo=UTC), until=datetime(2024, 2, 1, tzinfo=UTC))
