"""A page of a pass reads its own targets and what the ledger has of their items, and nothing else of the ledger.

Counted are the rows and index entries that the server really read (`reading.py`): on a connection that planned while
the tables were empty, on a new one, and after ANALYZE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast.models import ClaimedStep
from holdfast.testing import Template
from rules.plans import applied, called, claim, define, preview, rows, work
from shape.plans.reading import counted, stock_connection

DB = Connection[Any]
Runs = tuple[UUID, UUID]
WARM, NEW, ANALYZED = "planned on empty tables", "new, no statistics", "new, statistics"
BATCH = 50
PAGE_OF = "select standing from rules.page_targets(%s, %s, %s)"
OLDER = """
insert into rules.ledger (id, at, tenant, channel, item_id, currency, price_before, price_after, source, effect,
                          rule_id, rule_version, run_id, step_id)
select -n, l.at, l.tenant, l.channel, l.item_id, l.currency, l.price_before, l.price_after, l.source, l.effect,
       l.rule_id, l.rule_version, l.run_id, -n
  from (select row_number() over () as n, l.* from generate_series(1, 50), rules.ledger l where l.run_id = any (%s)) l
"""
OTHER = """
insert into rules.ledger (at, tenant, channel, item_id, currency, price_before, price_after, source, effect,
                          rule_id, rule_version, run_id, step_id)
select l.at, l.tenant, l.channel, 'OTHER-' || n, l.currency, l.price_before, l.price_after, l.source, l.effect,
       l.rule_id, l.rule_version, l.run_id, -100000 - n
  from generate_series(1, 20000) n, (select * from rules.ledger where run_id = %s limit 1) l
"""


@pytest.fixture(scope="module")
def crowded(template: Template) -> Iterator[tuple[str, DB, Runs]]:
    """A DSN, a connection that was used before the load, and two runs that are over.

    The ledger has many older changes of each of their items, and many later ones of other items.
    """
    with template.clone() as dsn, stock_connection(dsn) as warmed:
        for table in ("holdfast.steps", "holdfast.run_steps", "rules.target_values", "rules.ledger"):
            warmed.execute(f"alter table {table} set (autovacuum_enabled = off)")
        define(warmed)
        for page in passes(warmed, repriced(warmed, 3, first=900)):
            standings(warmed, page, 10)
        checked = repriced(warmed, 4 * BATCH, first=100)
        warmed.execute(OLDER, [list(checked)])
        warmed.execute(OTHER, [checked[0]])
        yield dsn, warmed, checked


@pytest.fixture(scope="module", params=[WARM, NEW, ANALYZED])
def db(request: pytest.FixtureRequest, crowded: tuple[str, DB, Runs]) -> Iterator[DB]:
    dsn, warmed, _ = crowded
    if request.param == WARM:
        yield warmed
        return
    if request.param == ANALYZED:
        warmed.execute("analyze")
    with stock_connection(dsn) as connection:
        yield connection


def repriced(db: DB, count: int, *, first: int) -> Runs:
    """Apply two runs of different items, and write one item of the second again."""
    runs = []
    for targets in (rows(count, first=first), rows(count, first=first + count), rows(1, first=first + count)):
        runs.append(UUID(str(preview(db, targets)["run_id"])))
        applied(db, runs[-1])
        work(db)
    return runs[0], runs[1]


def passes(db: DB, runs: Sequence[UUID]) -> list[ClaimedStep]:
    """Begin passes over runs, and claim the only step of each."""
    for run in runs:
        called(db, "reconcile", run_id=run)
    return claim(db, batch=len(runs))


def standings(db: DB, page: ClaimedStep, most: int) -> list[str]:
    """Read the next targets of a pass."""
    return [standing for (standing,) in db.execute(PAGE_OF, [page.step_id, page.lease_id, most]).fetchall()]


def test_a_page_of_a_pass_reads_its_targets_and_not_the_ledger(db: DB, crowded: tuple[str, DB, Runs]) -> None:
    """A page that nobody wrote since, and one with an item that a later run wrote"""
    with db.transaction(force_rollback=True):
        untouched, touched = passes(db, crowded[2])
        (all_ours, first), (not_all, second) = (
            counted(db, lambda page=page: standings(db, page, BATCH)) for page in (untouched, touched)
        )

    assert all_ours == ["check"] * BATCH
    assert not_all == ["superseded", *["check"] * (BATCH - 1)]
    for read in (first, second):
        assert read.rows.total() < 12 * BATCH, read.most
        assert read.blocks.total() < 40 * BATCH
