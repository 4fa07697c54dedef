"""Rules by the clock: each tick previews, and applies what keeps the rule's limits."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from cli import in_process
from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput, NotFound
from holdfast.rules import Guard, Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table
from holdfast.testing import drain
from holdfast.testing.kit import Clock
from kernel.steps import at_once
from rules.plans import moves, refused

START = datetime(2027, 3, 1, 6, tzinfo=UTC)
HOUR = timedelta(hours=1)
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2), cost numeric);
insert into shop.products select 'P' || n, 10 * n, 1 from generate_series(1, 5) n;
"""
TENTH = Rule("tenth", where=everything, change=percent(-10))
Shop = Connection[Any]
Invoke = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def shop(dsn: str, hf: Holdfast) -> Iterator[Shop]:
    """A table of five products, as the channel of an app."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        Clock(connection).set(START)
        hf.rules.channel("shop", Table("shop.products", key="sku", price="price", cost="cost", currency="EUR"))
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture
def invoke(dsn: str) -> Invoke:
    """The command line, in this process."""
    return lambda *arguments: in_process.run(arguments, {**os.environ, "HOLDFAST_DSN": dsn}, None)


def ticked(hf: Holdfast, shop: Shop, at: datetime) -> str:
    """Fire what is due at a time, let a worker do it, and give what became of the tick."""
    Clock(shop).set(at)
    shop.execute("select * from holdfast.fire_schedules()")
    drain(hf)
    (found,) = shop.execute("select outcome from holdfast.ticks where fired_at >= %s", [at]).fetchall()
    return str(found[0])


def runs(hf: Holdfast, shop: Shop) -> list[RuleRun]:
    rows = shop.execute("select id from rules.rule_runs where source = 'schedule' order by created_at, id")
    return [hf.rules.run(row[0]) for row in rows]


def waiting(shop: Shop) -> list[tuple[UUID, str]]:
    text = """select rule_run_id, payload ->> 'reason' from rules.events
               where event_type = 'automation.run.waiting' order by id"""
    return shop.execute(text).fetchall()


def test_each_tick_previews_and_applies_as_the_scheduler(hf: Holdfast, shop: Shop) -> None:
    """A-10, A-120"""
    hf.rules.schedule(TENTH, channel="shop", every="1h", timezone="Europe/Berlin")
    drain(hf)
    assert shop.execute("select name, face, target from holdfast.schedule_list").fetchall() == [
        ("rules:tenth:shop", "rules", "tenth")]  # fmt: skip

    assert ticked(hf, shop, START + HOUR) == "started"
    (first,) = runs(hf, shop)
    assert first.summary.status == "APPLIED"
    assert first.summary.metadata["schedule"] == "rules:tenth:shop"
    assert moves(shop, first.id)[1] == ("PREVIEW", "QUEUED", "scheduler")
    assert ticked(hf, shop, START + 2 * HOUR) == "started"
    assert [run.summary.status for run in runs(hf, shop)] == ["APPLIED", "APPLIED"]
    assert shop.execute("select price from shop.products where sku = 'P1'").fetchone() == (Decimal("8.10"),)
    assert waiting(shop) == []


def test_a_tick_is_fired_once_by_many(hf: Holdfast, shop: Shop, dsn: str) -> None:
    """A-120: three schedulers at once queue it once"""
    hf.rules.schedule(TENTH, channel="shop", at=START + HOUR)
    drain(hf)
    Clock(shop).set(START + HOUR)
    at_once(dsn, *[lambda db: db.execute("select * from holdfast.fire_schedules()").fetchall()] * 3)
    drain(hf)
    assert len(runs(hf, shop)) == 1
    assert shop.execute("select count(*) from holdfast.ticks").fetchone() == (1,)


@pytest.mark.parametrize(
    ("rule", "change", "apply", "word"),
    [
        (TENTH, "select 1", False, "previews"),
        (Rule("tenth", where=everything, change=percent(-10), guard=Guard(most_targets=4)), "select 1", True, "4"),
        (TENTH, "update shop.products set cost = 10 where sku = 'P1'", True, "5 %"),
    ],
    ids=["only-previews", "most-targets", "refusals"],
)
def test_a_plan_that_breaks_a_limit_waits_and_an_event_says_why(
    hf: Holdfast, shop: Shop, rule: Rule, change: str, apply: bool, word: str
) -> None:
    """A-120"""
    shop.execute(change)
    hf.rules.schedule(rule, channel="shop", every="1h", apply=apply)
    drain(hf)
    assert ticked(hf, shop, START + HOUR) == "started"
    (run,) = runs(hf, shop)
    assert run.summary.status == "PREVIEW"
    ((run_id, reason),) = waiting(shop)
    assert (run_id, word in reason) == (run.id, True)
    assert ticked(hf, shop, START + 2 * HOUR) == "started", "a plan that waits does not keep the next tick"
    run.apply()
    drain(hf)
    assert run.summary.status == "APPLIED"


def test_up_to_five_percent_of_refusals_are_applied(hf: Holdfast, shop: Shop) -> None:
    shop.execute("insert into shop.products select 'Q' || n, 10, 1 from generate_series(1, 15) n")
    shop.execute("update shop.products set cost = 10 where sku = 'P1'")
    hf.rules.schedule(TENTH, channel="shop", every="1h")
    drain(hf)
    ticked(hf, shop, START + HOUR)
    (run,) = runs(hf, shop)
    assert (run.summary.status, run.summary.counts["refused"]) == ("APPLIED", 1)


def test_a_tick_is_skipped_while_a_run_of_the_rule_is_open(hf: Holdfast, shop: Shop) -> None:
    """A-120: also a run that a person applied, and it is recorded"""
    hf.rules.schedule(TENTH, channel="shop", every="1h")
    drain(hf)
    run = hf.rules.preview(TENTH, channel="shop", apply=True)
    run.pause()
    assert ticked(hf, shop, START + HOUR) == "skipped"
    assert runs(hf, shop) == []
    run.resume()
    drain(hf)
    assert ticked(hf, shop, START + 2 * HOUR) == "started"
    assert len(runs(hf, shop)) == 1


def test_a_task_meets_a_run_that_was_opened_after_its_tick(hf: Holdfast, shop: Shop) -> None:
    hf.rules.schedule(TENTH, channel="shop", every="1h")
    drain(hf)
    Clock(shop).set(START + HOUR)
    shop.execute("select * from holdfast.fire_schedules()")
    hf.rules.preview(TENTH, channel="shop", apply=True).pause()
    drain(hf)
    assert runs(hf, shop) == []
    (task,) = shop.execute("select result from holdfast.steps where kind = 'schedule:shop'").fetchall()
    assert "skipped" in task[0]


def test_items_of_another_open_run_let_the_plan_wait(hf: Holdfast, shop: Shop) -> None:
    other = hf.rules.preview(Rule("other", where=everything, change=percent(-5)), channel="shop", apply=True)
    other.pause()
    hf.rules.schedule(TENTH, channel="shop", every="1h")
    drain(hf)
    ticked(hf, shop, START + HOUR)
    ((run_id, reason),) = waiting(shop)
    assert (hf.rules.run(run_id).summary.status, str(other.id) in reason) == ("PREVIEW", True)


def test_a_rule_by_its_name_is_taken_as_it_is_defined_then(hf: Holdfast, shop: Shop, invoke: Invoke) -> None:
    hf.rules.define(TENTH)
    drain(hf)
    result = invoke("rules", "schedule", "tenth", "--channel", "shop", "--every", "1h", "--json")
    assert (result.returncode, json.loads(result.stdout)["schedule"]) == (0, "rules:tenth:shop")
    hf.rules.define(Rule("tenth", where=everything, change=percent(-20)))
    assert ticked(hf, shop, START + HOUR) == "started"
    assert shop.execute("select price from shop.products where sku = 'P1'").fetchone() == (8,)
    assert invoke("rules", "schedule", "nothing", "--channel", "shop", "--every", "1h").returncode != 0
    assert invoke("rules", "schedule", "tenth", "--channel", "nowhere", "--every", "1h").returncode != 0


def test_a_schedule_that_makes_no_sense_is_refused(hf: Holdfast, shop: Shop) -> None:
    """A cron that never fires, no time, two times, an unknown channel, and what is not a rule"""
    cases: list[tuple[dict[str, Any], str]] = [
        ({"cron": "0 0 30 2 *"}, "cron"), ({}, "cron"), ({"cron": "0 6 * * 1", "every": "1h"}, "cron"),
        ({"cron": "0 6 * * 1", "timezone": "Berlin"}, "timezone"), ({"every": "1h", "apply": "yes"}, "apply"),
        ({"at": datetime(2027, 3, 1)}, "at"),  # noqa: DTZ001
    ]  # fmt: skip
    for options, where in cases:
        with pytest.raises(BadDefinition) as raised:
            hf.rules.schedule(TENTH, channel="shop", **options)
        assert raised.value.where == where
    with pytest.raises(NotFound):
        hf.rules.schedule(TENTH, channel="nowhere", every="1h")
    with pytest.raises(BadDefinition):
        hf.rules.schedule(7, channel="shop", every="1h")  # type: ignore[arg-type]


def test_what_a_schedule_cannot_start_is_a_failed_tick(hf: Holdfast, shop: Shop) -> None:
    drain(hf)
    for name, target, given in (("a", "apply", {}), ("b", "sell", {"run_id": str(UUID(int=1))}),
                                ("c", "revert", {"run_id": str(UUID(int=1))}),
                                ("d", "x", {"rule": "x", "channel": "nowhere"})):  # fmt: skip
        shop.execute("select holdfast.define_schedule(%s, %s, 'rules', %s, at => %s)",
                     [name, target, json.dumps(given), START + HOUR])  # fmt: skip
    Clock(shop).set(START + HOUR)
    shop.execute("select * from holdfast.fire_schedules()")
    found = shop.execute("select name, outcome, error ->> 'type' from holdfast.ticks order by name").fetchall()
    assert found == [("a", "failed", "RN005"), ("b", "failed", "RN005"), ("c", "failed", "RN004"),
                     ("d", "failed", "RN004")]  # fmt: skip


def test_the_clock_is_in_python_and_on_the_command_line(hf: Holdfast, shop: Shop, invoke: Invoke) -> None:
    """A-17, A-120: `apply(at=…, revert_at=…)`, its twin and its options; `schedules add` gives another time"""
    run = hf.rules.preview(TENTH, channel="shop")
    with pytest.raises(BadInput) as raised:
        run.apply(at=datetime(2027, 3, 1))  # noqa: DTZ001
    assert raised.value.where == "at"
    asyncio.run(run.aapply(at=START + HOUR, revert_at=START + 2 * HOUR))
    name = f"rules:apply:{run.id}"
    moved = invoke("schedules", "add", name, "--at", "2027-03-01T06:30", "--json")
    assert moved.returncode == 0
    assert json.loads(moved.stdout)["schedule"]["at"].startswith("2027-03-01T06:30")
    assert ticked(hf, shop, START + timedelta(minutes=30)) == "started"
    assert run.summary.status == "APPLIED"
    assert ticked(hf, shop, START + 2 * HOUR) == "started"
    Clock(shop).set(START + 2 * HOUR + timedelta(minutes=1))
    drain(hf)
    assert run.summary.status == "ROLLED_BACK"
    assert shop.execute("select price from shop.products where sku = 'P1'").fetchone() == (10,)

    other = hf.rules.preview(TENTH, channel="shop")
    result = invoke("rules", "apply", str(other.id), "--at", "2027-03-01T12:00", "--revert-at", "2027-03-01T13:00",
                    "--timezone", "Europe/Berlin", "--json")  # fmt: skip
    document = json.loads(result.stdout)
    assert (document["applySchedule"], document["revertSchedule"]) == (
        f"rules:apply:{other.id}", f"rules:revert:{other.id}")  # fmt: skip
    assert invoke("rules", "apply", str(other.id), "--at", "2027-03-01T12:00", "--wait").returncode != 0
    assert invoke("schedules", "remove", document["applySchedule"]).returncode == 0
    assert invoke("schedules", "add", "nothing", "--at", "2027-03-02T06:30").returncode != 0


def test_a_task_is_fenced_by_its_lease(hf: Holdfast, shop: Shop) -> None:
    hf.rules.schedule(TENTH, channel="shop", every="1h")
    drain(hf)
    ticked(hf, shop, START + HOUR)
    (run,) = runs(hf, shop)
    (step,) = shop.execute("select id from holdfast.steps where kind = 'schedule:shop'").fetchone() or (0,)
    assert refused(shop, "select rules.scheduled_task(%s, 1)", [step]) == "RN002"
    assert refused(shop, "select rules.apply_scheduled(%s, 1, %s)", [step, run.id]) == "RN002"
