"""The server crashes in the middle of a feed: while pages are read, and while they are consolidated."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from pydantic import BaseModel

from holdfast import Holdfast
from holdfast.ingest import Canonical, Page, Part, Rows, Window
from holdfast.testing import Clock, drain, on_database
from kernel.steps import seconds, violations
from scenarios.crew import Database, Server

ROWS = 60


class Order(BaseModel):
    id: str
    name: str


class Crashing(Rows):
    """Rows whose server is killed while they answer a page."""

    def __init__(self, server: Server, at_page: int) -> None:
        super().__init__([{"id": f"k{n:03}", "name": f"n{n}"} for n in range(ROWS)], key="id", page_size=5)
        self.server, self.at_page, self.pages = server, at_page, 0

    def page(self, window: Window, part: Part, cursor: Any, limit: int) -> Page:
        self.pages += 1
        if self.pages == self.at_page:
            self.server.restart()
        return super().page(window, part, cursor, limit)


@pytest.mark.timeout(300)
def test_a_crash_of_the_server_loses_no_page_and_counts_none_twice(database: Database, server: Server) -> None:
    """R29, P-79, P-81, P-83: cursors and records are of the same commit, also after a crash"""
    database.do("create table public.orders (id text primary key, name text, deleted_at timestamptz)")
    hf, mapped = Holdfast(), []

    def to_order(record: dict[str, Any]) -> Order:
        mapped.append(record["id"])
        if len(mapped) == ROWS // 2:
            server.restart()
        return Order(**record)

    source = Crashing(server, 4)
    into = Canonical("public.orders", Order, key="id")
    feed = hf.ingest("orders", source=source, into=into, map=to_order, least=20, batch=20)
    with on_database(hf, database.dsn):
        run = feed.start()
        for _ in range(4):
            drain(hf, concurrency=1)
            with psycopg.connect(database.dsn, autocommit=True) as connection:
                Clock(connection).advance(seconds(900))

        assert run.result(timeout=30).records == ROWS
        assert source.pages > source.at_page
        assert database.rows("select count(*), count(deleted_at) from public.orders") == [(ROWS, 0)]
        counts = "select completed_workers, failed_workers, quarantined from ingest.run_metadata"
        assert database.rows(counts) == [(3, 0, 0)]
        done = "select event, count(*) from ingest.events where event in ('WORK_DONE', 'CONSOLIDATE') group by 1"
        assert dict(database.rows(done)) == {"WORK_DONE": 3, "CONSOLIDATE": 1}
        with database.connection() as connection:
            assert violations(connection) == []
