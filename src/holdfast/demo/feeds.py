"""The demo's feed: 20,000 records of a source that is busy once, one of them poison, and one that comes late."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from holdfast.demo.tasks import hf
from holdfast.errors import RateLimited
from holdfast.ingest.rows import Rows
from holdfast.ingest.source import Page, Part, Window
from holdfast.ingest.target import Canonical
from holdfast.reads import demo_feed

FEED = "demo_catalog"
QUEUE = "demo-feed"
RECORDS = 20_000
POISON = 13  # the record whose price is not a number
PAUSE = 0.3  # seconds, in the source's Retry-After
CHANGED_AT = datetime(2024, 1, 1, tzinfo=UTC)


class Item(BaseModel):
    """A record as the table has it."""

    sku: str
    cents: int


class Stock:
    """The records: all but the late ones are the same in each process."""

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Iterate over the records, and over those that came late."""
        for number in range(RECORDS):
            yield {"sku": f"{number:05}", "cents": "many" if number == POISON else number, "at": CHANGED_AT}
        with hf._engine.connection() as connection:
            for sku, at in demo_feed.late_records(connection):
                yield {"sku": sku, "cents": 1, "at": at}


class Catalog(Rows):
    """The source: its first page of a full run is refused."""

    def page(self, window: Window, part: Part, cursor: Any, limit: int) -> Page:
        """Return a page, after one answer 429."""
        if window.since is None:
            with hf._engine.connection() as connection:
                is_first = demo_feed.is_first_call(connection, window.until)
            if is_first:
                raise RateLimited("429: too many requests", retry_after=PAUSE)
        return super().page(window, part, cursor, limit)


catalog = hf.ingest(
    FEED,
    source=Catalog(Stock(), key="sku", updated_at="at", page_size=500),
    into=Canonical("holdfast_demo.catalog", Item, key="sku"),
    max_rejects=1,
    queue=QUEUE,
)
