"""The items of a preview: what a channel or a caller gives, checked once, and each item once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput
from holdfast.rules import Item, Price, Refusal, Rule, everything, percent, sources, tag
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.rules.handle import RuleRun
from holdfast.rules.language.items import check_item
from holdfast.rules.table import Table
from holdfast.testing import drain
from rules.plans import DB, define, preview, row

TENTH = Rule("tenth", where=everything, change=percent(-10))
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2));
create table shop.numbers (id bigint primary key, price numeric(12, 2));
create table shop.uuids (id uuid primary key, price numeric(12, 2));
create table shop.loose (sku text unique, price numeric(12, 2));
insert into shop.products select 'P' || n, 10 * n from generate_series(1, 3) n;
insert into shop.numbers values (7, 10);
insert into shop.uuids values ('0198c0de-0000-7000-8000-00000000000a', 10);
"""
UUID_A = "0198c0de-0000-7000-8000-00000000000a"


class Listed:
    """A channel that lists what it is given, right or wrong."""

    kind = "listed"
    compares = True
    in_transaction = False

    def __init__(self, *listed: Any) -> None:
        self.listed = listed

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, _call: ChannelCall) -> Iterator[Any]:
        return iter(self.listed)

    def read(self, ids: Sequence[str], _call: ChannelCall) -> Mapping[str, Price]:
        return {each: Price(1000, None, "EUR") for each in ids}

    def write(self, writes: Sequence[Write], _call: ChannelCall) -> Sequence[Wrote]:
        return [Wrote("written")] * len(writes)

    def health(self) -> Health:
        return Health(ok=True, detail="")


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture
def app(hf: Holdfast, shop: Connection[Any]) -> Holdfast:
    for name, key in (("products", "sku"), ("numbers", "id"), ("uuids", "id")):
        hf.rules.channel(name, Table(f"shop.{name}", key=key, price="price", currency="EUR"))
    return hf


def reasons(run: RuleRun) -> dict[str | None, str]:
    return {each.item_id: each.reason for each in run.refusals()}


CHANGED = {"id": "P1"}
REFUSED = {"id": "P1", "cost": "9.50"}
UNCHANGED = {"id": "P1", "tags": ["kept"]}


@pytest.mark.parametrize(
    "items", [(CHANGED, REFUSED), (REFUSED, REFUSED), (UNCHANGED, UNCHANGED), (UNCHANGED, CHANGED), ("P1", "P1")]
)
@pytest.mark.parametrize("part", [2, 50_000])
def test_an_item_that_is_given_twice_is_refused_whatever_becomes_of_it(
    app: Holdfast, monkeypatch: pytest.MonkeyPatch, items: Any, part: int
) -> None:
    """Bad input, an item twice: otherwise the second row would bypass the refusal of the first."""
    monkeypatch.setattr(sources, "PART", part)
    rule = Rule("tenth", where=~tag("kept"), change=percent(-10))

    with pytest.raises(BadInput) as exc_info:
        app.rules.preview(rule, channel="products", items=[items[0], "P2", "P3", items[1], "P\n", "P\n"])

    assert (exc_info.value.where, "P1" in exc_info.value.what) == ("items", True)


def test_an_item_that_a_channel_lists_twice_is_refused(hf: Holdfast) -> None:
    hf.rules.channel("listed", Listed(Item("A", 1000, "EUR"), Item("B", 1000, "EUR"), Refusal("A", "odd", "odd")))

    with pytest.raises(BadInput) as exc_info:
        hf.rules.preview(TENTH, channel="listed")

    assert "'A'" in exc_info.value.what


def test_in_sql_an_item_is_not_both_a_target_and_refused(db: DB) -> None:
    define(db)
    refusal = ("A", "below_cost", "below the cost", "EUR", 1000, 800)

    with pytest.raises(psycopg.Error) as exc_info:
        preview(db, [row("A"), row("B")], [refusal])
    assert (exc_info.value.sqlstate, "item A" in str(exc_info.value)) == ("RN005", True)
    assert preview(db, [row("B")], [refusal])["refused"] == 1


@pytest.mark.parametrize(
    ("channel", "key", "others"),
    [
        ("numbers", "7", ["007", "-0"]),
        ("uuids", UUID_A, [UUID_A.upper(), f"{{{UUID_A}}}", f"urn:uuid:{UUID_A}", UUID_A.replace("-", "")]),
    ],
)
def test_a_key_has_one_spelling(
    app: Holdfast, shop: Connection[Any], channel: str, key: str, others: list[str]
) -> None:
    """Otherwise two targets, or two open runs, could be the same row."""
    run = app.rules.preview(TENTH, channel=channel, items=[key, *others, "x"], apply=True)

    assert [target.item_id for target in run.targets()] == [key]
    assert reasons(run) == dict.fromkeys(others, "item_invalid") | {"x": "not_found"}
    drain(app)
    assert run.summary.status == "APPLIED"
    call = ChannelCall()
    late = [Write(each, Price(900, None, "EUR"), Price(800, None, "EUR")) for each in others]
    assert {wrote.effect for wrote in app.rules.channels[channel].write(late, call)} == {"not_found"}


def test_a_table_whose_key_may_be_null_is_refused(shop: Connection[Any], dsn: str) -> None:
    loose = Table("shop.loose", key="sku", price="price", currency="EUR", dsn=dsn)

    with pytest.raises(BadDefinition) as exc_info:
        loose.check()

    assert (exc_info.value.where, "set not null" in str(exc_info.value.next)) == ("key", True)
    shop.execute("alter table shop.loose alter column sku set not null")
    loose.check()


def test_what_a_caller_says_wrongly_of_an_item_is_its_refusal(app: Holdfast) -> None:
    given: list[Any] = [
        {"id": "tags", "tags": 5}, {"id": "text", "tags": "sale"}, {"id": "fields", "fields": 5},
        {"id": "none", "tags": [None]}, Item("bare", 1, "EUR", tags="sale"),  # type: ignore[arg-type]
        Item("P1", 1000, "JPY", cost=900), {"id": "P2", "cost": "900", "currency": "JPY"},
        {"id": "P3", "cost": "26", "currency": "EUR"},
    ]  # fmt: skip
    run = app.rules.preview(TENTH, channel="products", items=given)

    invalid = dict.fromkeys(["tags", "text", "fields", "none", "bare"], "item_invalid")
    assert reasons(run) == invalid | {"P1": "currency_differs", "P2": "currency_differs"}
    assert [target.item_id for target in run.targets()] == ["P3"]


def test_an_item_that_a_channel_makes_wrongly_is_a_refusal_of_its_own(hf: Holdfast) -> None:
    wrong: dict[str, Any] = {
        "a": Item("a", 1000.0, "EUR"), "b": Item("b", "1000", "EUR"), "c": Item("c", True, "EUR"),
        "d": Item("d", 1000, "EUR", 2000.0), "e": Item("e", 1000, "EUR", cost=Decimal(4)),
        "f": Item("f", 1000, 5), "g": Item("g", 1000, "EUR", sku=["x"]), "h": Item("h", 1000, "EUR", tags="sale"),
        "i": Item("i", 10**30, "EUR"), "j": Item("j", 1000, "XXX"), "8": Item(8, 1000, "EUR"), "?": "just text",
        "*": Item("*", 1000, "EUR"), "k" * 400: Item("k" * 500, 1000, "EUR"), "l?": Item("l\t", 1000, "EUR"),
        "m": Item("m", None, "EUR"), "n": Item("n", 1000, "EUR", fields=5),
    }  # type: ignore[arg-type]  # fmt: skip
    hf.rules.channel("listed", Listed(*wrong.values(), Item("good", 1000, "EUR", tags=["sale"])))  # type: ignore[arg-type]
    run = hf.rules.preview(TENTH, channel="listed")

    own = {"a": "float", "d": "float", "j": "currency_unknown", "m": "no_price"}
    assert reasons(run) == {name: own.get(name, "item_invalid") for name in wrong}
    assert [target.item_id for target in run.targets()] == ["good"]
    check_item(Item("é", 1, "EUR", fields={"brand": "x"}))


def test_a_key_of_a_table_that_no_item_can_have_is_one_refusal(app: Holdfast, shop: Connection[Any]) -> None:
    shop.execute("insert into shop.products values (e'bad\tkey', 5), (repeat('k', 500), 5), ('*', 5)")
    run = app.rules.preview(TENTH, channel="products")

    assert reasons(run) == dict.fromkeys(["bad?key", "k" * 400, "*"], "item_invalid")
    assert run.summary.counts["targets"] == 3
