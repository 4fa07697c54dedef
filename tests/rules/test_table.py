"""A PostgreSQL table as a channel: compare and set in one UPDATE, with an outcome per row."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.connections.pool import PoolExecutor
from holdfast.env import Env
from holdfast.errors import BadDefinition, Rejected, Unavailable
from holdfast.rules import Item, Price, Refusal
from holdfast.rules.channel import Channel, ChannelCall, Write, registered
from holdfast.rules.table import Table
from holdfast.rules.table_sql import Statements

CALL = ChannelCall(timeout=timedelta(seconds=20))
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (
  sku text primary key, price numeric(12, 2) check (price <> 6.66), compare_at numeric, cost numeric, tags text[],
  brand text, weight float8, currency text not null default 'EUR', note text not null default '');
create table shop.log (sku text, price numeric, compare_at numeric);
create table shop.whole (id bigint primary key, units bigint not null, was bigint);
create table shop.loose (sku text, price numeric, double float8, stamp timestamptz unique, other int unique not null);
create function shop.note() returns trigger language plpgsql as
  $$ begin insert into shop.log values (new.sku, new.price, new.compare_at); return null; end $$;
create trigger note after update on shop.products for each row execute function shop.note();
insert into shop.products (sku, price, compare_at, cost, tags, brand, weight) values
  ('A', 10, null, 4, '{sale,new}', 'acme', 1.5),
  ('B', 20, 25, null, null, null, null), ('C', null, null, null, '{}', 'b', 2);
insert into shop.whole values (1, 1000, null), (2, 2000, 2500);
"""


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture
def table(shop: Connection[Any], dsn: str, monkeypatch: pytest.MonkeyPatch) -> Table:
    monkeypatch.setenv("SHOP_DSN", dsn)
    return Table("shop.products", key="sku", price="price", currency_column="currency", compare_at="compare_at",
                 cost="cost", tags="tags", fields=["brand", "weight"], dsn=Env("SHOP_DSN"))  # fmt: skip


def euros(units: int | None, compare_at: int | None = None) -> Price:
    return Price(units, compare_at, "EUR")


def write(item_id: str, before: Any, after: Any, *, price: bool = True, compare_at: bool = False) -> Write:
    return Write(item_id, euros(*before), euros(*after), price, compare_at)


def prices(shop: Connection[Any]) -> dict[str, tuple[Any, Any]]:
    return {sku: (price, was) for sku, price, was in shop.execute("select sku, price, compare_at from shop.products")}


@pytest.mark.parametrize(
    ("kind", "after", "is_written"),
    [
        ("numeric(10,1)", 1476, False), ("numeric(10,1)", 1470, True), ("int", 1440, False), ("int", 1400, True),
        ("numeric(10,-1)", 2100, False), ("numeric(10,-1)", 3000, True), ("numeric(10,2)", 1476, True),
        ("numeric", 1476, True),
    ],
)  # fmt: skip
def test_a_price_that_the_column_would_round_is_not_written(
    shop: Connection[Any], dsn: str, kind: str, after: int, is_written: bool
) -> None:
    """Nothing is rounded unless the rule says so, also not by the type of a column."""
    shop.execute(f"create table shop.coarse (sku text primary key, price {kind}, was {kind})")
    shop.execute("insert into shop.coarse values ('A', 10), ('B', 10)")
    for column in (None, "was"):
        coarse = Table("shop.coarse", key="sku", price="price", currency="EUR", compare_at="was", dsn=dsn)
        bad = write("A", (1000,), (after,) if column is None else (2000, after), compare_at=column is not None)
        wrote, other = coarse.write([bad, write("B", (1000,), (2000,))], CALL)
        assert (wrote.effect, other.effect) == ("written" if is_written else "failed", "written")
        assert is_written or str(Decimal(after) / 100) in wrote.message
        assert shop.execute("select price from shop.coarse where sku = 'A'").fetchone() == (
            (Decimal(after) / 100 if column is None else 20) if is_written else 10,
        )
        shop.execute("update shop.coarse set price = 10")


def test_a_table_lists_its_rows_as_items(table: Table) -> None:
    found = list(table.items(CALL))

    assert isinstance(table, Channel)
    assert found[0] == Item(
        "A", 1000, "EUR", None, 400, "A", ("sale", "new"), {"brand": "acme", "weight": found[0].fields["weight"]}
    )  # type: ignore[union-attr]
    assert [item.price for item in found if isinstance(item, Item)] == [euros(1000), euros(2000, 2500), euros(None)]
    assert table.read(["A", "nobody", "B"], CALL) == {"A": euros(1000), "B": euros(2000, 2500)}
    assert table.health().ok


def test_items_are_paged_by_key(shop: Connection[Any], table: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.rules.table.PAGE", 7)
    shop.execute("insert into shop.products (sku, price) select 'p' || n, n from generate_series(1, 50) n")

    assert sorted(item.id for item in table.items(CALL) if isinstance(item, Item)) == sorted(prices(shop))  # type: ignore[type-var]


def test_a_row_that_cannot_be_read_is_a_refusal(shop: Connection[Any], table: Table) -> None:
    shop.execute("update shop.products set currency = 'XXX' where sku = 'A'")
    shop.execute("update shop.products set compare_at = 9.999 where sku = 'B'")

    found = {each.item_id: each.reason for each in table.items(CALL) if isinstance(each, Refusal)}

    assert found == {"A": "currency_unknown", "B": "too_many_decimals"}
    assert isinstance(table.read(["B"], CALL)["B"], Refusal)


def test_each_write_has_its_own_outcome(shop: Connection[Any], table: Table) -> None:
    """The channel shows before: written. After: found. Anything else: stale, and never overwritten."""
    shop.execute("insert into shop.products (sku, price, compare_at) values ('D', 8, null), ('E', 7.5, 9)")
    outcomes = table.write(
        [
            write("A", (1000,), (800, 1000), compare_at=True),
            write("B", (1900,), (1500,)),
            write("D", (900,), (800,)),
            write("nobody", (1,), (2,)),
            write("E", (750, 800), (700, 800)),  # compare-at differs, but the rule does not write it
        ],
        CALL,
    )

    assert [each.effect for each in outcomes] == ["written", "stale", "found", "not_found", "written"]
    assert outcomes[1].found == {"price": "20.00", "compareAt": "25", "currency": "EUR"}
    assert prices(shop) == {"A": (8, 10), "B": (20, 25), "C": (None, None), "D": (8, None), "E": (7, 9)}
    assert shop.execute("select sku from shop.log order by 1").fetchall() == [("A",), ("E",)]


def test_compare_at_alone_is_compared_and_written_alone(shop: Connection[Any], table: Table) -> None:
    clears = write("B", (1, 2500), (1, None), price=False, compare_at=True)  # the price before does not matter

    assert [each.effect for each in table.write([clears, clears._replace(item_id="A")], CALL)] == ["written", "found"]
    assert prices(shop)["B"] == (20, None)


def test_another_currency_is_another_price(shop: Connection[Any], table: Table) -> None:
    shop.execute("update shop.products set currency = 'USD' where sku = 'A'")

    assert [each.effect for each in table.write([write("A", (1000,), (900,))], CALL)] == ["stale"]


def test_a_row_that_the_table_rejects_fails_alone(shop: Connection[Any], table: Table) -> None:
    shop.execute("insert into shop.products (sku, price) select 'p' || n, 1 from generate_series(1, 9) n")
    writes = [write(f"p{n}", (100,), (666 if n == 4 else 100 + n,)) for n in range(1, 10)]

    outcomes = table.write(writes, CALL)

    assert [each.effect for each in outcomes] == ["written"] * 3 + ["failed"] + ["written"] * 5
    assert outcomes[3].error_class == "VALIDATION"
    assert "check" in outcomes[3].message


def test_a_write_that_waits_for_another_transaction_compares_with_what_that_one_left(
    shop: Connection[Any], table: Table, dsn: str
) -> None:
    """R11: an edit by hand between the comparison and the write is impossible: both are one statement."""
    found: list[Any] = []
    with psycopg.connect(dsn) as other:
        other.execute("update shop.products set price = 11 where sku = 'A'")
        other.execute("update shop.products set note = 'x' where sku = 'B'")
        thread = threading.Thread(
            target=lambda: found.extend(table.write([write("A", (1000,), (900,)), write("B", (2000,), (1800,))], CALL))
        )
        thread.start()
        while not shop.execute("select 1 from pg_stat_activity where wait_event_type = 'Lock'").fetchall():
            pass
        other.commit()
    thread.join()

    assert [each.effect for each in found] == ["stale", "written"]
    assert found[0].found["price"] == "11.00"
    assert (prices(shop)["A"][0], prices(shop)["B"][0]) == (11, 18)


@pytest.mark.parametrize("rejected", [1, 4, 9])
def test_in_a_transaction_a_row_that_the_table_rejects_fails_alone(
    shop: Connection[Any], dsn: str, rejected: int
) -> None:
    """Also if the write is the transaction's first statement, as it is when the table has been looked at before"""
    shop.execute("insert into shop.products (sku, price) select 'p' || n, 1 from generate_series(1, 9) n")
    writes = [write(f"p{n}", (100,), (666 if n == rejected else 100 + n,)) for n in range(1, 10)]
    table = Table("shop.products", key="sku", price="price", currency="EUR")
    table.use(PoolExecutor(lambda: dsn))
    table.read(["A"], CALL)

    with psycopg.connect(dsn) as connection:
        outcomes = table.write(writes, ChannelCall(timeout=timedelta(seconds=20), connection=connection))

    assert [each.effect for each in outcomes] == ["failed" if n == rejected else "written" for n in range(1, 10)]
    assert [prices(shop)[f"p{n}"][0] for n in range(1, 10)] == [
        1 if n == rejected else 1 + Decimal(n) / 100 for n in range(1, 10)
    ]


def test_inside_a_transaction_the_writes_are_part_of_it(shop: Connection[Any], dsn: str) -> None:
    table = Table("shop.products", key="sku", price="price", currency="EUR")
    table.use(PoolExecutor(lambda: dsn))
    with psycopg.connect(dsn) as connection:
        call = ChannelCall(connection=connection)
        outcomes = table.write([write("A", (1000,), (666,)), write("B", (2000,), (1900,))], call)
        seen = prices(shop)["B"]
        connection.rollback()

    assert table.in_transaction
    assert [each.effect for each in outcomes] == ["failed", "written"]
    assert seen == prices(shop)["B"] == (20, 25)


def test_whole_minor_units_and_numbers_as_keys(shop: Connection[Any], dsn: str) -> None:
    table = Table("shop.whole", key="id", price="units", compare_at="was", currency="JPY", minor_units=True, dsn=dsn)
    writes = [
        Write(name, Price(1000, None, "JPY"), Price(900, 1000, "JPY"), True, True) for name in ("1", "2", "x", "-1")
    ]

    assert [each.effect for each in table.write(writes, CALL)] == ["written", "stale", "not_found", "not_found"]
    assert table.read(["1", "zwei"], CALL) == {"1": Price(900, 1000, "JPY")}
    assert [each.id for each in table.items(CALL) if isinstance(each, Item)] == ["1", "2"]


@pytest.mark.parametrize(
    ("name", "more", "where"),
    [
        ("shop.nothing", {}, "table"),
        ("shop.products", {"key": "skuu"}, "key"),
        ("shop.loose", {"key": "sku"}, "key"),
        ("shop.loose", {"key": "stamp"}, "key"),
        ("shop.loose", {"key": "other", "price": "double"}, "price"),
        ("shop.products", {"price": "brand"}, "price"),
        ("shop.products", {"tags": "brand"}, "tags"),
        ("shop.products", {"fields": ["colour"]}, "fields"),
        ("shop.products", {"minor_units": True}, "price"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_with_the_column_at_fault(
    shop: Connection[Any], dsn: str, name: str, more: dict[str, Any], where: str
) -> None:
    """Bad input: a table without its key column, or with one of another type."""
    table = Table(name, **{"key": "sku", "price": "price", "currency": "EUR", "dsn": dsn, **more})

    with pytest.raises(BadDefinition) as exc_info:
        table.check()

    assert exc_info.value.where == where
    assert not table.health().ok


def test_a_database_that_does_not_answer_is_an_error_that_retries(shop: Connection[Any], dsn: str) -> None:
    nowhere = Table("t", key="k", price="p", currency="EUR", dsn="host=/nonexistent dbname=x")
    with pytest.raises(Unavailable) as exc_info:
        nowhere.read(["A"], CALL)
    assert exc_info.value.code in {"NETWORK", "TIMEOUT"}

    table = Table("shop.products", key="sku", price="price", currency="EUR", dsn=dsn)
    table.check()
    with psycopg.connect(dsn) as other:
        other.execute("lock table shop.products")
        with pytest.raises(Unavailable) as exc_info:
            table.write([write("A", (1000,), (900,))], ChannelCall(timeout=timedelta(seconds=0.3)))
    assert exc_info.value.code == "TIMEOUT"
    assert prices(shop)["A"][0] == 10


def test_a_table_without_compare_at_cannot_be_written_one(shop: Connection[Any], dsn: str) -> None:
    table = Table("shop.products", key="sku", price="price", currency="EUR", dsn=dsn)

    with pytest.raises(Rejected):
        table.write([write("A", (1000,), (900, 1000), compare_at=True)], CALL)


@pytest.mark.parametrize(
    "more", [{"currency": None}, {"currency": "EUR", "currency_column": "c"}, {"currency": "EURO"}, {"table": "a.b.c"}]
)
def test_a_table_is_checked_where_it_is_defined(more: dict[str, Any]) -> None:
    with pytest.raises(BadDefinition):
        Table(**{"table": "t", "key": "k", "price": "p", "currency": "EUR", **more})


@pytest.mark.parametrize(
    "options", [{"batch": 0}, {"batch": 10_001}, {"request_timeout": "2m"}, {"request_timeout": 0}]
)
def test_the_settings_of_a_channel_are_checked(options: dict[str, Any]) -> None:
    """A-64: the timeouts are named parameters of a channel."""
    table = Table("t", key="k", price="p", currency="EUR")
    usual = {"batch": 250, "request_timeout": None, "target_timeout": None}

    known = registered("shop", table, **usual)
    assert (known.request_timeout, known.target_timeout) == (timedelta(seconds=10), timedelta(seconds=60))
    with pytest.raises(BadDefinition) as exc_info:
        registered("shop", table, **{**usual, **options})
    assert exc_info.value.where == next(iter(options))


def test_random_writes_leave_what_a_model_says(shop: Connection[Any], table: Table) -> None:
    """At most one net effect per write, and none on a row that shows something else."""
    chance = random.Random(19)
    model = {sku: euros(*map(units_of, row)) for sku, row in prices(shop).items()}
    for _ in range(60):
        some = chance.sample([*model, "X"], chance.randint(1, 4))
        writes = [
            Write(sku, chance.choice([*model.values()]), euros(chance.choice([100, 200]), chance.choice([None, 300])),
                  chance.random() < 0.7, chance.random() < 0.5)
            for sku in some
        ]  # fmt: skip
        expected = []
        for each in writes:
            shown = model.get(each.item_id)
            if shown is None:
                expected.append("not_found")
            elif each.shows(shown, each.before):
                expected.append("written")
                price = each.after.unit_amount if each.writes_price else shown.unit_amount
                model[each.item_id] = euros(
                    price, each.after.compare_at if each.writes_compare_at else shown.compare_at
                )
            else:
                expected.append("found" if each.shows(shown, each.after) else "stale")

        assert [each.effect for each in table.write(writes, CALL)] == expected
        assert {sku: euros(*map(units_of, row)) for sku, row in prices(shop).items()} == model


MUTANTS = {  # what stands in the UPDATE of a table, and in its place
    "no comparison with the price before": (b"t.\"price\" is not distinct from w.price_before", b"true", 2),
    "no comparison with compare-at before": (b"t.\"compare_at\" is not distinct from w.compare_before", b"true", 1),
    "no comparison of the currency": (b"t.\"currency\" = w.currency", b"true", 2),
    "a price that is written though it is kept": (b"coalesce(w.price_after, t.\"price\")", b"w.price_after", 2),
    "a compare-at price that is written though it is kept": (
        b"case when w.sets_compare_at then w.compare_after else t.\"compare_at\" end", b"w.compare_after", 1),
    "all are reported as written": (b"having count(*) < (select count(*) from wanted)", b"having false", 2),
    "none is reported as other": (b"where s.place not in (select x.place from written x)", b"where false", 2),
}  # fmt: skip
STORIES = (
    test_each_write_has_its_own_outcome, test_compare_at_alone_is_compared_and_written_alone,
    test_another_currency_is_another_price, test_random_writes_leave_what_a_model_says,
)  # fmt: skip


@pytest.mark.one_server
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_of_the_update_is_caught(
    shop: Connection[Any], table: Table, monkeypatch: pytest.MonkeyPatch, mutant: tuple[bytes, bytes, int]
) -> None:
    """A-89: the UPDATE compares every column that the rule writes, and reports what it did."""
    part, instead, times = mutant
    written = Statements._write_sql
    seen = []

    def mutated(self: Statements, *, with_compare_at: bool) -> bytes:
        text = written(self, with_compare_at=with_compare_at)
        seen.append(part in text)
        return text.replace(part, instead)

    monkeypatch.setattr(Statements, "_write_sql", mutated)
    caught = []
    for story in STORIES:
        shop.execute(MADE)
        try:
            story(shop, table)
        except (AssertionError, IndexError):
            caught.append(story.__name__)

    assert sum(seen) == times
    assert caught


def units_of(amount: Any) -> int | None:
    return None if amount is None else int(amount * 100)
