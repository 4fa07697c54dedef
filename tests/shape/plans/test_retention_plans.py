"""A sweep reads about what it looks at, however large the tables are, whatever is known about them, with JIT on."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast.kernel import retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, Template
from kernel.retention import days
from shape.plans.crowd import DB
from shape.plans.reading import counted, stock_connection

pytestmark = [pytest.mark.timeout(600)]
OLD, YOUNG = 5_000, 20_000
PLANT = """
insert into holdfast.steps (machine, state, kind, created_at, finished_at, last_event)
select 'work.task', 'done', 'mail', c.now - %(age)s, c.now - %(age)s, 'succeeded'
  from generate_series(1, %(count)s), (select holdfast.clock() as now) c
"""


@pytest.fixture(scope="module")
def crowded(template: Template) -> Iterator[tuple[str, DB]]:
    """A DSN, and a connection that swept before there was anything."""
    with template.clone() as dsn, stock_connection(dsn) as warmed, psycopg.connect(dsn, autocommit=True) as loader:
        Clock(loader).advance(days(2))
        for _ in range(8):
            run(warmed, retention_calls.sweep_now(afresh=True))
        loader.execute("set session_replication_role = replica")
        loader.execute("alter table holdfast.steps set (autovacuum_enabled = off)")
        loader.execute(PLANT, {"age": days(40), "count": OLD})
        loader.execute(PLANT, {"age": days(3), "count": YOUNG})
        loader.execute("reset session_replication_role")
        yield dsn, warmed


@pytest.mark.parametrize("how", ["planned on empty tables", "new, no statistics", "new, statistics"])
def test_a_chunk_reads_a_few_times_what_it_removes(crowded: tuple[str, DB], how: str) -> None:
    """And the last one, which finds the young, does not read them all."""
    dsn, warmed = crowded
    with stock_connection(dsn) as fresh:
        db = warmed if how == "planned on empty tables" else fresh
        if how == "new, statistics":
            db.execute("analyze holdfast.steps")
        (chunk,), read = counted(db, lambda: run(db, retention_calls.sweep_now(batch=500, afresh=True)))

        assert chunk.steps == 500
        assert read.rows["steps"] <= 6 * 500
        assert read.rows.total() <= 20 * 500


def test_no_index_is_written_because_something_ended(crowded: tuple[str, DB]) -> None:
    """A sweep walks the primary keys: an index on the time of the end would be written by every settle."""
    _, db = crowded
    by_end = db.execute(
        """select i.indexrelid::regclass::text
             from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = any (i.indkey::int2[])
            where i.indrelid in ('holdfast.steps'::regclass, 'holdfast.runs'::regclass)
              and a.attname = 'finished_at'"""
    ).fetchall()

    assert by_end == []


def test_a_sweep_stops_where_nothing_is_old_enough(crowded: tuple[str, DB]) -> None:
    dsn, _ = crowded
    with psycopg.connect(dsn, autocommit=True) as db:
        (chunk,) = run(db, retention_calls.sweep_now(batch=5000, afresh=True))
        while not chunk.is_through:
            (chunk,) = run(db, retention_calls.sweep_now(batch=5000))
        db.execute("vacuum holdfast.steps")

        def whole() -> None:
            (part,) = run(db, retention_calls.sweep_now(batch=500, afresh=True))
            while not part.is_through:
                (part,) = run(db, retention_calls.sweep_now(batch=500))

        _, read = counted(db, whole)

    assert read.rows["steps"] <= 1500, "of 20,000"
