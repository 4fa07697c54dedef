"""Reconciliation: passes that find each price that is not what we wrote, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import NotFound, Unavailable, WrongState
from holdfast.rules import Item, Price, Refusal, Rule, everything, percent
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import Clock, drain
from rules.plans import called, fails, work

SALE = Rule("sale", where=everything, change=percent(-10))
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2), compare_at numeric);
insert into shop.products select 'P' || n, 10 * n from generate_series(1, 7) n;
"""


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


class Flaky:
    """A channel in memory, some of whose items cannot be read."""

    kind = "memory"
    compares = True
    in_transaction = False

    def __init__(self, count: int = 9) -> None:
        self.prices = {f"M{n}": Price(1000, None, "EUR") for n in range(1, count + 1)}
        self.broken: set[str] = set()
        self.reads: list[int] = []

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:  # noqa: ARG002
        for name, price in list(self.prices.items()):
            yield Item(name, price.unit_amount, "EUR")

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:  # noqa: ARG002
        self.reads.append(len(ids))
        if self.broken & set(ids):
            raise Unavailable("500", code="SERVER_ERROR")
        return {name: self.prices[name] for name in ids if name in self.prices}

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:  # noqa: ARG002
        for write in writes:
            self.prices[write.item_id] = write.after
        return [Wrote("written")] * len(writes)

    def health(self) -> Health:
        return Health(ok=True, detail="")


def table(**options: Any) -> Table:
    return Table("shop.products", key="sku", price="price", compare_at="compare_at", currency="EUR", **options)


def sold(hf: Holdfast, rule: Rule = SALE, **options: Any) -> RuleRun:
    run = hf.rules.preview(rule, channel="shop", apply=True, **options)
    drain(hf)
    assert run.result(timeout=10).status == "APPLIED"
    return run


def counts(run: RuleRun) -> list[tuple[str, str, int, int, int, int]]:
    return [(p.kind, p.status, p.total_checked, p.mismatches, p.superseded, p.unverifiable) for p in run.passes()]


def test_a_pass_finds_each_price_that_is_not_ours_and_nothing_else(hf: Holdfast, shop: Connection[Any]) -> None:
    """A-71 to A-74, A-76, A-77, R26: expected, actual, the difference, and one event each"""
    hf.rules.channel("shop", table(), batch=3)
    run = sold(hf)
    shop.execute("update shop.products set price = 10 where sku = 'P1'")
    shop.execute("update shop.products set price = 17.99 where sku = 'P2'")
    shop.execute("update shop.products set compare_at = 99 where sku = 'P3'")  # not written by the rule
    shop.execute("delete from shop.products where sku = 'P4'")

    report = run.reconcile().summary
    assert report.status == "pending"
    drain(hf)
    report = run.passes()[-1]

    assert (report.kind, report.status, report.total_checked, report.mismatches) == ("manual", "done", 7, 2)
    assert (report.superseded, report.unverifiable, float(report.accuracy or 0)) == (0, 1, 66.67)
    found = {each.item_id: (each.expected, each.actual, each.difference) for each in run.mismatches()}
    assert found == {"P1": (900, 1000, 100), "P2": (1800, 1799, -1)}
    events = shop.execute("select event_key, payload from rules.events where event_type like '%mismatch' order by id")
    keys = {key: payload["difference"] for key, payload in events}
    assert keys == {f"{run.id}:{each.target_id}:mismatch:{report.no}": each.difference for each in run.mismatches()}
    done = shop.execute("select payload from rules.events where event_type like '%reconciliation.completed'").fetchall()
    assert [payload["mismatches"] for (payload,) in done] == [2]

    shop.execute("update shop.products set price = 9 where sku = 'P1'")
    run.reconcile()
    drain(hf)
    assert [each.item_id for each in run.mismatches()] == ["P2"]
    ((seen,),) = shop.execute("select seen from rules.mismatches where item_id = 'P2'").fetchall()
    assert seen == 2


def test_what_failed_is_not_read(hf: Holdfast, db: Connection[Any]) -> None:
    """A-72, A-73: a pass reads what is APPLIED, and nothing of it differs"""
    channel = Flaky()
    hf.rules.channel("shop", channel, batch=100)
    run = hf.rules.preview(SALE, channel="shop")
    targets = [each.id for each in run.targets()]
    called(db, "apply", run_id=run.id)
    work(db, fails("M1", "M2"))
    for target in run.targets("APPLIED"):
        channel.prices[target.item_id] = target.after
    channel.reads.clear()
    run.reconcile()
    drain(hf)
    assert counts(run)[-1] == ("manual", "done", len(targets) - 2, 0, 0, 0)
    assert channel.reads == [len(targets) - 2]


@pytest.mark.parametrize(("limit", "claims"), [({}, 1), ({"rate": 1000, "per": 1}, 3)])
def test_a_step_of_a_pass_ends_with_its_last_page(
    hf: Holdfast, db: Connection[Any], limit: dict[str, Any], claims: int
) -> None:
    """A claim that reads nothing would be charged like a call"""
    channel = Flaky()
    hf.rules.channel("shop", channel, batch=3, **limit)
    run = sold(hf)
    channel.reads.clear()
    run.reconcile()
    drain(hf)

    assert counts(run)[-1] == ("manual", "done", 9, 0, 0, 0)
    assert channel.reads == [3, 3, 3]
    query = "select count(*) from holdfast.journal where machine = 'rules.check' and event = 'claimed'"
    assert db.execute(query).fetchall() == [(claims,)]


def test_only_the_newest_change_of_an_item_is_checked(hf: Holdfast, shop: Connection[Any]) -> None:
    """A-81, C-12: also after a rollback"""
    hf.rules.channel("shop", table())
    first = sold(hf)
    second = sold(hf, Rule("more", where=everything, change=percent(-20)), items=["P1", "P2"])
    first.reconcile()
    drain(hf)
    assert counts(first)[-1] == ("manual", "done", 7, 0, 2, 0)

    undo = second.rollback(apply=True)
    drain(hf)
    for each in (first, undo):
        each.reconcile()
    drain(hf)
    assert counts(first)[-1] == ("manual", "done", 7, 0, 2, 0)
    assert counts(undo)[-1] == ("manual", "done", 2, 0, 0, 0)
    with pytest.raises(WrongState):
        second.reconcile()
    changes = hf.rules.history("P1")
    assert [each.source for each in changes] == ["rollback", "api", "api"]
    assert changes[0].new_json["unit_amount"] == 900


def test_what_cannot_be_read_is_unverifiable_and_the_rest_is_checked(
    hf: Holdfast, db: Connection[Any], clock: Clock
) -> None:
    """A-82: a page is read again, then in halves"""
    channel = Flaky()
    hf.rules.channel("shop", channel, batch=4)
    run = sold(hf)
    channel.broken = {"M3"}
    channel.prices["M8"] = Price(1, None, "EUR")
    run.reconcile()
    while run.passes()[-1].status in {"pending", "running"}:
        drain(hf)
        clock.advance(timedelta(seconds=5))

    assert counts(run)[-1] == ("manual", "done", 9, 1, 0, 1)
    assert channel.reads[:4] == [4, 4, 4, 2]
    channel.broken = set(channel.prices)
    run.reconcile()
    while run.passes()[-1].status in {"pending", "running"}:
        drain(hf)
        clock.advance(timedelta(seconds=5))
    assert counts(run)[-1] == ("manual", "done", 9, 0, 0, 9)


def test_passes_are_planned_with_the_end_of_the_run_and_each_happens_once(
    hf: Holdfast, shop: Connection[Any], clock: Clock
) -> None:
    """A-78 to A-80, A-83: within 5 minutes, after an hour, and daily for 30 days"""
    clock.freeze()
    hf.rules.channel("shop", table(), settles_within="2m")
    run = sold(hf)
    ended = run.summary.finished_at
    assert ended is not None
    due = [(each.kind, each.due_at - ended) for each in run.passes()]
    assert due == [("immediate", timedelta(minutes=2)), ("delayed", timedelta(hours=1)), ("daily", timedelta(days=1))]
    assert drain(hf) == 0
    clock.advance(timedelta(minutes=5))
    drain(hf)
    assert counts(run)[0] == ("immediate", "done", 7, 0, 0, 0)
    clock.advance(timedelta(minutes=56))
    drain(hf)
    assert counts(run)[1][:3] == ("delayed", "done", 7)
    for _ in range(32):
        clock.advance(timedelta(days=1))
        drain(hf)
    daily = [each for each in run.passes() if each.kind == "daily"]
    assert [(each.due_at - ended).days for each in daily] == list(range(1, 31))
    assert {each.status for each in daily} == {"done"}


def test_a_correction_is_a_run_of_its_own_and_off_by_default(hf: Holdfast, shop: Connection[Any]) -> None:
    """A-75, C-11: queued if it is small and keeps the guardrails, otherwise a preview"""
    hf.rules.channel("shop", table())
    run = sold(hf)
    shop.execute("update shop.products set price = 10 where sku = 'P1'")
    run.reconcile(correct=True)
    drain(hf)

    correction = hf.rules.run(str(run.passes()[-1].correction_run_id)).summary
    assert (correction.source, correction.parent_run_id, correction.status) == ("reconciliation", run.id, "APPLIED")
    ((price,),) = shop.execute("select price from shop.products where sku = 'P1'").fetchall()
    assert (price, run.summary.status) == (9, "APPLIED")
    actors = shop.execute("select actor_kind from holdfast.journal where run_id = %s and to_state = 'QUEUED' "
                          "and step_id is null", [correction.id]).fetchall()  # fmt: skip
    assert actors == [("scheduler",)]

    shop.execute("update shop.products set price = 1 where sku = 'P2'")  # back is more than 100 % up
    run.reconcile(correct=True)
    drain(hf)
    assert hf.rules.run(str(run.passes()[-1].correction_run_id)).summary.status == "PREVIEW"
    run.reconcile(correct=True)
    shop.execute("update shop.products set price = 18 where sku = 'P2'")
    drain(hf)
    assert run.passes()[-1].correction_run_id is None
    assert run.passes()[0].correction_run_id is None


def test_what_cannot_be_reconciled_is_refused(hf: Holdfast, shop: Connection[Any], db: Connection[Any]) -> None:
    """Bad input: a preview, and a channel that is gone"""
    hf.rules.channel("shop", table())
    run = hf.rules.preview(SALE, channel="shop")
    with pytest.raises(WrongState):
        run.reconcile()
    run.apply()
    drain(hf)
    db.execute("delete from rules.known_channels")
    with pytest.raises(NotFound):
        run.reconcile()
