"""Feeds in Python, from a source to the target, drained in this process."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from pydantic import AliasPath, BaseModel, Field

from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput, RateLimited, Rejected, RunFailed, Unavailable, WrongState
from holdfast.ingest import Canonical, Page, Pricing, Rows
from holdfast.testing import Clock, drain
from ingest.shop import DB, LONG_AGO, TABLE, Order, Shop, feed_of, names, order, table
from properties.guards import login_for


@pytest.fixture(autouse=True)
def target(db: DB) -> None:
    db.execute(TABLE)


def test_every_record_is_in_the_table_once_and_the_next_run_asks_for_changes(hf: Holdfast, db: DB) -> None:
    """P-06, P-24 to P-28, P-39, P-66, P-69, P-70, P-89, P-104 to P-106, P-118, P-119, P-122, P-124, P-151, C-27"""
    rows = [order(n) for n in range(95)]
    shop = Shop(rows, paging="offset")
    feed = feed_of(hf, shop, least=1000, batch=40, upsert=7, price=Pricing("cents", default="2"))
    run = feed.start()
    assert run.status().state == "planning"
    drain(hf)

    summary = run.result(timeout=5)
    assert (summary.run_type, summary.records, summary.quarantined) == ("full", 95, 0)
    assert shop.asked == [(0, 30), (30, 30), (60, 30), (90, 30)]
    assert table(db) == names(rows)
    assert db.execute("select cents from public.orders where id = 'k00007'").fetchone() == (14,)
    batches = db.execute("select payload -> 'rows' from holdfast.notes where message = 'consolidated' order by id")
    assert sorted(count for (count,) in batches) == [15, 40, 40]
    rows[3].update(name="changed", at=datetime.now(UTC))
    rows.append(order(95, at=datetime.now(UTC)))
    shop.asked.clear()

    second = feed.start()
    drain(hf)

    assert second.result(timeout=5).records == 2
    assert shop.asked == [(0, 30)]
    assert shop.windows[-1].since == summary.watermark_after - timedelta(minutes=15)  # type: ignore[operator]
    assert table(db) == names(rows)
    assert feed.watermark == second.result().watermark_after > summary.watermark_after  # type: ignore[operator]


def test_a_partition_of_5000_records_is_read_by_offset_to_its_end(hf: Holdfast, db: DB) -> None:
    """P-118, P-119, C-27: offsets are multiples of the page size"""
    shop = Shop([order(n) for n in range(5000)], paging="offset", page_size=500)
    run = feed_of(hf, shop, least=5000).start()
    drain(hf)

    assert run.result(timeout=5).records == 5000
    assert [offset for offset, _ in shop.asked] == list(range(0, 5000, 500))
    parts = db.execute("select status, records_processed from ingest.worker_runs").fetchall()
    assert parts == [("completed", 5000)]


def test_each_log_line_of_a_run_carries_its_trace(hf: Holdfast, db: DB, log_lines: list[dict[str, object]]) -> None:
    """P-146: of the plan, of pages, of the consolidation and of batches"""
    shop = Shop([order(n) for n in range(40)])
    shop.faults = [Unavailable("502")]
    run = feed_of(hf, shop, least=20, batch=10).start()
    drain(hf, bypass_backoff=True, log_level="info")
    run.result(timeout=5)

    row = db.execute("select trace_id from ingest.run_metadata").fetchone()
    lines = [line for line in log_lines if "step_id" in line]
    kinds = {str(line["kind"]).rpartition(":")[2] for line in lines}
    assert kinds == {"plan", "page", "consolidate", "batch"}
    assert {line.get("trace_id") for line in lines} == set(row or ())


def test_prices_follow_the_rules_of_the_feed_as_the_run_froze_them(hf: Holdfast, db: DB) -> None:
    """P-22, P-25, P-149: the lowest priority that fits wins; a rule of the same priority replaces the other"""
    feed = feed_of(hf, Shop([order(n, name="round" if n % 2 else "oval") for n in range(4)]), price=Pricing("cents"))
    drain(hf)  # a worker defines the feed
    db.execute("select ingest.define_price('orders', 20, 10)")
    db.execute("select ingest.define_price('orders', 10, 7, %s)", [Jsonb({"name": ["round"], "cents": {"min": 2}})])
    db.execute("select ingest.define_price('orders', 10, 3, %s)", [Jsonb({"name": ["round"], "cents": {"min": 2}})])
    db.execute("select ingest.define_price('orders', 5, 99, %s)", [Jsonb({"name": "square"})])
    assert db.execute("select ingest.forget_price('orders', 5)").fetchone() == (True,)
    feed.start()
    drain(hf)

    assert db.execute("select cents from public.orders order by id").fetchall() == [(0,), (10,), (20,), (9,)]
    assert len(db.execute("select * from ingest.pricing_rules").fetchall()) == 2


def test_a_busy_source_is_waited_for_and_a_failing_one_is_retried_three_times(hf: Holdfast, db: DB) -> None:
    """P-08, P-143, C-20, C-29: 429 charges no delivery"""
    shop = Shop([order(n) for n in range(5)])
    shop.faults = [RateLimited("slow down", retry_after=0) for _ in range(5)] + [Unavailable("502")] * 2
    feed = feed_of(hf, shop)
    run = feed.start()
    for _ in range(8):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")
        drain(hf, bypass_backoff=True)
    assert run.result(timeout=5).records == 5

    shop.faults = [Unavailable("502")] * 3
    failed = feed.start(full=True)
    drain(hf, bypass_backoff=True)
    with pytest.raises(RunFailed, match="502"):
        failed.result(timeout=5)
    failed.retry(reason="it is back")
    drain(hf)
    assert failed.result(timeout=5).records == 5

    shop.faults = [Rejected("401")]
    refused = feed.start(full=True)
    drain(hf)
    with pytest.raises(RunFailed, match="401"):
        refused.result(timeout=5)
    assert shop.faults == []


def test_a_poison_record_is_quarantined_and_mapped_again_after_the_fix(hf: Holdfast, db: DB) -> None:
    """P-21, P-22, P-43, C-80: strict by default; max_rejects lets it pass"""
    rows = [order(n) for n in range(10)]
    rows[4]["cents"] = "many"
    broken = [True]

    def to_order(record: dict[str, Any]) -> Order:
        return Order(
            **(record if broken[0] else {**record, "cents": 0 if record["cents"] == "many" else record["cents"]})
        )

    feed = feed_of(hf, Shop(rows), map=to_order)
    run = feed.start()
    drain(hf)
    with pytest.raises(RunFailed, match="quarantined"):
        run.result(timeout=5)
    assert [(each.key, each.stage) for each in feed.quarantine()] == [("k00004", "map")]
    assert len(table(db)) == 9
    assert feed.watermark is None

    broken[0] = False
    run.resume_consolidation(reason="the map reads it now")
    drain(hf)

    assert run.result(timeout=5).quarantined == 0
    assert table(db) == names(rows)
    assert feed.quarantine() == []


def test_a_record_that_the_target_refuses_does_not_take_its_batch_along(hf: Holdfast, db: DB) -> None:
    """C-80"""
    db.execute("alter table public.orders add constraint few check (cents < 100)")
    rows = [order(n) for n in range(20)] + [order(20, cents=1000), {"name": "no key", "at": LONG_AGO}]
    feed = feed_of(hf, Shop(rows), max_rejects=2)
    run = feed.start()
    drain(hf)

    assert run.result(timeout=5).quarantined == 2
    assert len(table(db)) == 20
    assert {each.stage for each in feed.quarantine()} == {"fetch", "map"}


def test_a_full_run_deletes_what_is_gone_and_revives_what_comes_back(hf: Holdfast, db: DB) -> None:
    """P-40, P-150, C-23: an incremental run deletes on tombstones alone"""
    rows = [order(n) for n in range(10)]
    feed = feed_of(hf, Shop(rows), overlap="2d")
    feed.start()
    drain(hf)
    gone = rows.pop(3)
    rows[5]["gone"] = True
    feed.start()
    drain(hf)
    assert set(table(db)) == {row["id"] for row in rows if not row.get("gone")} | {gone["id"]}

    full = feed.start(full=True)
    drain(hf)
    assert full.result(timeout=5).deleted == 1
    assert len(table(db)) == 8
    assert len(table(db, live=False)) == 10
    del rows[5]["gone"]
    rows.append(gone)
    feed.start(full=True)
    drain(hf)
    assert table(db) == names(rows)


@pytest.mark.parametrize(("keep", "outcome"), [(6, "completed"), (4, "failed"), (0, "failed")])
def test_too_many_absent_records_fail_the_run(hf: Holdfast, db: DB, keep: int, outcome: str) -> None:
    """C-23: above max_delete_ratio, and so does a full run of zero records"""
    rows = [order(n) for n in range(10)]
    feed = feed_of(hf, Shop(rows))
    feed.start()
    drain(hf)
    del rows[keep:]
    run = feed.start(full=True)
    drain(hf)

    assert run.status().state == outcome
    assert len(table(db)) == (keep if outcome == "completed" else 10)


@pytest.mark.parametrize("change", ["leaves", "comes"])
def test_a_skipped_row_is_found_by_counting_and_read_again(hf: Holdfast, db: DB, change: str) -> None:
    """C-82: by offset, a page jumps over a row when one before it leaves the window or comes"""
    rows = [order(n) for n in range(90)]
    shop = Shop(rows, paging="offset")

    def move() -> None:
        if change == "leaves":
            rows[0]["at"] = datetime.now(UTC) + timedelta(hours=1)
        else:
            rows.append({**order(0), "id": "a"})

    shop.between = [lambda: None, move]
    run = feed_of(hf, shop).start()
    drain(hf)

    run.result(timeout=5)
    assert [cursor for cursor, _ in shop.asked][-4:].count(0) == 1
    assert len(shop.asked) > 4
    assert {row["id"] for row in rows[1:]} <= set(table(db))


@pytest.mark.parametrize(
    ("page", "why"),
    [
        (lambda *_: "text", "list"),
        (lambda *_: Page([order(1)], None, has_more=True), "cursor"),
        (lambda *_: [order(1, at=datetime(2024, 1, 1))], "time zone"),  # noqa: DTZ001
    ],
)
def test_a_source_that_answers_nonsense_fails_its_partition(hf: Holdfast, page: Any, why: str) -> None:
    shop = Shop([order(n) for n in range(3)])
    shop.page = page  # type: ignore[method-assign]
    run = feed_of(hf, shop).start()
    drain(hf, bypass_backoff=True)
    drain(hf, bypass_backoff=True)

    with pytest.raises(RunFailed, match=why):
        run.result(timeout=5)


def test_a_source_that_runs_in_a_circle_ends_at_the_first_page_without_a_new_key(hf: Holdfast, db: DB) -> None:
    class Circle:
        calls = 0

        def key(self, record: dict[str, Any]) -> str:
            return str(record["id"])

        async def page(self, _window: Any, _part: Any, cursor: Any, _limit: int) -> Page:
            self.calls += 1
            return Page([order((cursor or 0) % 3)], (cursor or 0) + 1, has_more=True)

    circle = Circle()
    run = feed_of(hf, circle).start()
    drain(hf)

    run.result(timeout=5)
    assert (circle.calls, len(table(db))) == (4, 3)


def test_a_second_start_is_refused_and_a_cancelled_plan_frees_the_feed(hf: Holdfast) -> None:
    """P-153, P-154, C-25"""
    feed = feed_of(hf, Shop([order(1)]))
    first = feed.start()
    with pytest.raises(WrongState, match=str(first.id)):
        feed.start()
    first.cancel(reason="not now")
    second = feed.start()
    drain(hf)
    assert second.result(timeout=5).records == 1
    assert first.status().state == "cancelled"


def test_a_backfill_reads_its_window_and_moves_no_watermark(hf: Holdfast, db: DB) -> None:
    rows = [order(1), order(2, at=LONG_AGO - timedelta(days=5))]
    feed = feed_of(hf, Shop(rows))
    run = feed.backfill(since=LONG_AGO - timedelta(days=6), until=LONG_AGO - timedelta(days=4))
    drain(hf)

    assert run.result(timeout=5).records == 1
    assert (set(table(db)), feed.watermark) == ({"k00002"}, None)


@pytest.mark.parametrize(
    ("since", "until", "where"),
    [
        (1, LONG_AGO, "since"),
        (LONG_AGO, datetime(2024, 1, 2), "until"),  # noqa: DTZ001
        (LONG_AGO, LONG_AGO - timedelta(days=1), "until"),
        (LONG_AGO, datetime.now(UTC) + timedelta(days=1), "until"),
    ],
    ids=["a number", "no time zone", "before it begins", "in the future"],
)
def test_a_window_that_is_none_is_refused(hf: Holdfast, since: Any, until: Any, where: str) -> None:
    feed = feed_of(hf, Shop([]))
    with pytest.raises(BadInput) as refused:
        feed.backfill(since, until)
    assert (refused.value.where, refused.value.next is not None) == (where, True)


def test_a_run_without_a_plan_cannot_be_continued(hf: Holdfast) -> None:
    """It exists, although it has no partitions: the error says what to do instead"""

    class Gone(Shop):
        def check(self) -> None:
            raise BadDefinition("there is no such shop")

    run = feed_of(hf, Gone([])).start()
    for state in ("planning", "error"):
        assert run.status().state == state
        for act in (run.retry, run.force, run.resume_consolidation):
            with pytest.raises(WrongState) as refused:
                act()
            assert (refused.value.where, "orders" in str(refused.value.next)) == (str(run.id), True)
        drain(hf)


def test_a_run_that_fails_keeps_the_watermark_and_the_next_brings_everything(hf: Holdfast, db: DB) -> None:
    """P-107, P-108, P-110"""
    rows = [order(n) for n in range(5)]
    shop = Shop(rows)
    feed = feed_of(hf, shop, overlap=0)
    feed.start()
    drain(hf)
    before = feed.watermark
    rows[1].update(name="changed", at=datetime.now(UTC))
    shop.faults = [Rejected("401")]
    feed.start()
    drain(hf)
    assert feed.watermark == before
    third = feed.start()
    drain(hf)
    assert third.result(timeout=5).watermark_before == before
    assert table(db) == names(rows)


def test_force_consolidates_what_there_is(hf: Holdfast, db: DB) -> None:
    """P-19, C-18"""
    rows = [order(n) for n in range(40)]
    shop = Shop(rows)
    feed = feed_of(hf, shop, least=20)
    shop.between = [lambda: None, lambda: shop.faults.append(Rejected("401"))]
    run = feed.start()
    drain(hf, concurrency=1)
    assert run.status().state == "failed"

    run.force(reason="half is better than nothing")
    drain(hf)

    assert run.result(timeout=5).forced
    assert 0 < len(table(db)) < 40
    assert feed.watermark is None


def test_a_schedule_starts_runs_and_a_tick_is_refused_while_one_is_active(hf: Holdfast, db: DB) -> None:
    """P-01, P-154"""
    feed = feed_of(hf, Rows([order(1)], key="id"), cron="0 2 29 2 *")
    drain(hf)  # a worker defines the schedule
    db.execute("select holdfast.run_schedule('ingest-orders')")
    with pytest.raises(psycopg.Error) as caught:
        db.execute("select holdfast.run_schedule('ingest-orders')")
    assert "active run" in str(caught.value)
    drain(hf)
    assert feed.watermark is not None


def test_a_tick_starts_one_run_however_many_workers_look(hf: Holdfast, db: DB, clock: Clock) -> None:
    """P-01, P-154, C-25"""
    feed = feed_of(hf, Rows([order(1)], key="id"), cron="0 2 * * *")
    clock.set(datetime(2030, 1, 1, 1, 59, tzinfo=UTC))
    drain(hf)  # a worker defines the schedule
    clock.advance(timedelta(minutes=2))
    with ThreadPoolExecutor(3) as workers:
        list(workers.map(lambda _: drain(hf), range(3)))
    drain(hf)

    assert db.execute("select count(*) from ingest.starts").fetchone() == (1,)
    assert feed.watermark is not None


class Nested(BaseModel):
    id: str
    name: str = Field(validation_alias=AliasPath("certificate", "lab"))
    cents: int = Field(alias="price")


def test_without_a_map_the_model_reads_nested_fields_by_alias(hf: Holdfast, db: DB) -> None:
    """P-24"""
    rows = [{"id": "a", "certificate": {"lab": "GIA"}, "price": 7}]
    into = Canonical("public.orders", Nested, key="id")
    run = hf.ingest("orders", source=Rows(rows, key="id"), into=into).start()
    drain(hf)

    run.result(timeout=5)
    assert db.execute("select id, name, cents from public.orders").fetchall() == [("a", "GIA", 7)]


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"overlap": "-1s"}, "overlap"),
        ({"workers": 0}, "workers"),
        ({"page_size": 0}, "page_size"),
        ({"max_delete_ratio": 2}, "max_delete_ratio"),
        ({"into": "orders"}, "into"),
        ({"price": Pricing("no_such")}, "price"),
        ({"price": 5}, "price"),
        ({"map": 5}, "map"),
        ({"source": object()}, "source"),
    ],
)
def test_a_definition_that_cannot_work_is_refused(options: dict[str, Any], where: str) -> None:
    """P-34: settings are checked where they are given"""
    app = Holdfast("dbname=none")
    given = {"source": Rows([], key="id"), "into": Canonical("orders", Order, key="id"), **options}
    with pytest.raises(BadDefinition) as caught:
        app.ingest("orders", **given)
    assert caught.value.where == where


@pytest.mark.parametrize("name", ["", "Orders", "1a", "a-b", "a" * 42, 'a"; drop table x; --'])
def test_a_name_that_is_not_an_identifier_is_refused(name: str) -> None:
    with pytest.raises(BadDefinition):
        Holdfast("dbname=none").ingest(name, source=Rows([], key="id"), into=Canonical("orders", Order, key="id"))


def test_a_target_that_the_login_may_not_write_is_refused_with_the_grant(db: DB) -> None:
    into = Canonical("public.orders", Order, key="id")
    db.execute("grant select on public.orders to hf_worker")
    with login_for(db, "hf_worker", "default") as login:
        with pytest.raises(BadDefinition) as caught:
            into.check(login)
        assert (caught.value.where, "insert, update" in caught.value.what) == ("public.orders", True)
        assert caught.value.next is not None
        db.execute(caught.value.next)
        into.check(login)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("drop table public.orders", "no table"),
        ("alter table public.orders drop column deleted_at", "deleted_at"),
        ("alter table public.orders drop constraint orders_pkey", "not unique"),
    ],
)
def test_a_target_that_cannot_be_written_is_refused_before_any_page(
    hf: Holdfast, db: DB, change: str, why: str
) -> None:
    db.execute(change)
    shop = Shop([order(1)])
    run = feed_of(hf, shop).start()
    drain(hf)

    with pytest.raises(RunFailed, match=why):
        run.result(timeout=5)
    assert shop.asked == []
