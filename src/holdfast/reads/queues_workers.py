"""Queues and workers for people; counts stop at a cap, so that a long queue costs no more than a short one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from holdfast.kernel.query import Query

CAP = 10_000


@dataclass(frozen=True, slots=True)
class QueueDetail:
    """A queue. If `due`, `later` or `parked` is one above the cap, there may be more."""

    queue: str
    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    due: int
    later: int
    parked: int
    oldest_due_at: datetime | None
    live_workers: int


# Priority by priority, because only then is the index of due steps ordered by time.
QUEUES: LiteralString = """
select q.queue, q.paused_at, q.paused_by, q.pause_reason, least(d.due, %(cap)s + 1)::int as due,
       least(d.later, %(cap)s + 1)::int as later, p.parked::int, d.oldest_due_at,
       holdfast.live_workers(q.queue)::int as live_workers
  from (select holdfast.clock() as now offset 0) c, holdfast.queues q,
       lateral (select coalesce(sum(e.due), 0) as due, coalesce(sum(e.later), 0) as later,
                       min(e.oldest) as oldest_due_at
                  from generate_series(0, q.top_priority) r (priority),
                       lateral (select (select count(*) from (
                                          select from holdfast.steps s
                                           where s.queue = q.queue and s.priority = r.priority and s.due_at <= c.now
                                           limit %(cap)s + 1) n) as due,
                                       (select count(*) from (
                                          select from holdfast.steps s
                                           where s.queue = q.queue and s.priority = r.priority and s.due_at > c.now
                                           limit %(cap)s + 1) n) as later,
                                       (select min(s.due_at) from holdfast.steps s
                                         where s.queue = q.queue and s.priority = r.priority
                                           and s.due_at is not null) as oldest) e) d,
       lateral (select count(*) as parked from (
                  select from holdfast.steps s
                   where s.queue = q.queue and s.parked_for is not null limit %(cap)s + 1) n) p
 order by q.queue
"""
NAMES: LiteralString = "select queue from holdfast.queues order by queue limit 200"


def queues() -> Query[QueueDetail]:
    """Return the query for all queues."""
    return Query(QUEUES, QueueDetail, {"cap": CAP})


def queue_names() -> Query[str]:
    """Return the query for some names of queues, for completion."""
    return Query(NAMES, str, {})


@dataclass(frozen=True, slots=True)
class WorkerDetail:
    """A worker; `about` is its own description as JSON."""

    worker: str
    queues: list[str]
    kinds: list[str] | None
    tenants: list[str] | None
    state: str | None
    standing: str
    is_asleep: bool
    held: int
    oldest_claimed_at: datetime | None
    started_at: datetime
    seen_at: datetime
    host: str | None
    pid: str | None
    version: str | None
    concurrency: str | None
    in_flight: str | None
    about: str


WORKERS: LiteralString = """
select w.worker, w.queues, w.kinds, w.tenants, w.state, w.standing, w.is_asleep, w.held::int, w.oldest_claimed_at,
       w.started_at, w.seen_at, w.about ->> 'host' as host, w.about ->> 'pid' as pid, w.about ->> 'version' as version,
       w.about ->> 'concurrency' as concurrency, w.about ->> 'in_flight' as in_flight, w.about::text
  from holdfast.worker_list w
 where %(is_all)s or w.standing <> 'gone'
 order by w.standing, w.worker
 limit 1000
"""


def workers(*, is_all: bool) -> Query[WorkerDetail]:
    """Return the query for the live workers or, with `is_all`, also those that are gone."""
    return Query(WORKERS, WorkerDetail, {"is_all": is_all})
