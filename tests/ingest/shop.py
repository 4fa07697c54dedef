"""A target table, and sources that can be changed, be busy and fail on demand."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg import Connection
from pydantic import BaseModel

from holdfast import Holdfast
from holdfast.ingest import Canonical, Page, Part, Rows, Window
from holdfast.ingest.api import Feed

DB = Connection[Any]
TABLE = "create table public.orders (id text primary key, name text, cents bigint, deleted_at timestamptz)"
LONG_AGO = datetime.now(UTC) - timedelta(days=1)


class Order(BaseModel):
    id: str
    name: str
    cents: int = 0


def order(n: int, name: str = "", **fields: Any) -> dict[str, Any]:
    return {"id": f"k{n:05}", "name": name or f"n{n}", "cents": n, "at": LONG_AGO, **fields}


class Shop(Rows):
    """Rows whose calls are counted, and which fail or are changed between calls on demand."""

    def __init__(self, rows: list[dict[str, Any]], **options: Any) -> None:
        super().__init__(rows, key="id", updated_at="at", deleted=lambda row: row.get("gone", False), **options)
        self.asked: list[tuple[Any, int]] = []  # the cursor and the limit of each page
        self.windows: list[Window] = []
        self.faults: list[Exception] = []
        self.between: list[Any] = []  # functions that are called before a page, one each

    def page(self, window: Window, part: Part, cursor: Any, limit: int) -> Page:
        if self.between:
            self.between.pop(0)()
        if self.faults:
            raise self.faults.pop(0)
        self.asked.append((cursor, limit))
        self.windows.append(window)
        return super().page(window, part, cursor, limit)


def feed_of(hf: Holdfast, source: Any, **options: Any) -> Feed:
    into = Canonical("public.orders", Order, key="id")
    return hf.ingest("orders", source=source, into=into, **options)


def table(db: DB, *, live: bool = True) -> dict[str, str]:
    """The target's rows by key: names."""
    where = "where deleted_at is null" if live else ""
    return dict(db.execute(f"select id, name from public.orders {where}").fetchall())


def names(rows: Iterator[dict[str, Any]] | list[dict[str, Any]]) -> dict[str, str]:
    return {row["id"]: row["name"] for row in rows}
