"""The batch worker for rules in bash over psql: compares before it writes, and after a kill finds what it wrote."""

from __future__ import annotations

import os
import signal
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection
from psycopg.conninfo import make_conninfo

from holdfast import embedded
from holdfast.testing import Clock
from kernel.steps import rescue, violations
from rules.plans import applied, claim, define, preview, row, rows, status, statuses, targets
from scenarios.test_batch_kills import PATIENCE, PSQL, some

DB = Connection[Any]
WORKER = Path(__file__).parents[2] / "examples" / "rules_worker.sh"
PRODUCTS = """
create schema if not exists shop;
create table shop.products (sku text primary key, price bigint not null, compare_at bigint);
create table shop.log (id bigint generated always as identity, sku text, price bigint);
create function shop.log_price() returns trigger language plpgsql as
  'begin insert into shop.log (sku, price) values (new.sku, new.price); return null; end';
create trigger logs after update on shop.products for each row execute function shop.log_price();
insert into shop.products select 'SKU-' || n, 1000 from generate_series(1, 7) n;
"""
LOG = "select sku, price from shop.log order by id"
TURNS = [f"{side} {number}" for number in range(1, 7) for side in ("before", "after")]  # claim, write, settle, claim, …


def work(dsn: str, **places: str) -> int:
    """Run the worker until nothing is due, in batches of three, and give its exit code."""
    shop = make_conninfo(dsn, options="-csearch_path=shop,pg_catalog")
    known = {"HOLDFAST_DSN": dsn, "SHOP_DSN": shop, "PSQL": str(embedded.binary("psql")), **places}
    process = subprocess.Popen([WORKER, "shop", "3"], env={**os.environ, **known}, start_new_session=True,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode


@pytest.mark.one_server
@pytest.mark.own_database
def test_a_worker_in_bash_applies_a_plan_and_overwrites_nothing(db: DB, dsn: str, clock: Clock) -> None:
    """A-89, R27, X-02: an edit and a removed item are reported; a price that was written before a kill is found"""
    db.execute(PRODUCTS)
    define(db)
    answer = preview(db, [row(f"SKU-{n}", 1000, 800 + n) for n in range(1, 8)])
    run_id = answer["run_id"]
    applied(db, run_id)
    db.execute("update shop.products set price = 1 where sku = 'SKU-2'")
    db.execute("delete from shop.products where sku = 'SKU-3'")
    (killed,) = claim(db, batch=1)  # a worker writes the price, and dies before it settles
    db.execute("update shop.products set price = 801 where sku = 'SKU-1'")
    clock.advance(timedelta(seconds=31))
    rescue(db)
    clock.advance(timedelta(seconds=10))

    assert work(dsn) == 0

    told = {target["item_id"]: (target["status"], target["reason"]) for target in targets(db, run_id)}
    assert told == {
        "SKU-1": ("APPLIED", None), "SKU-2": ("FAILED", "stale"), "SKU-3": ("FAILED", "not_found"),
        **{f"SKU-{n}": ("APPLIED", None) for n in range(4, 8)},
    }  # fmt: skip
    assert status(db, run_id) == "PARTIAL"
    effects = dict(db.execute("select target_id, effect from rules.price_changes").fetchall())
    assert [effects[killed.step_id], *effects.values()].count("found") == 2
    assert sorted(db.execute(LOG).fetchall()) == sorted(
        [("SKU-2", 1), *((f"SKU-{n}", 800 + n) for n in (1, 4, 5, 6, 7))]
    )
    assert violations(db) == []


@pytest.mark.one_server
@pytest.mark.own_database
@pytest.mark.parametrize("turn", some(TURNS, {"after 2"}))
def test_a_worker_in_bash_that_is_killed_leaves_one_effect_per_target(
    db: DB, dsn: str, clock: Clock, tmp_path: Path, turn: str
) -> None:
    """R2, A-89, A-121, X-02: before and after each claim, write and settle, with all its processes"""
    (tmp_path / "psql").write_text(PSQL)
    (tmp_path / "psql").chmod(0o755)
    (tmp_path / "count").write_text("0")
    db.execute(PRODUCTS)
    define(db)
    run_id = preview(db, rows(7))["run_id"]
    applied(db, run_id)

    killed = work(dsn, PSQL=str(tmp_path / "psql"), REAL_PSQL=str(embedded.binary("psql")),
                  COUNT=str(tmp_path / "count"), KILL=turn)  # fmt: skip
    assert killed == -signal.SIGKILL
    clock.advance(timedelta(minutes=10))
    rescue(db)
    clock.advance(timedelta(seconds=10))
    assert work(dsn) == 0

    assert (status(db, run_id), set(statuses(db, run_id))) == ("APPLIED", {"APPLIED"})
    assert sorted(db.execute(LOG).fetchall()) == [(f"SKU-{n}", 800) for n in range(1, 8)]
    assert db.execute("select count(*) from rules.price_changes").fetchall() == [(7,)]
    assert violations(db) == []
