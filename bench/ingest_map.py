"""The mapping of the section `ingest`, the same for Holdfast, a loop by hand and dlt; it imports none of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel


class Order(BaseModel):
    id: int
    name: str
    cents: int
    note: str


def to_order(record: dict[str, Any]) -> Order:
    """Map a record, as users do."""
    return Order(id=record["id"], name=record["name"].upper(), cents=record["cents"], note=record["note"])
