"""What the Python of ingest guards against, as short stories, and code that lacks one guard: each fails its story."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple
from unittest.mock import patch

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.ingest import Table, fetch, plan, table_sql
from holdfast.ingest import table as table_module
from holdfast.testing import Template, drain
from ingest.shop import DB, TABLE, Shop, feed_of, names, order, table
from ingest.test_table import SOURCE, fill, text_id

Story = Callable[[Holdfast, DB, str], None]


@pytest.fixture
def shop(template: Template, db: DB) -> Iterator[str]:
    db.execute(TABLE)
    with template.clone() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SOURCE)
        yield dsn


def a_row_that_commits_late_comes_with_the_next_run(hf: Holdfast, db: DB, _shop: str) -> None:
    """C-21, R29: the overlap asks for it again"""
    rows = [order(n) for n in range(5)]
    feed = feed_of(hf, Shop(rows))
    feed.start()
    drain(hf)
    rows.append(order(5, at=datetime.now(UTC) - timedelta(minutes=5)))
    feed.start()
    drain(hf)
    assert table(db) == names(rows)


def a_row_of_a_transaction_that_is_open_at_the_bound_comes_with_the_next_run(hf: Holdfast, db: DB, shop: str) -> None:
    """P-110, C-21, R29: at overlap 0"""
    with psycopg.connect(shop, autocommit=True) as there:
        fill(there, 3)
    source = Table(shop, "orders", key="id", updated_at="changed_at")
    try:
        feed = feed_of(hf, source, map=text_id, overlap=0)
        with psycopg.connect(shop) as late:
            late.execute("insert into orders values (99, 'late', 1, now(), false)")
            feed.start()
            drain(hf)
        feed.start()
        drain(hf)
    finally:
        source.close()
    assert set(table(db)) == {"1", "2", "3", "99"}


def a_row_that_an_offset_jumps_over_is_read(hf: Holdfast, db: DB, _shop: str) -> None:
    """C-82"""
    rows = [order(n) for n in range(90)]
    shop = Shop(rows, paging="offset")
    shop.between = [lambda: None, lambda: rows[0].update(at=datetime.now(UTC) + timedelta(hours=1))]
    feed_of(hf, shop).start()
    drain(hf)
    assert {row["id"] for row in rows[1:]} <= set(table(db))


class Plain(Shop):
    """A shop that cannot count."""

    count = None  # type: ignore[assignment]


def a_page_whose_settle_fails_is_not_stored(hf: Holdfast, db: DB, _shop: str) -> None:
    """P-83, C-19, R29: stored, it would have no new key the next time, and the walk would end there"""
    rows = [order(n) for n in range(95)]
    died = []

    def die_once(place: str) -> None:
        if place == "before_commit" and shop.asked and not died:
            died.append(place)
            raise ConnectionError("it died")

    shop = Plain(rows)
    feed_of(hf, shop).start()
    with patch("holdfast.handlers.transaction.failpoint", die_once):
        drain(hf, concurrency=1, bypass_backoff=True)
    assert died
    assert table(db) == names(rows)


put = fetch.put
bounded = plan.bounded


def put_apart(tx: Any, *arguments: Any) -> int:
    fresh = put(tx, *arguments)
    tx.commit()
    return fresh


def bounded_without_overlap(reader: Any, settings: Any, start: Any) -> Any:
    window, run_type = bounded(reader, settings, start)
    is_full = window.since is None
    return (window if is_full else plan.Window(start.watermark, window.until)), run_type


class Mutant(NamedTuple):
    name: str
    story: Story
    place: Any
    attribute: str
    instead: Any


MUTANTS = [
    Mutant("no overlap", a_row_that_commits_late_comes_with_the_next_run, plan, "bounded", bounded_without_overlap),
    Mutant(
        "a bound that ignores open transactions",
        a_row_of_a_transaction_that_is_open_at_the_bound_comes_with_the_next_run,
        table_module, "BOUND", "select pg_catalog.clock_timestamp()",
    ),
    Mutant(
        "no shortfall count", a_row_that_an_offset_jumps_over_is_read, fetch.Fetcher, "_counted",
        lambda _self, progress, _part, _count: {"records": progress.offset},
    ),
    Mutant("effects outside the settle", a_page_whose_settle_fails_is_not_stored, fetch, "put", put_apart),
]  # fmt: skip


@pytest.mark.one_server
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_story_holds(hf: Holdfast, db: DB, shop: str, mutant: Mutant) -> None:
    """P-83, P-110, C-19, C-21, C-82, R29: each story names its own"""
    assert table_module.BOUND is table_sql.BOUND
    mutant.story(hf, db, shop)


@pytest.mark.one_server
@pytest.mark.unsound
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_code_without_its_guard_is_caught(hf: Holdfast, db: DB, shop: str, mutant: Mutant) -> None:
    with patch.object(mutant.place, mutant.attribute, mutant.instead), pytest.raises(AssertionError):
        mutant.story(hf, db, shop)
