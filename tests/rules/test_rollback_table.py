"""Rollbacks from Python, on a table that somebody else edits too."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadInput, NotFound, RunPartial, WrongState
from holdfast.kernel import calls as kernel
from holdfast.kernel.db import run as kernel_run
from holdfast.models import Fail, Release, Settlement
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import drain

SALE = Rule("sale", where=everything, change=percent(-10).compare_at("before"))
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2), compare_at numeric);
insert into shop.products select 'P' || n, 10 * n, case when n > 3 then 100 end from generate_series(1, 5) n;
"""


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture(params=["own", "other"])
def sold(request: pytest.FixtureRequest, hf: Holdfast, shop: Connection[Any], dsn: str) -> RuleRun:
    """A sale that was applied, in Holdfast's own database and in another one."""
    other = dsn if request.param == "other" else None
    hf.rules.channel("shop", Table("shop.products", key="sku", price="price", compare_at="compare_at", currency="EUR",
                                   dsn=other), batch=3)  # fmt: skip
    run = hf.rules.preview(SALE, channel="shop", apply=True)
    drain(hf)
    assert run.result(timeout=10).status == "APPLIED"
    return run


def prices(shop: Connection[Any]) -> dict[str, tuple[float, float | None]]:
    rows = shop.execute("select sku, price, compare_at from shop.products order by sku")
    return {sku: (float(price), None if was is None else float(was)) for sku, price, was in rows}


def standing(run: RuleRun) -> dict[str, str]:
    return {each.target.item_id: each.standing for each in run.standpoints()}


def test_a_rollback_restores_prices_and_compare_at_and_a_second_one_has_nothing_to_do(
    hf: Holdfast, shop: Connection[Any], sold: RuleRun
) -> None:
    """A-123, R27: a price that is back already counts as restored"""
    assert prices(shop)["P1"] == (9.0, 10.0)
    shop.execute("update shop.products set price = 20, compare_at = null where sku = 'P2'")
    undo = sold.rollback(reason="wrong week")
    assert standing(undo) == {"P1": "restore", "P2": "restored", "P3": "restore", "P4": "restore", "P5": "restore"}
    assert prices(shop)["P1"] == (9.0, 10.0)

    undo.apply()
    drain(hf)

    assert undo.result(timeout=10).status == "APPLIED"
    assert prices(shop) == {"P1": (10, None), "P2": (20, None), "P3": (30, None), "P4": (40, 100), "P5": (50, 100)}
    assert sold.summary.status == "ROLLED_BACK"
    effects = dict(shop.execute("select item_id, effect from rules.price_changes where source = 'rollback'").fetchall())
    assert (effects["P1"], effects["P2"]) == ("written", "found")
    with pytest.raises(WrongState) as exc_info:
        sold.rollback()
    assert exc_info.value.where == str(sold.id)
    with pytest.raises(WrongState):
        sold.standpoints()
    with pytest.raises(WrongState):
        undo.explain("P1")


def test_what_somebody_changed_since_is_not_overwritten_unless_it_is_named(
    hf: Holdfast, shop: Connection[Any], sold: RuleRun
) -> None:
    """R27: each conflict says what we wrote, what is there and which run of ours wrote it"""
    shop.execute("update shop.products set price = 8.50 where sku = 'P1'")
    shop.execute("update shop.products set compare_at = 1 where sku = 'P2'")
    later = hf.rules.preview(Rule("more", where=everything, change=percent(-50)), channel="shop", items=["P3"])
    later.apply()
    drain(hf)
    undo = sold.rollback()
    points = {each.target.item_id: each for each in undo.standpoints()}
    assert [points[sku].standing for sku in ("P1", "P2", "P3", "P4")] == ["conflict"] * 3 + ["restore"]
    assert "8.50" in points["P1"].detail
    assert str(later.id) in points["P3"].detail
    undo.apply()
    drain(hf)

    with pytest.raises(RunPartial):
        undo.result(timeout=10)
    failed = {each.item_id: each for each in undo.targets("FAILED")}
    assert {(each.reason, each.retryable) for each in failed.values()} == {("conflict", False)}
    assert set(failed) == {"P1", "P2", "P3"}
    assert failed["P1"].found_json == {"price": "8.50", "compareAt": "10.00", "currency": "EUR"}
    assert (failed["P1"].later_run_id, failed["P3"].later_run_id) == (None, later.id)
    assert prices(shop)["P1"][0] == 8.5
    assert (sold.summary.status, sold.summary.counts["rolledBack"]) == ("APPLIED", 2)

    with pytest.raises(NotFound):
        sold.rollback(force=["nobody"])
    with pytest.raises(NotFound):
        sold.rollback(force=[7])
    with pytest.raises(BadInput) as exc_info:
        sold.rollback(force=["P4"])
    assert exc_info.value.where in {"force", "only"}
    later.rollback(apply=True)
    drain(hf)
    forced = sold.rollback(force=["P1", "P2"], apply=True)
    drain(hf)

    assert forced.result(timeout=10).status == "APPLIED"
    assert prices(shop) == {"P1": (10, None), "P2": (20, None), "P3": (30, None), "P4": (40, 100), "P5": (50, 100)}
    assert sold.summary.status == "ROLLED_BACK"


def test_a_forced_target_that_changed_again_is_a_conflict_again(
    hf: Holdfast, shop: Connection[Any], sold: RuleRun
) -> None:
    """R27: a name overwrites what was seen and nothing else"""
    shop.execute("update shop.products set price = 8.50 where sku = 'P1'")
    undo = sold.rollback(force=["P1"])
    shop.execute("update shop.products set price = 8.40 where sku = 'P1'")
    undo.apply()
    drain(hf)

    assert [(each.item_id, each.reason) for each in undo.targets("FAILED")] == [("P1", "conflict")]
    assert prices(shop)["P1"][0] == 8.4


def test_unknown_outcomes_are_read_and_what_was_written_is_restored(
    hf: Holdfast, shop: Connection[Any], sold: RuleRun, db: Connection[Any]
) -> None:
    """R26, R27: nothing that was changed is left behind unseen"""
    sold.rollback(apply=True)
    drain(hf)
    run = hf.rules.preview(SALE, channel="shop", apply=True)
    shop.execute("update shop.products set price = 9, compare_at = 10 where sku = 'P1'")  # P1 is written, P2 is not
    shop.execute("update shop.products set price = 18.10, compare_at = 20 where sku = 'P3'")
    lost = Fail({"reason": "outcome_unknown", "class": "TIMEOUT", "message": "lost"})
    steps = {each.id: each.item_id for each in run.targets()}
    held = kernel_run(db, kernel.claim_steps("tester", queue="rules:shop", batch=100, lease=timedelta(seconds=30)))
    unknown = [step for step in held if steps[step.step_id] in {"P1", "P2", "P3"}]
    kernel_run(db, kernel.settle_steps([Settlement(step.step_id, step.lease_id, lost) for step in unknown]))
    others = [step for step in held if step not in unknown]
    kernel_run(db, kernel.settle_steps([Settlement(step.step_id, step.lease_id, Release()) for step in others]))
    drain(hf)
    assert run.summary.counts["failed"] == 3

    async def both() -> RuleRun:
        planning = asyncio.create_task(run.arollback())
        while not planning.done():
            await asyncio.to_thread(drain, hf)
        return await planning

    undo = asyncio.run(both())

    reasons = {each.item_id: (each.status, each.reason) for each in run.targets() if each.item_id < "P4"}
    assert reasons == {"P1": ("APPLIED", None), "P2": ("FAILED", "not_applied"), "P3": ("FAILED", "stale")}
    assert set(standing(undo)) == {"P1", "P4", "P5"}
    undo.apply()
    drain(hf)
    assert (prices(shop)["P1"], run.summary.status) == ((10, None), "ROLLED_BACK")


def test_the_handle_of_an_id_knows_the_apps_channels(hf: Holdfast, shop: Connection[Any], sold: RuleRun) -> None:
    """A conflict is read before it is overwritten, also by `hf.handle(id)`"""
    shop.execute("update shop.products set price = 3 where sku = 'P1'")
    found = hf.handle(sold.id)
    assert isinstance(found, RuleRun)

    undo = found.rollback(force=["P1"])

    assert standing(undo)["P1"] == "restore"
    for odd in ("abc", 7, None):
        with pytest.raises(BadInput) as exc_info:
            hf.rules.run(odd)  # type: ignore[arg-type]
        assert str(odd) in exc_info.value.what
