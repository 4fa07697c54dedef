"""Prices in a second server behind a bad network: each has one net effect, and the run ends by what was applied."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo

import elder
from holdfast import Holdfast
from holdfast.errors import CommitUnknown
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import Clock, drain
from scenarios.crew import Database, until
from scenarios.home import HomeServer
from scenarios.proof import Proof
from scenarios.proxy import FaultProxy
from servers import ELDER, EMBEDDED, owned_server

ITEMS = 12  # three calls
MADE = """
create schema sales;
create table sales.products (sku text primary key, price numeric);
insert into sales.products select 'P' || n, 10 from generate_series(1, 12) n;
create table sales.log (id bigint generated always as identity, sku text, price numeric);
create function sales.note() returns trigger language plpgsql as
  $$ begin insert into sales.log (sku, price) values (new.sku, new.price); return null; end $$;
create trigger note after update on sales.products for each row execute function sales.note();
"""
WRITE = "update .*products"
IDLE = "select count(*) from pg_stat_activity where datname = 'sales' and state like 'idle in transaction%'"
Fault = Callable[[FaultProxy], None]
FAULTS: dict[str, Fault] = {
    "the answer to the write is lost": lambda proxy: proxy.cut(WRITE),
    "the write is lost": lambda proxy: proxy.lose(WRITE),
    "the write is swallowed": lambda proxy: proxy.swallow_at(WRITE),
}
FEW = ("the answer to the write is lost", "the write is swallowed")


@pytest.fixture(scope="module", params=[EMBEDDED, pytest.param(ELDER, marks=pytest.mark.long)])
def shop_server(request: pytest.FixtureRequest) -> Iterator[str]:
    """A server of the shop's own, by the DSN of its administrator."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        if request.param == ELDER:
            elder.skip_unless_installed()
            with elder.elder_server(folder / "shop") as server:
                yield server.admin
        else:
            with owned_server(folder / "shop"):
                yield HomeServer(folder / "shop").admin


@pytest.fixture
def shop(shop_server: str) -> Iterator[Connection[Any]]:
    """A database of prices, with a log of every value that was written."""
    with psycopg.connect(shop_server, autocommit=True) as admin:
        admin.execute("create database sales")
        try:
            with psycopg.connect(make_conninfo(shop_server, dbname="sales"), autocommit=True) as connection:
                connection.execute(MADE)
                yield connection
        finally:
            admin.execute("drop database sales with (force)")


@pytest.fixture
def way(shop: Connection[Any]) -> Iterator[FaultProxy]:
    """The way to the shop."""
    with FaultProxy(make_conninfo(shop.info.dsn, password=shop.info.password or None)) as proxy:
        yield proxy


def previewed(hf: Holdfast, dsn: str) -> RuleRun:
    table = Table("sales.products", key="sku", price="price", currency="EUR", dsn=dsn)
    hf.rules.channel("shop", table, batch=5, request_timeout=2, target_timeout=60)
    return hf.rules.preview(Rule("tenth", where=everything, change=percent(-10)), channel="shop")


def written(shop: Connection[Any]) -> tuple[int, int]:
    """How many prices are not what the plan says, and how many values were written beyond the first of an item."""
    query = """
    select (select count(*) from sales.products where price <> 9)::int,
           (select coalesce(sum(n - 1), 0) from (select count(*) as n from sales.log group by sku) c)::int
    """
    (row,) = shop.execute(query).fetchall()
    return int(row[0]), int(row[1])


def is_clean(database: Database) -> bool:
    return database.rows("select * from holdfast.violations()") == []


@pytest.mark.parametrize(
    "fault", [pytest.param(f, id=n, marks=() if n in FEW else pytest.mark.long) for n, f in FAULTS.items()]
)
def test_a_call_that_meets_a_bad_network_has_one_net_effect(
    database: Database, shop: Connection[Any], way: FaultProxy, proof: Proof, fault: Fault
) -> None:
    """R11, R12, A-33, A-89: its outcome is unknown, it ends by its own deadline, and the next try looks first."""
    hf = Holdfast(database.dsn)
    run = previewed(hf, way.dsn)
    run.apply()
    fault(way)
    with database.connection() as connection:
        drain(hf)
        assert not way.is_armed
        assert run.summary.counts["applied"] < ITEMS
        until(lambda: shop.execute(IDLE).fetchall() == [(0,)], "nobody who is gone kept a row locked")
        Clock(connection).advance(10)
        drain(hf)

    lost, twice = written(shop)
    proof.add(rounds=1, lost=lost, twice=twice)
    assert (lost, twice) == (0, 0)
    summary = run.summary
    assert (summary.status, summary.counts["applied"]) == ("APPLIED", ITEMS)
    assert database.value("select count(*)::int from rules.price_changes") == ITEMS
    assert is_clean(database)
    hf.close()


@pytest.mark.parametrize("function", ["apply", pytest.param("stop_run", marks=pytest.mark.long)])
def test_an_answer_to_apply_or_stop_that_is_lost_is_asked_for_again(
    database: Database, shop: Connection[Any], proxy: FaultProxy, way: FaultProxy, function: str
) -> None:
    """R11: the caller learns that it may have happened, and doing it again is the same as doing it once."""
    near, far = Holdfast(database.dsn), Holdfast(proxy.dsn)
    run = previewed(near, way.dsn)
    if function == "stop_run":
        run.apply()
    action = far.rules.run(run.id).apply if function == "apply" else far.rules.run(run.id).stop
    proxy.cut(function)
    with pytest.raises(CommitUnknown):
        action()
    before = database.rows("select id, event, to_state from holdfast.journal order by id")
    action()

    assert database.rows("select id, event, to_state from holdfast.journal order by id") == before
    drain(near)
    assert written(shop) == ((0, 0) if function == "apply" else (ITEMS, 0))
    assert run.summary.status == ("APPLIED" if function == "apply" else "FAILED")
    assert is_clean(database)
    near.close()
    far.close()


def test_an_item_that_is_edited_after_its_preview_is_left_and_named(
    database: Database, shop: Connection[Any], way: FaultProxy
) -> None:
    """R27, its first half: also if the edit comes between a lost answer and the next try"""
    hf = Holdfast(database.dsn)
    run = previewed(hf, way.dsn)
    shop.execute("update sales.products set price = 7 where sku = 'P1'")
    shop.execute("delete from sales.products where sku = 'P2'")
    run.apply()
    way.cut(WRITE)
    with database.connection() as connection:
        drain(hf)
        late = next(t.item_id for t in run.targets("QUEUED") if t.item_id not in ("P1", "P2"))  # written, answer lost
        shop.execute("update sales.products set price = 6 where sku = %s", [late])
        Clock(connection).advance(10)
        drain(hf)

    shown = dict(shop.execute("select sku, price from sales.products").fetchall())
    assert (shown["P1"], shown[late]) == (7, 6)
    failed = {target.item_id: target for target in run.targets("FAILED")}
    assert {item: each.reason for item, each in failed.items()} == {
        "P1": "stale", "P2": "not_found", late: "stale",
    }  # fmt: skip
    found = [failed[item].found_json for item in ("P1", late)]
    assert [each and each["price"] for each in found] == ["7", "6"]
    assert (run.summary.status, run.summary.counts["applied"]) == ("PARTIAL", ITEMS - 3)
    assert is_clean(database)
    hf.close()
