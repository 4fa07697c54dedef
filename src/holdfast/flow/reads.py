"""A task of a flow in detail: its state and that of its steps, why, and their history."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import NotFound
from holdfast.kernel.query import Query, query, query_one
from holdfast.reads.retention import raise_if_pruned
from holdfast.reads.run_detail import StoryEntry

DB = Connection[Any]
STEPS_LOOKED_AT = 50_000  # steps of one task that are read
TOLD_OF = 500  # steps of a task whose moves its history includes


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task with all that explains its state; `execution_status` to `earliest_retry_at` are its execution context."""

    id: str
    namespace: str
    name: str
    version: str
    state: str
    phase: str | None
    outcome: str | None
    tenant: str
    moving: str | None
    retry_of: UUID | None
    total: int
    succeeded: int
    failed: int
    cancelled: int
    execution_status: str
    recommended_action: str
    completion_percentage: float
    health_status: str
    earliest_retry_at: datetime | None
    started_by: str | None
    initiator: str | None
    source_system: str | None
    reason: str | None
    tags: list[str]
    skip: list[str]
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    looked_at: datetime
    context: str


@dataclass(frozen=True, slots=True)
class Mark:
    """Why a step was skipped, or who resolved or cancelled it and why."""

    step_id: int
    what: str
    by: str | None
    why: str | None


@dataclass(frozen=True, slots=True)
class TaskStep:
    """A step of a task; `outcome` is None until it ends, `parents` are ids."""

    id: int
    name: str
    kind: str
    state: str
    phase: str | None
    outcome: str | None
    standing: str
    queue: str
    attempt: int
    failures: int
    tries: int | None
    due_at: datetime | None
    worker: str | None
    claimed_at: datetime | None
    finished_at: datetime | None
    error_type: str | None
    message: str | None
    parents: list[int]
    limited_by: str | None = None  # the limit that it waits for
    mark: Mark | None = None  # read only for steps that are shown one by one


TASK: LiteralString = """
select t.task_id::text as id, t.namespace, t.name, t.version, t.state,
       r.phase, r.outcome, t.tenant, r.moving, t.retry_of,
       t.total_steps as total, t.completed_steps as succeeded, t.failed_steps as failed,
       t.cancelled_steps as cancelled,
       c.execution_status, c.recommended_action, c.completion_percentage::float, c.health_status,
       c.earliest_retry_at,
       (select concat_ws(' ', j.actor_kind, j.actor) from holdfast.journal j
         where j.run_id = t.task_id and j.step_id is null order by j.id limit 1) as started_by,
       t.initiator, t.source_system, t.reason, t.tags, t.bypass_steps as skip, t.requested_at as created_at,
       t.started_at, t.finished_at, holdfast.clock() as looked_at, t.context::text
  from flow.tasks t
  join holdfast.run_list r on r.id = t.task_id
 cross join lateral flow.get_task_execution_context(t.task_id) c
 where t.task_id = %(id)s
"""
STEPS: LiteralString = """
select s.id, coalesce(n.name, concat(s.kind, ' ', s.id)) as name, s.kind, s.state,
       s.phase, s.outcome, s.standing, s.queue, s.attempt, s.failures, p.tries, s.due_at, s.lease_owner as worker,
       s.claimed_at, s.finished_at,
       s.error ->> 'type' as error_type, left(holdfast.error_text(s.error), 300) as message, s.limited_by,
       array(select e.step_id from holdfast.edges e where e.next_id = s.id order by e.step_id) as parents
  from (select m.step_id, m.name from holdfast.run_steps m where m.run_id = %(task)s
         order by m.step_id limit %(looked_at)s) n
 cross join lateral (select * from holdfast.step_list l where l.id = n.step_id offset 0) s  -- each by primary key
  join holdfast.steps b on b.id = s.id
  left join lateral holdfast.step_policy(b.policy, s.kind, s.machine, s.tenant) p on true
 order by s.id
"""
MARKS: LiteralString = """
select u.id as step_id, e.what, e.by, e.why
  from unnest(%(ids)s::bigint[]) u (id)
 cross join lateral (
   select 'skipped' as what, null::text as by, n.payload ->> 'why' as why
     from holdfast.notes n where n.step_id = u.id and n.message = 'skipped'
   union all
   select j.event, concat_ws(' ', j.actor_kind, j.actor), j.reason
     from (select * from holdfast.journal j where j.step_id = u.id order by j.id desc limit 1) j
    where j.event in ('resolved', 'cancelled')) e
"""
HISTORY: LiteralString = """
select h.id::text, h.at, h.attempt, h.entry, concat_ws(' ', h.name, h.what) as what, h.from_state, h.to_state,
       h.actor_kind, h.actor, h.message, h.payload::text
  from (
    (select j.id, j.at, j.attempt, 'move' as entry, null::text as name, j.event as what, j.from_state, j.to_state,
            j.actor_kind, j.actor, j.reason as message, j.error as payload
       from holdfast.journal j where j.run_id = %(task)s and j.step_id is null order by j.id desc limit %(limit)s)
    union all
    select y.id, y.at, y.attempt, y.entry, n.name, y.what, y.from_state, y.to_state, y.actor_kind, y.actor, y.message,
           y.payload
      from (select m.step_id, m.name from holdfast.run_steps m where m.run_id = %(task)s
             order by m.step_id limit %(steps)s) n
     cross join lateral (select * from holdfast.step_story t where t.step_id = n.step_id
                          order by t.id desc limit %(limit)s) y) h
 order by h.id desc
 limit %(limit)s
"""
STEP_OF_NAME: LiteralString = (
    "select n.step_id from holdfast.run_steps n where n.run_id = %(task)s and n.name = %(name)s"
)
TASK_OF_STEP: LiteralString = """
select s.run_id from holdfast.steps s join holdfast.runs r on r.id = s.run_id
 where s.id = %(step)s and r.machine = 'flow.task'
"""
IS_TASK: LiteralString = "select r.id from holdfast.runs r where r.id = %(id)s and r.machine = 'flow.task'"


def task(connection: DB, id: UUID) -> TaskDetail:  # noqa: A002 - the word is the same in SQL
    """Read a task, or raise NotFound."""
    task = query_one(connection, Query(TASK, TaskDetail, {"id": id}))
    if task is None:
        raise_if_pruned(connection, id)
        raise NotFound(f"there is no run {id} of a flow", where=str(id), next="find it with `holdfast flow runs`")
    return task


def steps(connection: DB, task: UUID) -> list[TaskStep]:
    """Return the steps of a task in the order of the plan, up to a limit."""
    return query(connection, Query(STEPS, TaskStep, {"task": task, "looked_at": STEPS_LOOKED_AT}))


def marked(connection: DB, steps: Sequence[TaskStep], ids: Collection[int]) -> list[TaskStep]:
    """Return why some of these steps were skipped, resolved or cancelled."""
    marks = {mark.step_id: mark for mark in query(connection, Query(MARKS, Mark, {"ids": list(ids)}))}
    return [replace(step, mark=marks[step.id]) if step.id in marks else step for step in steps]


def history(connection: DB, task: UUID, *, limit: int) -> list[StoryEntry]:
    """Return the latest history of a task and its steps, oldest first."""
    arguments = {"task": task, "limit": limit, "steps": TOLD_OF}
    return query(connection, Query(HISTORY, StoryEntry, arguments))[::-1]


def task_of(connection: DB, id: int | UUID) -> UUID:  # noqa: A002 - the word is the same in SQL
    """Find the task of an id or of a step; raise NotFound for anything that does not belong to a flow."""
    search: Query[UUID] = (
        Query(TASK_OF_STEP, UUID, {"step": min(id, 2**63 - 1)})
        if isinstance(id, int)
        else Query(IS_TASK, UUID, {"id": id})
    )
    row = query_one(connection, search)
    if row is None:
        raise_if_pruned(connection, id)
        what = f"there is no step {id} of a flow's run" if isinstance(id, int) else f"there is no run {id} of a flow"
        raise NotFound(
            what,
            where=str(id),
            next=f"find it with `holdfast flow runs`, or try `holdfast runs show {id}`",
        )
    return row


def step_of(connection: DB, task: UUID, name: str) -> int:
    """Find a step of a task by its name."""
    step_id = query_one(connection, Query(STEP_OF_NAME, int, {"task": task, "name": name}))
    if step_id is None:
        raise NotFound(
            f"run {task} has no step {name}", where=name, next=f"list its steps with `holdfast flow show {task}`"
        )
    return step_id
