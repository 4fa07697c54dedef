"""What flows are defined and which of their tasks were started, newest first, page by page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput
from holdfast.kernel.query import Query, query
from holdfast.reads import run_list
from holdfast.reads.run_detail import parse_id

DB = Connection[Any]
STATES = ("pending", "in_progress", "complete", "error", "cancelled", "resolved_manually")
COUNTED = 10_000  # runs, from the newest, for the counts of a definition


@dataclass(frozen=True, slots=True)
class Definition:
    """A flow as a worker defined it last, for one tenant or for all (`*`); its runs are counted among the newest."""

    namespace: str
    name: str
    version: str
    steps: int
    defined_at: datetime
    description: str | None
    tasks: int
    open: int
    failed: int
    tenant: str


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step of a definition."""

    name: str
    kind: str
    after: list[str]
    queue: str | None
    retry_limit: int | None
    retryable: bool
    skippable: bool
    each: str | None
    flow: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class TasksWanted:
    """What a list of tasks is narrowed to; None and False narrow nothing."""

    states: list[str] | None = None
    name: str | None = None
    namespace: str | None = None
    tenant: str | None = None
    since: datetime | None = None
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task as lists have it."""

    id: str
    namespace: str
    name: str
    version: str
    state: str
    phase: str | None
    outcome: str | None
    tenant: str
    total: int
    succeeded: int
    failed: int
    created_at: datetime
    finished_at: datetime | None
    initiator: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class TaskPage:
    """Some tasks; `next` is where the following page begins, `looked_until` how far a page that ended early got."""

    rows: list[ListedTask]
    next: UUID | None
    looked_until: datetime | None


DEFINITIONS: LiteralString = """
with counted as materialized (
  select t.namespace, t.name, t.version, t.tenant, count(*) as tasks,
         count(*) filter (where t.finished_at is null) as open, count(*) filter (where t.state = 'error') as failed
    from (select r.id from holdfast.runs r order by r.id desc limit %(counted)s) n
   cross join lateral (select * from flow.tasks t where t.task_id = n.id offset 0) t
   group by 1, 2, 3, 4)
select d.namespace, d.name, d.version, jsonb_array_length(d.steps) as steps, d.defined_at, d.description,
       c.tasks, c.open, c.failed, d.tenant
  from flow.definitions d
 cross join lateral (
   select coalesce(sum(c.tasks), 0)::int as tasks, coalesce(sum(c.open), 0)::int as open,
          coalesce(sum(c.failed), 0)::int as failed
     from counted c
    where (c.namespace, c.name, c.version) = (d.namespace, d.name, d.version)
      and (c.tenant = d.tenant or (d.tenant = '*' and not exists (
             select from flow.definitions o
              where (o.namespace, o.name, o.version, o.tenant) = (d.namespace, d.name, d.version, c.tenant))))) c
 where holdfast.matches(%(name)s, d.name)
   and holdfast.matches(%(namespace)s, d.namespace)
   and holdfast.matches(%(version)s, d.version)
 order by d.namespace, d.name, d.defined_at desc, d.tenant
"""
PLAN: LiteralString = """
select t.name, t.handler as kind, t.depends_on as after, t.queue, t.retry_limit, t.retryable, t.skippable,
       d.steps -> t.place - 1 ->> 'each' as each, d.steps -> t.place - 1 ->> 'flow' as flow, t.description
  from flow.step_templates t
  join flow.definitions d on (d.namespace, d.name, d.version, d.tenant) = (t.namespace, t.flow, t.version, t.tenant)
 where t.namespace = %(namespace)s and t.flow = %(name)s and t.version = %(version)s and t.tenant = %(tenant)s
 order by t.place
"""
TASKS: LiteralString = """
select t.task_id::text as id, t.namespace, t.name, t.version, t.state, r.phase, r.outcome, t.tenant,
       t.total_steps as total, t.completed_steps as succeeded, t.failed_steps as failed, t.requested_at as created_at,
       t.finished_at, t.initiator, t.reason
  from flow.tasks t
  join holdfast.run_list r on r.id = t.task_id
 where t.task_id = any (%(ids)s)
   and holdfast.matches_any(%(states)s, t.state)
   and holdfast.matches(%(name)s, t.name)
   and holdfast.matches(%(namespace)s, t.namespace)
   and holdfast.matches(%(tenant)s, t.tenant)
   and (%(since)s::timestamptz is null or t.requested_at >= %(since)s)
   and (not %(is_failed)s or t.failed_steps > 0 or r.outcome = 'failed')
 order by t.task_id desc
"""
NAMES: LiteralString = "select distinct name from flow.definitions order by name"
RECENT: LiteralString = """
select r.id::text from (select * from holdfast.runs order by id desc limit 1000) r
 where r.machine = 'flow.task' limit 20
"""


def definitions(
    connection: DB, *, name: str | None = None, namespace: str | None = None, version: str | None = None
) -> list[Definition]:
    """List what is defined, the last said first of each name."""
    narrowed = {"name": name, "namespace": namespace, "version": version, "counted": COUNTED}
    return query(connection, Query(DEFINITIONS, Definition, narrowed))


def plan(connection: DB, of: Definition) -> list[PlannedStep]:
    """Give the steps of a definition, in their order."""
    key = {"namespace": of.namespace, "name": of.name, "version": of.version, "tenant": of.tenant}
    return query(connection, Query(PLAN, PlannedStep, key))


def check_states(states: Sequence[str] | None) -> list[str] | None:
    """Give the states that `TasksWanted.states` can hold, and refuse others."""
    if odd := [state for state in states or () if state not in STATES]:
        raise BadInput(
            f"a run of a flow has no state {odd[0]!r}", where="state", next=f"take one of: {', '.join(STATES)}"
        )
    return list(states) if states else None


def begins_below(text: str | None) -> UUID:
    """Read where a page of tasks begins, as the last page said; None is the beginning."""
    below = run_list.LAST_RUN if text is None else parse_id(text)
    if not isinstance(below, UUID):
        raise BadInput(f"{text} is a step", where=text, next="a run's id is a UUID: take what the last page said")
    return below


def newest_tasks(connection: DB, wanted: TasksWanted, below: UUID = run_list.LAST_RUN, *, limit: int) -> TaskPage:
    """Give one page of what was started; it looks at a bounded number of runs."""

    def rows_of(ids: list[Any]) -> list[ListedTask]:
        return query(connection, Query(TASKS, ListedTask, {"ids": ids, **asdict(wanted)}))

    rows: list[ListedTask] = []
    for seen in run_list.walk(connection, run_list.RUN_IDS, rows_of, below, first=limit, since=wanted.since):
        if seen.row is None:
            return TaskPage(rows, seen.id, seen.at)
        if len(rows) == limit:
            return TaskPage(rows, UUID(rows[-1].id), None)
        rows.append(seen.row)
    return TaskPage(rows, None, None)


def names() -> Query[str]:
    """Ask for the names of flows, for completion."""
    return Query(NAMES, str, {})


def recent_ids() -> Query[str]:
    """Ask for tasks of late, for completion."""
    return Query(RECENT, str, {})
