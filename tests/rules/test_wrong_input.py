"""What callers of the Python API get wrong: each has an error of ours that names the value and the option."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput, NotFound
from holdfast.rules import Rule, everything, percent
from holdfast.rules.handle import RuleRun
from holdfast.rules.table import Table

SALE = Rule("sale", where=everything, change=percent(-10))
MADE = """
drop schema if exists shop cascade;
create schema shop;
create table shop.products (sku text primary key, price numeric(12, 2));
insert into shop.products select 'P' || n, 10 * n from generate_series(1, 3) n;
"""
OF_RUNS: list[tuple[str, str, Callable[[RuleRun], Any]]] = [
    ("only", "1.5", lambda run: run.apply(only=[1.5])),  # type: ignore[list-item]
    ("only", "True", lambda run: run.apply(only=[True])),
    ("only", "None", lambda run: run.apply(only=[None])),  # type: ignore[list-item]
    ("only", str(10**30), lambda run: run.apply(only=[10**30])),
    ("only", "5", lambda run: run.apply(only=5)),  # type: ignore[arg-type]
    ("without", "P1", lambda run: run.apply(without="P1")),
    ("first", "1.5", lambda run: run.apply(first=1.5)),  # type: ignore[arg-type]
    ("first", "0", lambda run: run.apply(first=0)),
    ("first", str(2**40), lambda run: run.apply(first=2**40)),
    ("plan", "12345678", lambda run: run.apply(plan=12345678)),  # type: ignore[arg-type]
    ("actor", "5", lambda run: run.apply(actor=5)),  # type: ignore[arg-type]
    ("actor", "5", lambda run: run.pause(actor=5)),  # type: ignore[arg-type]
    ("actor", "5", lambda run: run.retry_failed(actor=5)),  # type: ignore[arg-type]
    ("actor", "5", lambda run: run.retry_all(actor=5)),  # type: ignore[arg-type]
    ("force", "P1", lambda run: run.rollback(force="P1")),
    ("classes", "TIMEOUT", lambda run: run.retry_failed(classes="TIMEOUT")),
    ("status", "applied", lambda run: list(run.targets("applied"))),
]
OF_PREVIEWS: list[tuple[str, str, dict[str, Any]]] = [
    ("metadata", "[1]", {"metadata": [1]}),
    ("metadata", "JSON", {"metadata": {"a": object()}}),
    ("correlationId", "5", {"metadata": {"correlationId": 5}}),
    ("project_id", "5", {"project_id": 5}),
    ("parent", "abc", {"parent": "abc"}),
    ("items", "P2", {"items": ["P1", "P2", "P3", "P2"]}),
]
OF_CHANNELS: list[tuple[str, str, dict[str, Any]]] = [
    ("batch", "1.5", {"batch": 1.5}),
    ("retry", "3", {"retry": 3}),
    ("rate_limit_retry", "no", {"rate_limit_retry": "no"}),
    ("errors", "[1]", {"errors": [1]}),
    ("corrects", "yes", {"corrects": "yes"}),
    ("by", "product", {"by": "product"}),
]
OF_TABLES: list[tuple[str, str, dict[str, Any]]] = [
    ("key", "''", {"key": ""}),
    ("cost", "5", {"cost": 5}),
    ("fields", "brand", {"fields": "brand"}),
    ("fields", "None", {"fields": ["brand", None]}),
]


@pytest.fixture
def shop(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(MADE)
        yield connection
        connection.execute("drop schema shop cascade")


@pytest.fixture
def app(hf: Holdfast, shop: Connection[Any]) -> Holdfast:
    hf.rules.channel("shop", Table("shop.products", key="sku", price="price", currency="EUR"))
    return hf


def test_a_wrong_argument_of_a_run_is_named_and_changes_nothing(app: Holdfast) -> None:
    run = app.rules.preview(SALE, channel="shop")

    for where, shown, call in OF_RUNS:
        with pytest.raises(BadInput) as exc_info:
            call(run)
        assert (exc_info.value.where, shown in exc_info.value.what) == (where, True), exc_info.value

    assert run.summary.status == "PREVIEW"


def test_a_wrong_argument_of_a_preview_is_named(app: Holdfast) -> None:
    for where, shown, options in OF_PREVIEWS:
        with pytest.raises(BadInput) as exc_info:
            app.rules.preview(SALE, channel="shop", **options)
        assert (exc_info.value.where, shown in exc_info.value.what) == (where, True), exc_info.value
    for where, given in (("item", {"item": 5}), ("most", {"item": "P1", "most": -1})):
        with pytest.raises(BadInput) as exc_info:
            app.rules.history(**given)  # type: ignore[arg-type]
        assert exc_info.value.where == where


def test_a_channel_with_a_wrong_option_is_refused_where_it_is_registered(app: Holdfast) -> None:
    """Otherwise a worker would only notice when it connects, or with its first call."""
    table = {"table": "shop.products", "key": "sku", "price": "price", "currency": "EUR"}
    for where, shown, options in OF_CHANNELS:
        with pytest.raises(BadDefinition) as exc_info:
            app.rules.channel("other", Table(**table), **options)  # type: ignore[arg-type]
        assert (exc_info.value.where, shown in exc_info.value.what) == (where, True), exc_info.value
    for where, shown, options in OF_TABLES:
        with pytest.raises(BadDefinition) as exc_info:
            Table(**(table | options))
        assert (exc_info.value.where, shown in exc_info.value.what) == (where, True), exc_info.value


def test_a_run_that_does_not_exist_has_no_empty_lists(app: Holdfast) -> None:
    ghost = app.rules.run(UUID(int=uuid4().int))
    reads: list[Callable[[], Any]] = [
        lambda: list(ghost.targets()),
        lambda: list(ghost.refusals()),
        ghost.passes,
        ghost.mismatches,
    ]

    for read in reads:
        with pytest.raises(NotFound) as exc_info:
            read()
        assert str(ghost.id) in exc_info.value.what
