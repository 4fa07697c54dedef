"""One run or step in detail: its state, why it waits, its history, and the possible actions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput, NotFound
from holdfast.kernel.query import Query, query, query_one
from holdfast.reads.retention import raise_if_pruned

STEPS_LOOKED_AT = 10_000  # steps of one run that are read for its groups; the run's own counts are exact


@dataclass(frozen=True, slots=True)
class StepDetail:
    """A step with everything that explains its state, including its queue, its workers and its retry policy."""

    what: str  # the label of its machine: "task", "step"
    id: str
    run_id: UUID | None
    step_name: str | None
    kind: str
    machine: str
    state: str
    phase: str | None
    outcome: str | None
    standing: str
    queue: str
    tenant: str
    priority: int
    attempt: int
    failures: int
    tries: int | None
    waits: int
    due_at: datetime | None
    parked_for: str | None
    limited_by: str | None  # the limit that it waits for, by name; until when, where time opens it
    limited_until: datetime | None
    limit_held: int | None
    limit_concurrency: int | None
    limit_holders: list[int]  # three at most
    lease_owner: str | None
    lease_until: datetime | None
    owner_seen_at: datetime | None  # when the worker that holds it was last seen
    created_at: datetime
    claimed_at: datetime | None
    finished_at: datetime | None
    queue_paused_at: datetime | None
    queue_paused_by: str | None
    queue_pause_reason: str | None
    live_workers: int
    looked_at: datetime
    input: str
    cursor: str | None
    result: str | None
    error: str | None


@dataclass(frozen=True, slots=True)
class RunDetail:
    """A run with its counts."""

    what: str
    id: str
    name: str
    machine: str
    state: str
    phase: str | None
    outcome: str | None
    tenant: str
    moving: str | None
    of_run: UUID | None
    total: int
    live: int
    succeeded: int
    failed: int
    cancelled: int
    waiting: int
    unadmitted: int
    to_admit: int
    window_size: int | None
    halt: str | None
    halted_at: datetime | None
    halted_by: str | None
    halt_reason: str | None
    created_at: datetime
    queued_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    looked_at: datetime
    input: str


@dataclass(frozen=True, slots=True)
class RunStep:
    """A step as shown under its run; `in_group` is how many of the steps read are in its state."""

    id: str
    name: str | None
    kind: str
    state: str
    phase: str | None
    outcome: str | None
    standing: str
    attempt: int
    finished_at: datetime | None
    error: str | None
    in_group: int


@dataclass(frozen=True, slots=True)
class StoryEntry:
    """A move or a note."""

    id: str
    at: datetime
    attempt: int | None
    entry: str
    what: str
    from_state: str | None
    to_state: str | None
    actor_kind: str | None
    actor: str | None
    message: str | None
    payload: str | None


@dataclass(frozen=True, slots=True)
class Parent:
    """A step that another waits for."""

    id: str
    name: str | None
    kind: str
    state: str
    phase: str | None
    outcome: str | None


STEP: LiteralString = """
select s.label as what, s.id::text, s.run_id, n.name as step_name, s.kind, s.machine, s.state, s.phase, s.outcome,
       s.standing, s.queue, s.tenant, s.priority, s.attempt, s.failures, p.tries, s.waits, s.due_at, s.parked_for,
       s.limited_by, s.limited_until, l.held as limit_held, l.concurrency as limit_concurrency,
       array(select o.id from holdfast.steps o
              where l.id is not null and o.lease_until is not null and l.id = any (o.holds)
              order by o.id limit 3) as limit_holders,
       s.lease_owner, s.lease_until,
       (select max(w.seen_at) from holdfast.workers w where w.worker = s.lease_owner) as owner_seen_at,
       s.created_at, s.claimed_at, s.finished_at, q.paused_at as queue_paused_at,
       q.paused_by as queue_paused_by, q.pause_reason as queue_pause_reason,
       holdfast.live_workers(s.queue, s.kind, s.tenant) as live_workers,
       c.now as looked_at, s.input::text, s.cursor::text, s.result::text, s.error::text
  from (select holdfast.clock() as now) c,
       holdfast.step_list s
  join holdfast.steps b on b.id = s.id
  left join lateral holdfast.step_policy(b.policy, s.kind, s.machine, s.tenant) p on true
  left join lateral (
    select h.id, h.held, r.concurrency from holdfast.limit_states h
      left join lateral holdfast.limit_rule(h.name, h.tenant) r on true
     where b.parked_for = 'limit' and h.id = b.limited_by) l on true
  left join holdfast.queues q on q.queue = s.queue
  left join holdfast.run_steps n on n.run_id = s.run_id and n.step_id = s.id
 where s.id = %(id)s
"""
RUN: LiteralString = """
select l.label as what, r.id::text, r.name, r.machine, r.state, l.phase, l.outcome, r.tenant, r.moving, r.of_run,
       r.total, r.live, r.succeeded, r.failed, r.cancelled, l.waiting, l.unadmitted, r.to_admit, r.window_size,
       r.halt, r.halted_at, r.halted_by, r.halt_reason, r.created_at, l.queued_at, r.started_at, r.finished_at,
       holdfast.clock() as looked_at, r.input::text
  from holdfast.runs r
  join holdfast.run_list l on l.id = r.id
 where r.id = %(id)s
"""
# Failed steps first, then those that have not ended, then the rest; some of each state.
RUN_STEPS: LiteralString = """
select g.id, g.name, g.kind, g.state, g.phase, g.outcome, g.standing, g.attempt, g.finished_at, g.error, g.in_group
  from (
  select s.id::text, n.name, s.kind, s.state, s.phase, s.outcome, s.standing, s.attempt, s.finished_at,
         left(holdfast.error_text(s.error), 300) as error,
         count(*) over (partition by s.state, s.finished_at is null) as in_group,
         row_number() over (partition by s.state, s.finished_at is null order by s.id) as no
    from (select m.step_id, m.name from holdfast.run_steps m where m.run_id = %(run)s
           order by m.step_id limit %(looked_at)s) n
   cross join lateral (select * from holdfast.step_list l where l.id = n.step_id offset 0) s) g  -- each by primary key
 where g.no <= %(each)s
 order by g.outcome is not distinct from 'failed' desc, g.finished_at is null desc, g.state, g.no
"""
STEP_STORY: LiteralString = """
select e.id::text, e.at, e.attempt, e.entry, e.what, e.from_state, e.to_state, e.actor_kind, e.actor, e.message,
       e.payload::text
  from holdfast.step_story e where e.step_id = %(id)s order by e.id desc limit %(limit)s
"""
LAST_STEP_MOVE: LiteralString = """
select j.id::text, j.at, j.attempt, 'move' as entry, j.event as what, j.from_state, j.to_state, j.actor_kind, j.actor,
       j.reason as message, null::text as payload
  from holdfast.journal j where j.step_id = %(id)s order by j.id desc limit %(limit)s
"""
RUN_STORY: LiteralString = """
select j.id::text, j.at, j.attempt, 'move' as entry, j.event as what, j.from_state, j.to_state, j.actor_kind, j.actor,
       j.reason as message, j.error::text as payload
  from holdfast.journal j where j.run_id = %(id)s and j.step_id is null order by j.id desc limit %(limit)s
"""
PRUNED_STORY: LiteralString = """
select e.id::text, e.at, e.attempt, e.kind as entry, e.event as what, e.from_state, e.to_state, e.actor_kind, e.actor,
       nullif(concat_ws(': ', 'step ' || e.step, e.message), '') as message, e.payload::text
  from holdfast.run_events(%(id)s) e order by e.id desc limit %(limit)s
"""
PARENTS: LiteralString = """
select s.id::text, n.name, s.kind, s.state, s.phase, s.outcome
  from holdfast.edges e
  join holdfast.step_list s on s.id = e.step_id
  left join holdfast.run_steps n on n.run_id = s.run_id and n.step_id = s.id
 where e.next_id = %(id)s and holdfast.is_success(s.outcome) is not true
 order by s.id limit %(limit)s
"""
MANUAL_EVENTS: LiteralString = """
select m.event from holdfast.machine_moves m
 where m.machine = %(machine)s and m.from_state = %(state)s and m.event in ('cancelled', 'reopened', 'resolved')
   and 'user' = any (m.actors) and (m.event <> 'reopened' or %(is_retryable)s)
 order by m.event
"""
RECENT: LiteralString = """
(select s.id::text from (select * from holdfast.steps order by id desc limit 1000) s where s.run_id is null limit 20)
union all
(select r.id::text from holdfast.runs r order by r.id desc limit 20)
"""


def parse_id(text: str) -> int | UUID:
    """Parse an id: a step's number or a run's UUID."""
    if re.fullmatch(r"[0-9]{1,19}", text):
        return int(text)
    if re.fullmatch(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", text):
        return UUID(text)
    raise BadInput(
        f"id must be a number or a UUID, got {text!r}", where=text, next="find the id with `holdfast runs list`"
    )


def step(connection: Connection[Any], id: int) -> StepDetail:  # noqa: A002 - the word is the same in SQL
    """Read a step, or raise NotFound or Pruned."""
    step = query_one(connection, Query(STEP, StepDetail, {"id": id})) if id < 2**63 else None
    if step is None:
        raise_if_pruned(connection, id)
        raise NotFound(f"there is no step {id}", where=str(id), next="find the id with `holdfast runs list`")
    return step


def run(connection: Connection[Any], id: UUID) -> RunDetail:  # noqa: A002 - the word is the same in SQL
    """Read a run, or raise NotFound or Pruned."""
    run = query_one(connection, Query(RUN, RunDetail, {"id": id}))
    if run is None:
        raise_if_pruned(connection, id)
        raise NotFound(f"there is no run {id}", where=str(id), next="find the id with `holdfast runs list`")
    return run


def run_steps(connection: Connection[Any], id: UUID, *, each: int) -> list[RunStep]:  # noqa: A002
    """Return some steps of a run in each state, the failed first."""
    return query(connection, Query(RUN_STEPS, RunStep, {"run": id, "each": each, "looked_at": STEPS_LOOKED_AT}))


def story(connection: Connection[Any], id: int | UUID, *, limit: int, is_gone: bool = False) -> list[StoryEntry]:  # noqa: A002
    """Return the latest history of a step or of a run itself, oldest first."""
    text = STEP_STORY if isinstance(id, int) else PRUNED_STORY if is_gone else RUN_STORY
    return query(connection, Query(text, StoryEntry, {"id": id, "limit": limit}))[::-1]


def ended_by(connection: Connection[Any], id: int | UUID) -> StoryEntry | None:  # noqa: A002
    """Return the last move of a step or of a run itself: who ended it, and the reason given."""
    text = LAST_STEP_MOVE if isinstance(id, int) else RUN_STORY
    return query_one(connection, Query(text, StoryEntry, {"id": id, "limit": 1}))


def parents(connection: Connection[Any], id: int, *, limit: int = 5) -> list[Parent]:  # noqa: A002
    """Return the steps that a step still waits for."""
    return query(connection, Query(PARENTS, Parent, {"id": id, "limit": limit}))


def manual_events(connection: Connection[Any], subject: StepDetail | RunDetail) -> list[str]:
    """List the events that a person may cause now, according to the machine."""
    is_retryable = subject.finished_at is not None and (isinstance(subject, StepDetail) or subject.failed > 0)
    arguments = {"machine": subject.machine, "state": subject.state, "is_retryable": is_retryable}
    return query(connection, Query(MANUAL_EVENTS, str, arguments))


def recent_ids() -> Query[str]:
    """Return the query for recent ids, for completion."""
    return Query(RECENT, str, {})
