"""Reads of ops runs for people: lists, one run with what belongs to it, its events, and the document's metrics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from psycopg import Connection

from holdfast.errors import BadInput, NotFound
from holdfast.kernel.query import Query, query, query_one
from holdfast.ops.rows import (
    Approval,
    Artifact,
    Duration,
    Environment,
    Metrics,
    Project,
    Run,
    RunEvent,
    RunsWanted,
    SuccessRate,
    Utilization,
)
from holdfast.spelling import did_you_mean

DB = Connection[Any]
STATUSES = ("queued", "claimed", "running", "success", "failed", "cancelled")

RUN: LiteralString = "select r.* from ops.run_list r where r.run_id = %(run)s"
RUN_OF_STEP: LiteralString = "select r.* from ops.run_list r where r.step_id = %(step)s"
# By day without a status, by status with some: each reads as many rows as it prints, whatever the table holds.
NEWEST: LiteralString = """
select r.* from ops.run_list r
 where (%(project)s::text is null or r.project_id = %(project)s) and (%(env)s::text is null or r.env = %(env)s)
   and (%(kind)s::text is null or r.kind = %(kind)s) and (%(tenant)s::text is null or r.tenant = %(tenant)s)
   and (%(since)s::timestamptz is null or r.queued_at >= %(since)s)
   and (%(below)s::bigint is null or (r.queued_at, r.step_id) < (%(below_at)s, %(below)s))
 order by r.queued_at desc, r.step_id desc
 limit %(limit)s
"""
NEWEST_BY_STATUS: LiteralString = """
select r.*
  from unnest(%(statuses)s::text[]) s (status)
 cross join lateral (
   select r.* from ops.run_list r
    where r.status = s.status
      and (%(project)s::text is null or r.project_id = %(project)s) and (%(env)s::text is null or r.env = %(env)s)
      and (%(kind)s::text is null or r.kind = %(kind)s) and (%(tenant)s::text is null or r.tenant = %(tenant)s)
      and (%(since)s::timestamptz is null or r.queued_at >= %(since)s)
      and (%(below)s::bigint is null or (r.queued_at, r.step_id) < (%(below_at)s, %(below)s))
    order by r.queued_at desc, r.step_id desc
    limit %(limit)s) r
 order by r.queued_at desc, r.step_id desc
 limit %(limit)s
"""
EVENTS: LiteralString = """
select e.id, e.event_id, e.level, e.message, e.payload::text as payload, e.created_at
  from ops.event_list e
 where e.step_id = %(step)s and e.id > %(after)s
 order by e.id
 limit %(limit)s
"""
LAST_EVENTS: LiteralString = """
select * from (
  select e.id, e.event_id, e.level, e.message, e.payload::text as payload, e.created_at
    from ops.event_list e
   where e.step_id = %(step)s
   order by e.id desc
   limit %(limit)s) e
 order by e.id
"""
STATUS: LiteralString = "select r.status from ops.runs r where r.step_id = %(step)s"
ARTIFACTS: LiteralString = """
select a.artifact_id, a.run_id, a.type, a.url, a.digest, a.size_bytes, a.metadata::text as metadata, a.created_at
  from ops.artifacts a where a.run_id = %(run)s order by a.created_at, a.artifact_id
"""
APPROVAL: LiteralString = """
select a.run_id, a.decision, a.requested_by, a.requested_at, a.expires_at, a.decided_by, a.decided_at, a.reason
  from ops.approvals a where a.run_id = %(run)s
"""
PROJECTS: LiteralString = """
select p.project_id, p.repository, p.environments, p.created_at, p.created_by, p.tenant
  from ops.projects p order by p.tenant, p.project_id
"""
ENVIRONMENTS: LiteralString = """
select e.project_id, e.name, e.env_id, e.type, e.branch_pattern, e.needs_approval, e.on_push, e.kind, e.concurrency,
       e.queue_ttl, e.tenant, e.created_at, e.created_by
  from ops.environments e
 where %(project)s::text is null or e.project_id = %(project)s
 order by e.tenant, e.project_id, e.name
"""
DEPTH: LiteralString = "select queued_count from ops.queue_depth"
UTILIZATION: LiteralString = "select claimed_by, active_runs from ops.worker_utilization order by claimed_by"
SUCCESS: LiteralString = "select success_count, failed_count, success_rate::float8 from ops.success_rate"
DURATIONS: LiteralString = """
select status, avg_duration_seconds::float8 as avg_duration_seconds from ops.run_durations order by status
"""
RECENT: LiteralString = "select r.run_id from ops.runs r order by r.queued_at desc limit 50"


def run_of(connection: DB, given: str) -> Run:
    """Read a run by its id, or by the number of its step."""
    read = (
        Query(RUN_OF_STEP, Run, {"step": int(given)})
        if given.isdecimal() and len(given) <= 18
        else Query(RUN, Run, {"run": given})
    )
    found = query_one(connection, read)
    if found is None:
        raise NotFound(f"there is no run {given}", where=given, next="find its id with `holdfast ops list`")
    return found


def newest(connection: DB, wanted: RunsWanted, below: Run | None, *, limit: int) -> list[Run]:
    """List runs, newest first, from below a run on."""
    arguments = {
        "statuses": None if wanted.statuses is None else list(wanted.statuses),
        "project": wanted.project,
        "env": wanted.env,
        "kind": wanted.kind,
        "tenant": wanted.tenant,
        "since": wanted.since,
        "below": None if below is None else below.step_id,
        "below_at": None if below is None else below.queued_at,
        "limit": limit,
    }
    return query(connection, Query(NEWEST if wanted.statuses is None else NEWEST_BY_STATUS, Run, arguments))


def check_statuses(given: Sequence[str] | None) -> tuple[str, ...] | None:
    """Raise BadInput for an unknown status."""
    for status in given or ():
        if status not in STATUSES:
            raise BadInput(f"there is no status {status}", where="--status", next=did_you_mean(status, STATUSES))
    return tuple(dict.fromkeys(given)) if given else None


def status_of(connection: DB, step_id: int) -> str | None:
    """Read the status of a run; None if it is gone."""
    return query_one(connection, Query(STATUS, str, {"step": step_id}))


def events_after(connection: DB, step_id: int, after: int = 0, *, limit: int = 500) -> list[RunEvent]:
    """Read the next events of a run, in order."""
    return query(connection, Query(EVENTS, RunEvent, {"step": step_id, "after": after, "limit": limit}))


def last_events(connection: DB, step_id: int, *, limit: int) -> list[RunEvent]:
    """Read the last events of a run, in order."""
    return query(connection, Query(LAST_EVENTS, RunEvent, {"step": step_id, "limit": limit}))


def artifacts_of(connection: DB, run_id: str) -> list[Artifact]:
    """List what a run produced."""
    return query(connection, Query(ARTIFACTS, Artifact, {"run": run_id}))


def approval_of(connection: DB, run_id: str) -> Approval | None:
    """Read the approval of a run; None if it needs none."""
    return query_one(connection, Query(APPROVAL, Approval, {"run": run_id}))


def projects(connection: DB) -> list[Project]:
    """List the projects."""
    return query(connection, Query(PROJECTS, Project, {}))


def environments(connection: DB, project: str | None = None) -> list[Environment]:
    """List the environments, of all projects or of one."""
    return query(connection, Query(ENVIRONMENTS, Environment, {"project": project}))


def recent_ids() -> Query[str]:
    """Return the query of the newest ids, for completion."""
    return Query(RECENT, str, {})


def metrics(connection: DB) -> Metrics:
    """Read the document's metrics."""
    depth = query_one(connection, Query(DEPTH, int, {}))
    success = query_one(connection, Query(SUCCESS, SuccessRate, {}))
    return Metrics(
        depth or 0,
        query(connection, Query(UTILIZATION, Utilization, {})),
        success or SuccessRate(0, 0, None),
        query(connection, Query(DURATIONS, Duration, {})),
    )
