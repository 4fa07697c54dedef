"""Ticks: many schedules with a tick at the same moment, and one idle worker that fires them.

What they start goes to a queue that nobody serves: the section measures firing alone. Times are the database's.
"""

from __future__ import annotations

import psycopg

from bench import Bench
from processes import wait_until

NAME = "ticks"
TITLE = "Ticks of schedules that are due at once"
AHEAD = 6  # seconds from the definition to the ticks: the worker is asleep by then
DEFINE = """
select holdfast.define_schedule('s' || n, 'noop', options => '{"queue": "ticks"}', every => '1 h', starts_at => %(at)s)
  from generate_series(1, %(count)s) n
"""
QUEUED = "select count(*) from holdfast.steps where queue = 'ticks'"
LAST = "select extract(epoch from holdfast.clock() - %s)::float8"


def measure(bench: Bench) -> None:
    """Measure how long after their time all ticks' tasks are queued."""
    bench.asked = [engine for engine in bench.asked if engine.name == "holdfast"]
    count = bench.tasks or bench.size(1_000, 300)
    for number, engine in bench.turns():
        with bench.attempt(engine):
            dsn = bench.prepare(engine)
            with bench.workers(engine, dsn) as crew, psycopg.connect(dsn, autocommit=True) as connection:
                seconds = fired_after(connection, count, crew)
            bench.record(engine, "all queued", number, seconds, "s", n=count)


def fired_after(connection: psycopg.Connection[tuple[object, ...]], count: int, crew: object) -> float:
    """Define the schedules, and return how many seconds after their time the last task was queued."""
    due_at = one(connection, f"select date_trunc('second', holdfast.clock()) + interval '{AHEAD} s'")
    connection.execute(DEFINE, {"at": due_at, "count": count})
    wait_until(lambda: one(connection, QUEUED) == count, AHEAD + 60, crew, f"to fire {count} ticks")
    return float(str(one(connection, LAST, due_at)))


def one(connection: psycopg.Connection[tuple[object, ...]], query: str, *arguments: object) -> object:
    """Return the only value of a query."""
    row = connection.execute(query, arguments).fetchone()  # type: ignore[arg-type]
    assert row is not None
    return row[0]
