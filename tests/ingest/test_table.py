"""`Table` on a second real database: pages by time and key, late commits, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from holdfast import Holdfast
from holdfast.env import Env
from holdfast.errors import BadDefinition, RunFailed, Unavailable
from holdfast.ingest import Table
from holdfast.ingest import table as table_module
from holdfast.ingest.source import Part, Window
from holdfast.testing import Template, drain
from ingest.shop import DB, TABLE, feed_of, table

SOURCE = """
create table orders (id bigint primary key, name text, cents bigint, changed_at timestamptz, gone boolean);
create index on orders (changed_at, id);
"""


@pytest.fixture
def shop(template: Template) -> Iterator[str]:
    with template.clone() as dsn:
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(SOURCE)
        yield dsn


@pytest.fixture
def there(shop: str) -> Iterator[DB]:
    with psycopg.connect(shop, autocommit=True) as connection:
        yield connection


@pytest.fixture(autouse=True)
def target(db: DB) -> None:
    db.execute(TABLE)


MADE: list[Table] = []


@pytest.fixture(autouse=True)
def closed(shop: str) -> Iterator[None]:  # before the database is dropped
    yield
    while MADE:
        MADE.pop().close()


def source(dsn: str, **options: Any) -> Table:
    MADE.append(Table(dsn, "orders", key="id", updated_at="changed_at", **options))
    return MADE[-1]


def fill(there: DB, rows: int, *, at: str = "now() - interval '1 day'") -> None:
    there.execute(
        f"insert into orders select n, 'n' || n, n, {at}, false from generate_series(1, {rows}) n"
        " on conflict (id) do update set name = excluded.name || '!', changed_at = excluded.changed_at"
    )


def text_id(record: dict[str, Any]) -> dict[str, Any]:
    return {**record, "id": str(record["id"])}


def test_a_page_after_the_first_begins_at_its_cursor_and_not_at_its_partition() -> None:
    """With both bounds PostgreSQL reads the index from the lower one on, for each page."""
    source = Table("dbname=shop", "orders", key="id", updated_at="changed_at")
    window, part = Window(None, datetime(2026, 1, 1, tzinfo=UTC)), Part(["2025-01-01", "1"], ["2025-02-01", "9"])
    assert set(source._values(window, part)) == {"until", "low", "low_key", "high", "high_key"}
    assert set(source._values(window, part, ["2025-01-02", "5"])) == {
        "until", "high", "high_key", "cursor", "cursor_key",
    }  # fmt: skip


def test_rows_of_one_time_are_divided_by_key_and_read_once(hf: Holdfast, db: DB, shop: str, there: DB) -> None:
    """P-151, P-152: a bulk load has one time for all its rows"""
    fill(there, 2500)
    feed = feed_of(hf, source(shop, page_size=300, deleted="gone"), map=text_id, workers=6, least=100)
    run = feed.start()
    drain(hf)

    assert run.result(timeout=5).records == 2500
    assert len(table(db)) == 2500
    parts = db.execute("select next_offset from ingest.partition_progress").fetchall()
    assert 2 <= len(parts) <= 6
    assert max(parts) < (1000,)
    there.execute("update orders set gone = true, changed_at = now() where id = 7")
    there.execute("delete from orders where id = 8")
    feed.start()
    drain(hf)
    assert {"7", "8"} - set(table(db)) == {"7"}
    full = feed.start(full=True)
    drain(hf)
    assert full.result(timeout=5).deleted == 1
    assert len(table(db)) == 2498


def test_a_row_that_commits_late_comes_with_the_next_run_at_overlap_0(
    hf: Holdfast, db: DB, shop: str, there: DB
) -> None:
    """P-110, C-21, R29: the bound lies before the begin of the oldest open transaction, written or not"""
    fill(there, 10)
    feed = feed_of(hf, source(shop), map=text_id, overlap=0)
    with psycopg.connect(shop) as late:
        late.execute("select now()")  # its now() is fixed, and it has not written yet
        there.execute("update orders set changed_at = clock_timestamp() where id = 1")
        first = feed.start()
        drain(hf)
        late.execute("insert into orders values (99, 'late', 1, now(), false)")
        late.commit()
    assert "99" not in table(db)
    assert first.result(timeout=5).records >= 9
    second = feed.start()
    drain(hf)

    second.result(timeout=5)
    assert set(table(db)) == {str(n) for n in [*range(1, 11), 99]}


def test_a_small_window_of_a_large_table_is_read_although_a_sample_may_have_no_row_of_it(
    hf: Holdfast, db: DB, shop: str, there: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P-108, P-152: a run without partitions would move the watermark past the rows"""
    fill(there, 5000)
    there.execute("analyze orders")
    feed = feed_of(hf, source(shop), map=text_id, workers=4, least=100)
    feed.start()
    drain(hf)
    monkeypatch.setattr(table_module, "SAMPLED_FROM", 1000)
    monkeypatch.setattr(table_module, "SAMPLE", 1)
    there.execute("update orders set name = 'changed', changed_at = now() where id = 77")
    feed.start()
    drain(hf)
    assert table(db)["77"] == "changed"
    fill(there, 5000)  # a large window, of which the sample has few rows or none
    large = feed.start(full=True)
    drain(hf)
    assert large.result(timeout=5).records == 5000
    assert set(table(db).values()) == {f"n{n}!" for n in range(1, 5001)}


def test_a_page_with_a_row_that_jsonb_cannot_hold_goes_on_without_it(
    hf: Holdfast, db: DB, shop: str, there: DB
) -> None:
    """C-80: only the database finds a lone surrogate that JSON escapes"""
    there.execute("alter table orders add column extra json")
    fill(there, 5)
    there.execute(r"""update orders set extra = '"\ud800"' where id = 2""")
    there.execute(r"""update orders set extra = '"\\u0000 is text"' where id = 3""")
    there.execute("update orders set changed_at = '-infinity' where id = 4")
    there.execute("alter table orders drop constraint orders_pkey, add unique (id), alter id drop not null")
    there.execute("insert into orders values (null, 'no key', 1, now() - interval '1 day', false)")
    feed = feed_of(hf, source(shop), map=text_id, max_rejects=3)
    feed.start().status()
    drain(hf)

    assert sorted(table(db)) == ["1", "3", "5"]
    assert sorted(str(each.key) for each in feed.quarantine()) == ["2", "4", "None"]


def test_the_options_of_a_dsn_hold_and_a_restart_of_the_source_fails_one_page_at_most(shop: str, there: DB) -> None:
    there.execute("create schema other; alter table orders set schema other")
    fill_there = (
        "insert into other.orders select n, 'n', n, now() - interval '1 day', false from generate_series(1, 3) n"
    )
    there.execute(fill_there)
    read = source(make_conninfo(shop, options="-c search_path=other"))
    window = Window(None, read.now())
    connections = [read._connections.lent() for _ in range(3)]
    for each in connections:
        each.__enter__().execute("select 1")
    for each in connections:
        each.__exit__(None, None, None)
    ended = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()"
    there.execute(ended + " and pid <> pg_backend_pid() and backend_type = 'client backend'")
    with pytest.raises(Unavailable):
        read.page(window, Part(), None, 10)

    assert len(read.page(window, Part(), None, 10).records) == 3


def test_a_row_without_a_time_is_quarantined_and_not_hidden_by_the_window(
    hf: Holdfast, db: DB, shop: str, there: DB
) -> None:
    """C-80"""
    fill(there, 5)
    there.execute("update orders set changed_at = null where id = 3")
    feed = feed_of(hf, source(shop), map=text_id)
    run = feed.start()
    drain(hf)

    with pytest.raises(RunFailed, match="quarantined"):
        run.result(timeout=5)
    assert [(each.key, "null" in each.reason) for each in feed.quarantine()] == [("3", True)]


def test_the_pages_of_a_table_leave_no_transaction_open(shop: str, there: DB) -> None:
    fill(there, 5)
    read = source(shop, page_size=2)
    window = Window(None, read.now())

    pages = [read.page(window, Part(), None, 2)]
    while len(pages[-1].records) == 2:
        pages.append(read.page(window, Part(), pages[-1].cursor, 2))

    assert [record.key for page in pages for record in page.records] == ["1", "2", "3", "4", "5"]
    idle = there.execute(
        "select state from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        " and backend_type = 'client backend'"
    ).fetchall()
    assert set(idle) == {("idle",)}
    assert read.count(window, Part()) == 5
    assert read.lookup(["1", "77"]) == ["1"]
    assert [warning.split(":")[0] for warning in read.warnings()] == []


@pytest.mark.parametrize(
    ("change", "options", "where"),
    [
        ("drop table orders", {}, "orders"),
        ("alter table orders drop column changed_at", {}, "changed_at"),
        ("alter table orders drop constraint orders_pkey", {}, "id"),
        ("alter table orders alter column changed_at type timestamp", {}, "timezone"),
        ("alter table orders alter column changed_at type text", {}, "updated_at"),
        ("select 1", {"deleted": "no_such"}, "no_such"),
    ],
)
def test_a_table_that_cannot_be_read_safely_is_refused(
    shop: str, there: DB, change: str, options: dict[str, Any], where: str
) -> None:
    there.execute(change)
    with pytest.raises(BadDefinition) as caught:
        source(shop, **options).check()
    assert caught.value.where == where


def test_a_table_that_the_login_may_not_read_is_refused_with_the_grant(shop: str, there: DB) -> None:
    as_worker = source(make_conninfo(shop, options="-c role=hf_worker"))
    with pytest.raises(BadDefinition) as caught:
        as_worker.check()
    assert caught.value.where == "orders"
    assert caught.value.next is not None
    there.execute(caught.value.next)
    as_worker.check()


def test_a_timestamp_without_a_zone_is_read_in_the_named_one(shop: str, there: DB) -> None:
    there.execute("alter table orders alter column changed_at type timestamp")
    there.execute("insert into orders values (1, 'x', 1, '2024-07-01 12:00', false)")
    read = source(shop, timezone="Europe/Berlin")
    read.check()

    (record,) = read.page(Window(None, read.now()), Part(), None, 10).records

    assert record.updated_at.isoformat().endswith("+00:00")
    assert record.updated_at.hour == 10


@pytest.mark.one_server
def test_a_secret_in_a_dsn_is_refused() -> None:
    with pytest.raises(BadDefinition) as caught:
        Table("postgresql://me:s3cret@db/shop", "orders", key="id", updated_at="changed_at")
    assert "s3cret" not in str(caught.value)
    Table(Env("SHOP_DSN"), "orders", key="id", updated_at="changed_at")
