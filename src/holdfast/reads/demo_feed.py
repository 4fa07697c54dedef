"""The demo's feed: the table that it fills, the records that come late, and what became of its two runs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

TABLES: LiteralString = """
create table if not exists holdfast_demo.catalog (sku text primary key, cents bigint, deleted_at timestamptz);
create table if not exists holdfast_demo.late_records (sku text primary key, at timestamptz not null);
create table if not exists holdfast_demo.feed_calls (bound timestamptz primary key);
"""
FACTS: LiteralString = """
select (select count(*)::int from holdfast_demo.catalog c where c.deleted_at is null) as live,
       f.records::int as read, f.quarantined, f.failed_workers as failed, f.state,
       (select count(*)::int from holdfast_demo.feed_calls c where c.bound = f.updated_to) as refused,
       (select count(*)::int from holdfast.journal j
         where j.run_id = f.run_id and j.event = 'expired' and j.machine = 'ingest.partition'
           and j.from_state = 'fetching_pages') as rescued,
       (select count(*)::int from (select from ingest.events e where e.run_id = f.run_id and e.event = 'WORK_DONE'
                                    group by e.partition_id having count(*) > 1) t) as twice,
       coalesce(s.records, 0)::int as late, coalesce(s.state, '') as then_state,
       coalesce(w.last_updated_at = s.watermark_after, false) as is_marked
  from ingest.run_metadata f
  left join ingest.run_metadata s on s.run_id = %(second)s
  left join ingest.watermarks w on w.feed = f.feed
 where f.run_id = %(first)s
"""
STATE: LiteralString = "select r.state from ingest.run_metadata r where r.run_id = %s"
ACTIVE: LiteralString = """
select b.run_id from ingest.starts b
  left join ingest.run_metadata r on r.run_id = b.run_id
  left join holdfast.steps s on s.id = b.step_id
 where b.feed = %s and coalesce(r.state not in ('completed', 'failed', 'cancelled'), s.finished_at is null)
"""


@dataclass(frozen=True, slots=True)
class FeedFacts:
    """The evidence about the feed: its runs, the journal, and the table."""

    live: int
    read: int
    quarantined: int
    failed: int
    state: str
    refused: int
    rescued: int
    twice: int
    late: int
    then_state: str
    is_marked: bool


def prepare(connection: Connection[Any]) -> None:
    """Create the tables; nothing comes late yet."""
    connection.execute(TABLES)
    connection.execute("delete from holdfast_demo.late_records")


def active_runs(connection: Connection[Any], feed: str) -> list[UUID]:
    """List runs of a feed that an interrupted demo left."""
    return [run_id for (run_id,) in connection.execute(ACTIVE, [feed]).fetchall()]


def state(connection: Connection[Any], run_id: UUID) -> str:
    """Return the state of a run."""
    row = connection.execute(STATE, [run_id]).fetchone()
    return "planning" if row is None else str(row[0])


def add_late(connection: Connection[Any], first: UUID, sku: str) -> None:
    """Add a record whose time is before the bound of a run that is over: it committed late."""
    connection.execute(
        "insert into holdfast_demo.late_records "
        "select %s, r.updated_to - interval '5 minutes' from ingest.run_metadata r where r.run_id = %s",
        [sku, first],
    )


def late_records(connection: Connection[Any]) -> list[tuple[str, datetime]]:
    """List the records that came late."""
    return connection.execute("select l.sku, l.at from holdfast_demo.late_records l").fetchall()


def is_first_call(connection: Connection[Any], bound: datetime) -> bool:
    """Record a call of the source, and return whether it is the first of its run."""
    statement: LiteralString = "insert into holdfast_demo.feed_calls values (%s) on conflict do nothing"
    return connection.execute(statement, [bound]).rowcount == 1


def facts(connection: Connection[Any], first: UUID, second: UUID | None) -> FeedFacts:
    """Read the evidence."""
    row = connection.execute(FACTS, {"first": first, "second": second}).fetchone()
    if row is None:
        return FeedFacts(0, 0, 0, 0, "gone", 0, 0, 0, 0, "", is_marked=False)
    return FeedFacts(*row)
