"""The demo's sale: the table of its products with a log of every value, and what became of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

# The log has a row per change of a price, by whoever made it: it shows what no journal could hide.
PRODUCTS: LiteralString = """
create table if not exists holdfast_demo.products (
  sku text primary key, price numeric(10, 2), compare_at numeric(10, 2));
create table if not exists holdfast_demo.price_log (sku text not null, price numeric(10, 2));
create index if not exists price_log_of_item on holdfast_demo.price_log (sku);
create or replace function holdfast_demo.log_price() returns trigger language plpgsql as
  $$ begin insert into holdfast_demo.price_log values (new.sku, new.price); return null; end $$;
create or replace trigger log_price after update on holdfast_demo.products
  for each row execute function holdfast_demo.log_price();
"""
STOCKED: LiteralString = """
insert into holdfast_demo.products (sku, price)
select %(batch)s || '/' || n, 10 + n from generate_series(1, %(count)s) n
on conflict do nothing
"""
FACTS: LiteralString = """
select r.status, (r.counts ->> 'targets')::int as targets, (r.counts ->> 'applied')::int as applied,
       (r.counts ->> 'failed')::int as failed,
       (select count(*)::int from holdfast_demo.price_log l
         where l.sku like %(batch)s || '/%%' and l.sku <> %(edited)s) as written,
       (select count(*)::int from (select from holdfast_demo.price_log l
                                    where l.sku like %(batch)s || '/%%' and l.sku <> %(edited)s
                                    group by l.sku having count(*) > 1) t) as twice,
       (select p.price = 99 from holdfast_demo.products p where p.sku = %(edited)s) as is_edit_kept
  from rules.rule_runs r
 where r.id = %(run_id)s
"""


@dataclass(frozen=True, slots=True)
class SaleFacts:
    """The evidence about the sale: its run, and the table's own log."""

    status: str
    targets: int
    applied: int
    failed: int
    written: int
    twice: int
    is_edit_kept: bool


def stock(connection: Connection[Any], batch: str, count: int) -> None:
    """Create the table, and put the products of one demo into it."""
    connection.execute(PRODUCTS)
    connection.execute(STOCKED, {"batch": batch, "count": count})


def edit_by_hand(connection: Connection[Any], sku: str) -> None:
    """Change a price, as a person would beside the sale."""
    connection.execute("update holdfast_demo.products set price = 99 where sku = %s", [sku])


def take_out(connection: Connection[Any], sku: str) -> None:
    """Remove a product."""
    connection.execute("delete from holdfast_demo.products where sku = %s", [sku])


def put_back(connection: Connection[Any], sku: str, price: int) -> None:
    """Put a product back with its price."""
    connection.execute("insert into holdfast_demo.products (sku, price) values (%s, %s)", [sku, price])


def facts(connection: Connection[Any], batch: str, run_id: UUID, edited: str) -> SaleFacts:
    """Read the evidence."""
    row = connection.execute(FACTS, {"batch": batch, "run_id": run_id, "edited": edited}).fetchone()
    return SaleFacts(*row) if row is not None else SaleFacts("gone", 0, 0, 0, 0, 0, is_edit_kept=False)
