"""Reads of feeds and their runs for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import NotFound
from holdfast.kernel.query import Query, query, query_one
from holdfast.spelling import did_you_mean

DB = Connection[Any]
FEEDS: LiteralString = """
select f.feed, f.watermark, f.settings ->> 'source' as source, f.settings ->> 'into' as target, f.run_id,
       case when n.run_id is not null then 'planning' else f.state end as state, f.tenant
  from ingest.feeds f
  left join lateral (
    select b.run_id from ingest.starts b join holdfast.steps s on s.id = b.step_id and s.finished_at is null
     where b.feed = f.feed order by b.started_at desc limit 1) n on true
 order by f.feed
"""
NAMES: LiteralString = "select f.feed from ingest.feeds f order by 1"
RUN: LiteralString = """
select r.run_id, r.feed, r.run_type, r.state, r.expected_workers, r.completed_workers, r.failed_workers, r.forced,
       r.watermark_before, r.watermark_after, r.updated_from, r.updated_to,
       greatest(r.records, (select coalesce(sum(p.records_processed), 0) from ingest.partitions p
                             where p.run_id = r.run_id))::bigint as records,
       r.estimated, r.quarantined, r.deleted, r.reason, r.started_at, r.completed_at, r.trace_id, r.tenant,
       (select w.last_updated_at from ingest.watermarks w where w.feed = r.feed) as watermark, holdfast.clock() as now
  from ingest.run_metadata r
 where r.feed = %(feed)s
 order by r.no desc limit 1
"""
FAILED: LiteralString = """
select p.partition_id, p.next_offset, coalesce(p.error_message, '') as message, s.failures as tries
  from ingest.partitions p join holdfast.steps s on s.id = p.step_id
 where p.run_id = %(run)s and s.state = 'failed'
 order by s.id
"""
PLANNING: LiteralString = """
select b.run_id from ingest.starts b join holdfast.steps s on s.id = b.step_id and s.finished_at is null
 where b.feed = %(feed)s order by b.started_at desc limit 1
"""
UNPLANNED: LiteralString = """
select b.run_id, holdfast.error_text(s.error) as message
  from ingest.starts b join holdfast.steps s on s.id = b.step_id and s.finished_at is not null and s.error is not null
 where b.feed = %(feed)s
   and not exists (select from ingest.run_metadata r where r.feed = b.feed and r.started_at >= b.started_at)
 order by b.started_at desc limit 1
"""
QUARANTINED: LiteralString = """
select q.run_id, q.key, q.stage, q.error as reason, q.record, q.at from ingest.quarantine q
 where q.feed = %(feed)s order by q.id desc limit %(limit)s
"""
WATERMARK: LiteralString = "select w.document::text from ingest.watermarks w where w.feed = %(feed)s"


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record that could not be stored or mapped."""

    run_id: UUID
    key: str | None
    stage: str
    reason: str
    record: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class FeedRow:
    """A feed, and its newest run."""

    feed: str
    watermark: datetime | None
    source: str | None
    target: str | None
    run_id: UUID | None
    state: str | None
    tenant: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run of a feed."""

    run_id: UUID
    feed: str
    run_type: str
    state: str
    expected_workers: int
    completed_workers: int
    failed_workers: int
    forced: bool
    watermark_before: datetime | None
    watermark_after: datetime | None
    updated_from: datetime | None
    updated_to: datetime
    records: int
    estimated: int | None
    quarantined: int
    deleted: int
    reason: str | None
    started_at: datetime
    completed_at: datetime | None
    trace_id: str
    tenant: str
    watermark: datetime | None  # of the feed, now
    now: datetime


@dataclass(frozen=True, slots=True)
class FailedPlan:
    """A start whose run could not be planned, and why."""

    run_id: UUID
    message: str


@dataclass(frozen=True, slots=True)
class FailedPartition:
    """A partition that failed, and where."""

    partition_id: str
    next_offset: int
    message: str
    tries: int


def feeds(connection: DB) -> list[FeedRow]:
    """List all feeds."""
    return query(connection, Query(FEEDS, FeedRow, {}))


def names() -> Query[str]:
    """Return the query of the names of feeds, for completion."""
    return Query(NAMES, str, {})


def newest_run(connection: DB, feed: str) -> RunRow | None:
    """Return the newest run of a feed; raise NotFound if there is no such feed."""
    known = query(connection, names())
    if feed not in known:
        raise NotFound(f"there is no feed {feed}", where=feed, next=did_you_mean(feed, known) or "holdfast ingest list")
    return query_one(connection, Query(RUN, RunRow, {"feed": feed}))


def planning(connection: DB, feed: str) -> UUID | None:
    """Return the run of a feed that is being planned."""
    return query_one(connection, Query(PLANNING, UUID, {"feed": feed}))


def failed_plan(connection: DB, feed: str) -> FailedPlan | None:
    """Return the newest start of a feed if its run could not be planned."""
    return query_one(connection, Query(UNPLANNED, FailedPlan, {"feed": feed}))


def quarantined(connection: DB, feed: str, limit: int = 1000) -> list[Quarantined]:
    """List quarantined records of a feed, newest first."""
    return query(connection, Query(QUARANTINED, Quarantined, {"feed": feed, "limit": limit}))


def watermark(connection: DB, feed: str) -> str | None:
    """Return the watermark of a feed as the document's JSON."""
    return query_one(connection, Query(WATERMARK, str, {"feed": feed}))


def failed_partitions(connection: DB, run_id: UUID) -> list[FailedPartition]:
    """List the failed partitions of a run."""
    return query(connection, Query(FAILED, FailedPartition, {"run": run_id}))
