"""An app whose worker is killed in the middle of a feed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic import BaseModel

from holdfast import Holdfast
from holdfast.ingest import Canonical, Rows

ROWS = 100
AT = datetime(2024, 1, 1, tzinfo=UTC)
hf = Holdfast()


class Order(BaseModel):
    id: str
    name: str


rows = [{"id": f"k{n:05}", "name": f"n{n}", "at": AT + timedelta(seconds=n)} for n in range(ROWS)]
feed = hf.ingest(
    "orders",
    source=Rows(rows, key="id", updated_at="at", page_size=10),
    into=Canonical("public.orders", Order, key="id"),
    least=30,
    batch=30,
    upsert=10,
)
