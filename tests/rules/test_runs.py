"""Rule runs from Python: preview, apply, edits by hand, partial runs, retries, pause and stop, on a table."""

from __future__ import annotations

import asyncio
import csv
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadInput, NotFound, RunFailed, RunPartial, TooLarge, WaitTimedOut, WrongState
from holdfast.rules import Guard, Price, Rule, everything, item, percent, rule_from_csv, set_to, tag
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import drain

TENTH = Rule("tenth", where=everything, change=percent(-10))
MADE = """
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2), compare_at numeric, tags text[]);
insert into shop.products select 'P' || n, 10 * n, null, case when n % 2 = 0 then '{sale}'::text[] end
  from generate_series(1, 6) n;
create table shop.log (id bigint generated always as identity, sku text, price numeric);
create function shop.note() returns trigger language plpgsql as
  $$ begin insert into shop.log (sku, price) values (new.sku, new.price); return null; end $$;
create trigger note after update on shop.products for each row execute function shop.note();
"""


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop schema if exists shop cascade")
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture(params=["own", "other"])
def table(request: pytest.FixtureRequest, hf: Holdfast, shop: Connection[Any], dsn: str) -> Table:
    """In Holdfast's own database, inside the batch's transaction, and in another one."""
    other = dsn if request.param == "other" else None
    table = Table(
        "shop.products", key="sku", price="price", compare_at="compare_at", tags="tags", currency="EUR", dsn=other
    )
    hf.rules.channel("shop", table, batch=4)
    return table


def prices(shop: Connection[Any]) -> dict[str, float]:
    return {sku: float(price) for sku, price in shop.execute("select sku, price from shop.products")}


def log_of(shop: Connection[Any], sku: str) -> list[float]:
    return [float(price) for (price,) in shop.execute("select price from shop.log where sku = %s order by id", [sku])]


def statuses(run: RuleRun) -> dict[str, str]:
    return {target.item_id: target.status for target in run.targets()}


def test_a_preview_writes_nothing_outside_and_apply_writes_the_plan(
    hf: Holdfast, shop: Connection[Any], table: Table
) -> None:
    """A-02, A-09, A-24, A-27, A-119: a preview materialises one target per item, with before and after."""
    before = prices(shop)
    run = hf.rules.preview(Rule("tenth", where=tag("sale"), change=percent(-10).compare_at("before")), channel="shop")
    summary = run.summary

    assert (prices(shop), summary.status) == (before, "PREVIEW")
    assert (summary.counts["targets"], summary.counts["unchanged"], summary.counts["refused"]) == (3, 0, 0)
    assert statuses(run) == dict.fromkeys(["P2", "P4", "P6"], "PREVIEW")
    first = next(run.targets())
    assert (first.before, first.after) == (Price(2000, None, "EUR"), Price(1800, 2000, "EUR"))

    run.apply(plan=summary.plan_hash[:8])
    assert drain(hf) == 3

    assert run.result(timeout=10).status == "APPLIED"
    assert prices(shop) == {**before, "P2": 18, "P4": 36, "P6": 54}
    assert [log_of(shop, sku) for sku in ("P1", "P2")] == [[], [18]]
    assert run.apply().summary.counts["applied"] == 3  # the same as applying once


def test_the_result_of_a_run_that_nobody_applied_is_refused(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    run = hf.rules.preview(TENTH, channel="shop")

    with pytest.raises(WrongState) as exc_info:
        run.result(timeout=10)

    assert exc_info.value.where == str(run.id)
    assert f"rules apply {run.id}" in str(exc_info.value.next)
    run.apply(at=datetime.now(UTC) + timedelta(hours=1))
    with pytest.raises(WaitTimedOut):  # the clock will apply it
        run.result(timeout=0)


def test_an_item_edited_by_hand_is_stale_and_never_overwritten(
    hf: Holdfast, shop: Connection[Any], table: Table
) -> None:
    """A-06, A-13, A-65: the rest is applied, and the run ends PARTIAL."""
    run = hf.rules.preview(TENTH, channel="shop")
    shop.execute("update shop.products set price = 11 where sku = 'P1'")
    shop.execute("update shop.products set price = 18 where sku = 'P2'")  # as the plan would
    shop.execute("delete from shop.products where sku = 'P3'")
    run.apply()
    drain(hf)

    with pytest.raises(RunPartial) as exc_info:
        run.result(timeout=10)
    found = {t.item_id: (t.status, t.reason, t.found_json) for t in run.targets()}

    assert exc_info.value.failed == 2
    assert found["P1"] == ("FAILED", "stale", {"price": "11.00", "compareAt": None, "currency": "EUR"})
    assert found["P3"][:2] == ("FAILED", "not_found")
    assert {found[sku][0] for sku in ("P2", "P4", "P5", "P6")} == {"APPLIED"}
    assert prices(shop)["P1"] == 11
    effects = dict(shop.execute("select item_id, effect from rules.price_changes").fetchall())
    assert effects == {"P2": "found", **dict.fromkeys(["P4", "P5", "P6"], "written")}
    assert [log_of(shop, sku) for sku in ("P1", "P2", "P3")] == [[11], [18], []]  # by hand, and by nobody else
    assert run.summary.actions == ["retry_failed", "retry_all", "rollback", "reconcile"]
    skipped = {each.item_id: each.outcome for each in run.retry_failed()}
    assert skipped == {"P1": "skipped", "P3": "queued"}
    shop.execute("insert into shop.products values ('P3', 30)")
    drain(hf)
    assert statuses(run)["P3"] == "APPLIED"
    assert run.summary.status == "PARTIAL"


@pytest.mark.parametrize("has_dsn", [False, True], ids=["own database", "another database"])
def test_a_batch_is_compared_and_written_with_one_update(hf: Holdfast, shop: Connection[Any], has_dsn: bool) -> None:
    """Also if some of its rows are stale or gone."""
    shop.execute("create table shop.updates (id bigint generated always as identity)")
    shop.execute(
        "create function shop.count() returns trigger language plpgsql as "
        "$$ begin insert into shop.updates default values; return null; end $$"
    )
    shop.execute("insert into shop.products select 'Q' || n, n from generate_series(1, 94) n")
    place = Table("shop.products", key="sku", price="price", currency="EUR", dsn=hf.dsn if has_dsn else None)
    hf.rules.channel("counted", place, batch=50)
    run = hf.rules.preview(TENTH, channel="counted", apply=True)
    shop.execute("update shop.products set price = 11 where sku = 'P1'")
    shop.execute("delete from shop.products where sku = 'P2'")
    shop.execute("create trigger counts after update on shop.products for each statement execute function shop.count()")
    drain(hf)

    assert (run.summary.counts["applied"], run.summary.counts["failed"]) == (98, 2)
    assert shop.execute("select count(*) from shop.updates").fetchall() == [(2,)]


def test_who_acts_by_the_handle_is_recorded(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    """Pauses, stops and retries name the person, as apply does."""
    run = hf.rules.preview(TENTH, channel="shop").apply(actor="ann")
    run.pause("look", actor="bob")
    run.resume(actor="cat")
    run.stop(actor="dan")
    retried = run.retry_all(actor="eve")
    asyncio.run(run.apause(actor="fay"))
    run.resume()
    shop.execute("delete from shop.products where sku = 'P3'")
    drain(hf)
    assert [each.outcome for each in run.retry_failed(actor="gus")] == ["queued"]

    assert len(retried) == 6
    by = "select event, actor from holdfast.run_changes where run_id = %s order by id"
    changes = shop.execute(by, [run.id]).fetchall()
    assert [(event, actor) for event, actor in changes if event in {"paused", "resumed", "stopped"}][:4] == [
        ("paused", "bob"), ("resumed", "cat"), ("stopped", "dan"), ("paused", "fay")
    ]  # fmt: skip
    acted = "select distinct actor from holdfast.journal where run_id = %s and actor_kind in ('api', 'user')"
    assert {"ann", "eve", "gus"} <= {actor for (actor,) in shop.execute(acted, [run.id])}


def test_targets_are_chosen_by_item_or_number(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    """A-30: a target that was left out stays PREVIEW and is never sent."""
    run = hf.rules.preview(TENTH, channel="shop")
    numbers = {t.item_id: t.id for t in run.targets()}
    run.apply(only=["P1", numbers["P2"]])
    drain(hf)

    assert run.result(timeout=10).status == "APPLIED"
    assert [sku for sku, status in statuses(run).items() if status == "PREVIEW"] == ["P3", "P4", "P5", "P6"]
    assert prices(shop)["P3"] == 30
    with pytest.raises(NotFound):
        hf.rules.preview(TENTH, channel="shop").apply(without=["nobody"])


def test_first_applies_a_few_and_pauses(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    run = hf.rules.preview(TENTH, channel="shop", apply=False).apply(first=2)
    drain(hf)
    assert sorted(statuses(run).values()) == ["APPLIED"] * 2 + ["PREVIEW"] * 4

    run.resume()
    drain(hf)

    assert run.result(timeout=10).counts["applied"] == 6


def test_a_stopped_run_is_partial_and_retry_all_finishes_it(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    """A-16, C-08."""
    run = hf.rules.preview(TENTH, channel="shop", apply=True)
    run.pause("look first")
    assert drain(hf) == 0
    run.stop("not today")

    with pytest.raises(RunFailed):
        run.result(timeout=10)
    with pytest.raises(WrongState) as exc_info:
        run.cancel()
    assert "stop" in str(exc_info.value.next)
    assert log_of(shop, "P1") == []
    assert {each.outcome for each in run.retry_all()} == {"queued"}
    drain(hf)
    assert run.result(timeout=10).status == "APPLIED"


@pytest.mark.one_server
def test_each_method_has_an_async_twin(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    async def story() -> None:
        assert await hf.rules.adefine(TENTH) == 1
        run = await hf.rules.apreview(TENTH, channel="shop")
        assert ((await run.asummary()).status, len(await run.atargets("PREVIEW"))) == ("PREVIEW", 6)
        assert (await run.arefusals(), await run.aexplain("P2")) == ([], run.explain("P2"))
        shop.execute("delete from shop.products where sku = 'P1'")
        await run.aapply(without=["P6"])
        await run.apause("look first")
        await run.aresume()
        await asyncio.to_thread(drain, hf)
        with pytest.raises(RunPartial):
            await run.aresult(timeout=10)
        assert [each.outcome for each in await run.aretry_failed(only=["P1"])] == ["queued"]
        await run.astop()
        assert [each.outcome for each in await run.aretry_all()] == ["queued"]
        shop.execute("insert into shop.products values ('P1', 10)")
        await asyncio.to_thread(drain, hf)
        assert (await run.aresult(timeout=10)).counts["applied"] == 5
        await hf.aclose()

    asyncio.run(story())


def test_an_explanation_is_recomputed_from_the_frozen_rule(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    run = hf.rules.preview(
        Rule("r", where=everything, change=percent("-12.5").round("nearest", "0.10")), channel="shop"
    )

    steps = [(step.name, step.value) for step in run.explain("P3").steps]

    assert steps[:3] == [("before", "30.00"), ("percent", "26.25"), ("round", "26.30")]
    # By sku, while the plan has the item's id; another sku has the same price.
    listed = rule_from_csv("list", "sku,price,compare-at\nfirst,29.50,35\nother,29.50,40\n")
    run = hf.rules.preview(listed, channel="shop", items=[{"id": "P3", "sku": "other"}])
    steps = [(step.name, step.value) for step in run.explain("P3").steps]
    assert steps[:3] == [("before", "30.00"), ("set", "29.50"), ("compare at", "40.00")]


@pytest.mark.one_server
def test_items_of_the_callers_get_their_prices_from_the_channel(
    hf: Holdfast, shop: Connection[Any], table: Table, tmp_path: Path
) -> None:
    path = tmp_path / "items.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows(
            [["sku", "cost", "tags", "brand"], ["P1", "9.50", "sale, new", "acme"], ["P2", "", "", ""]]
        )
    rule = Rule("r", where=tag("sale"), change=percent(-10))

    def planned(items: Any) -> tuple[dict[str, int | None], dict[str | None, str]]:
        run = hf.rules.preview(rule, channel="shop", items=items)
        return {t.item_id: t.after.unit_amount for t in run.targets()}, {r.item_id: r.reason for r in run.refusals()}

    assert planned(path) == ({}, {"P1": "below_cost"})
    assert planned([{"id": "P1", "tags": ["sale"]}, {"id": "gone"}, {"id": "P2", "colour": 1}]) == (
        {"P1": 900},
        {"gone": "not_found", "P2": "item_invalid"},
    )
    assert planned([item("P3", "1", "EUR", tags=["sale"])]) == ({"P3": 2700}, {})
    assert planned([item("P3", "1", "USD", tags=["sale"])]) == ({}, {"P3": "currency_differs"})
    assert planned(table) == ({"P2": 1800, "P4": 3600, "P6": 5400}, {})
    with pytest.raises(BadInput):
        planned("items.csv")
    with pytest.raises(BadInput) as exc_info:
        hf.rules.preview(TENTH, channel="shop", items=["P1", "P2", "P1"])
    assert "twice" in exc_info.value.what


@pytest.mark.one_server
def test_bad_previews_store_nothing(hf: Holdfast, shop: Connection[Any], table: Table) -> None:
    """A null price, a capped run, a channel nobody knows, a wrong hash, another run's targets."""
    shop.execute("update shop.products set price = null where sku = 'P1'")
    rule = Rule("r", where=everything, change=set_to("33"), guard=Guard(most_targets=5))
    run = hf.rules.preview(rule, channel="shop")
    assert {r.item_id: r.reason for r in run.refusals()} == {"P1": "no_price"}
    with pytest.raises(TooLarge):
        hf.rules.preview(Rule("r", where=everything, change=percent(-1), guard=Guard(most_targets=4)), channel="shop")
    with pytest.raises(NotFound):
        hf.rules.preview(TENTH, channel="shopp")
    with pytest.raises(NotFound):
        hf.rules.run(uuid4()).status()
    with pytest.raises((BadInput, WrongState)):
        run.apply(plan="00000000")
    other = hf.rules.preview(TENTH, channel="shop")
    with pytest.raises((BadInput, NotFound, WrongState)):
        other.apply(only=[t.id for t in run.targets()][:1])


def test_results_are_awaited_without_blocking_the_loop(
    hf: Holdfast, shop: Connection[Any], table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a run and of a pass over it: no connection is lent to the thread that the loop runs in."""
    run = hf.rules.preview(TENTH, channel="shop", apply=True)
    drain(hf)
    check = run.reconcile()
    drain(hf)
    lend, lent_to = type(run._executor).connection, []

    def noted(executor: Any, conn: Any = None) -> Any:
        lent_to.append(threading.get_ident())
        return lend(executor, conn)

    monkeypatch.setattr(type(run._executor), "connection", noted)

    async def both() -> tuple[str, int]:
        results = (await run.aresult(20)).status, (await check.aresult(20)).total_checked
        await hf.aclose()
        return results

    assert asyncio.run(both()) == ("APPLIED", 6)
    assert len(lent_to) >= 3
    assert threading.get_ident() not in lent_to
