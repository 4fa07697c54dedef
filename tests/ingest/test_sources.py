"""Sources with a mind of their own: async ones, busy ones, and partitions that are read again."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import Holdfast
from holdfast.errors import RateLimited, RunFailed, Unavailable
from holdfast.ingest import Canonical, Page, Part, Rows, Window
from holdfast.testing import Clock, drain
from ingest.shop import DB, LONG_AGO, TABLE, Shop, feed_of, names, order, table
from kernel.steps import seconds


@pytest.fixture(autouse=True)
def target(db: DB) -> None:
    db.execute(TABLE)


class Client:
    """A source whose client belongs to the event loop that it was made in, as clients of HTTP do."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self.loops: set[int] = set()

    async def key(self, record: dict[str, Any]) -> str:
        return str(record["id"])

    async def page(self, _window: Window, _part: Part, cursor: Any, limit: int) -> Page:
        self.loops.add(id(asyncio.get_running_loop()))
        begin = cursor or 0
        return Page(self.rows[begin : begin + limit], begin + limit)


def test_every_method_of_a_source_may_be_async_and_all_run_in_one_loop(hf: Holdfast, db: DB) -> None:
    """P-151"""
    rows = [order(n, at=str(LONG_AGO)) for n in range(70)]
    client = Client(rows)
    run = feed_of(hf, client).start()
    drain(hf)

    assert run.result(timeout=5).records == 70
    assert table(db) == names(rows)
    assert len(client.loops) == 1


class Priced(Shop):
    """A shop whose counts and lookups are busy on demand, too."""

    calls: tuple[str, ...] = ()
    busy = 0

    def count(self, window: Window, part: Part) -> int:
        self._answer("count")
        return super().count(window, part)

    def lookup(self, keys: list[str]) -> list[str]:
        self._answer("lookup")
        return super().lookup(keys)

    def _answer(self, what: str) -> None:
        self.calls += (what,)
        if self.busy:
            self.busy -= 1
            raise RateLimited("slow down", retry_after=0)


def attempts(db: DB, part: str) -> tuple[int, int]:
    """The attempts of the newest step of a kind, and the failures that were charged."""
    kind = f"ingest:orders:{part}"
    found = db.execute("select attempt, failures from holdfast.steps where kind = %s order by id desc", [kind])
    return found.fetchone()  # type: ignore[return-value]


def drained(hf: Holdfast, db: DB) -> None:
    for _ in range(8):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")
        drain(hf)


def test_each_count_is_an_attempt_and_a_busy_source_is_not_charged_for_counts_or_lookups(hf: Holdfast, db: DB) -> None:
    """P-114, P-115, P-143, C-20: limit, pause, retry and kill apply to each call of the source"""
    rows = [order(n) for n in range(40)]
    shop = Priced(rows, axis="cents")
    feed = feed_of(hf, shop, least=10, workers=4)
    shop.busy = 4
    run = feed.start()
    drained(hf, db)

    assert run.result(timeout=5).records == 40
    planned, failed = attempts(db, "plan")
    assert (failed, planned >= 30) == (0, True)
    parts = db.execute("select count(*) from ingest.partition_progress").fetchone()
    assert shop.calls.count("count") == planned - 2 + (parts or (0,))[0]  # the first fixes the window, the last creates
    paused = db.execute("select count(*) from holdfast.limit_changes where name = 'source:orders'").fetchone()
    assert paused is not None
    assert paused[0] >= 1

    del rows[5]
    shop.calls, shop.busy = (), 3
    full = feed.start(full=True)
    drained(hf, db)

    assert full.result(timeout=5).deleted == 1
    assert shop.calls[-1] == "lookup"
    shop.busy, shop.calls = 0, ()
    rows[0].update(at=LONG_AGO)
    full = feed.start(full=True)
    shop.between = [lambda: setattr(shop, "busy", 0)]
    drained(hf, db)
    assert full.status().state == "completed"
    assert attempts(db, "consolidate")[1] == 0


def test_a_record_that_cannot_be_stored_is_not_deleted_as_absent(hf: Holdfast, db: DB) -> None:
    """P-40, C-23, C-80: the source has it, although this run could not read it"""

    class Mute(Shop):
        lookup = None  # type: ignore[assignment]

    rows = [order(n) for n in range(5)]
    feed = feed_of(hf, Mute(rows), max_rejects=1)
    feed.start()
    drain(hf)
    rows[2]["name"] = "a\x00b"
    del rows[4]
    full = feed.start(full=True)
    drain(hf)

    assert (full.result(timeout=5).quarantined, full.result().deleted) == (1, 1)
    assert table(db) == {f"k0000{n}": f"n{n}" for n in range(4)}


def test_a_partition_whose_offset_is_moved_back_is_read_again_without_a_count(hf: Holdfast, db: DB) -> None:
    """P-99: a walk ends at a page without a new key, and after a move every key is new again"""

    class Plain(Shop):
        count = None  # type: ignore[assignment]

    rows = [order(n) for n in range(95)]
    shop = Plain(rows, paging="offset")
    shop.between = [lambda: None, lambda: None, lambda: shop.faults.extend([RateLimited("429", retry_after=600)])]
    run = feed_of(hf, shop).start()
    drain(hf)
    moved = db.execute("select ingest.move_offset(%s, 'partition-0', 60, 0)", [run.id]).fetchone()
    assert moved == (True,)
    db.execute("select holdfast.resume_limit('source:orders')")
    drained(hf, db)

    assert run.result(timeout=5).records == 95
    assert table(db) == names(rows)


def test_a_partition_that_missed_records_is_read_anew_when_it_is_retried(hf: Holdfast, db: DB) -> None:
    """P-153, C-82"""
    rows = [order(n) for n in range(40)]
    shop = Shop(rows, paging="offset")
    shop.count = lambda _window, _part: 41  # type: ignore[method-assign]
    run = feed_of(hf, shop).start()
    drain(hf)
    with pytest.raises(RunFailed, match="missing"):
        run.result(timeout=5)
    del shop.count
    run.retry(reason="the source counts right now")
    drain(hf)

    assert run.result(timeout=5).records == 40


class Stone(BaseModel):
    id: str
    facts: dict[str, Any]
    sizes: list[Decimal]


def test_numbers_of_nested_fields_stay_numbers_and_keep_every_digit(hf: Holdfast, db: DB) -> None:
    """P-24"""
    db.execute("create table stones (id text primary key, facts jsonb, sizes numeric[], deleted_at timestamptz)")
    rows = [{"id": "a", "facts": {"carat": Decimal("1.10"), "depth": 61.5}, "sizes": [Decimal("0.10"), Decimal(2)]}]
    run = hf.ingest("stones", source=Rows(rows, key="id"), into=Canonical("stones", Stone, key="id")).start()
    drain(hf)

    run.result(timeout=5)
    shown = db.execute("select facts::text, sizes::text from stones").fetchone()
    assert shown == ('{"carat": 1.10, "depth": 61.5}', "{0.10,2}")


def test_a_source_that_is_down_is_left_alone_before_partitions_are_dead(hf: Holdfast, db: DB, clock: Clock) -> None:
    """P-143, C-20: the breaker of its limit opens, and one probe tells that it is back"""
    shop = Shop([order(n) for n in range(48)])
    shop.faults = [Unavailable("502") for _ in range(36)]  # three per partition would be the end of all
    feed = feed_of(hf, shop, least=4, breaker_for=60)
    run = feed.start()
    drain(hf, concurrency=1, bypass_backoff=True)

    assert (shop.asked, run.status().state) == ([], "workers_running")
    assert len(shop.faults) > 12
    shop.faults.clear()
    opened = "select open_until > holdfast.clock() from holdfast.limit_states where name = 'source:orders'"
    assert db.execute(opened).fetchone() == (True,)
    clock.advance(seconds(61))
    drain(hf, concurrency=1)
    assert run.result(timeout=5).records == 48
    assert db.execute(opened).fetchone() == (None,)
