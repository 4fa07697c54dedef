"""The demo's reads of its tasks and their effects, and the table of the effects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString, NamedTuple
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row, namedtuple_row

# No key over step_id: the table must be able to hold duplicates, which the demo claims do not happen.
EFFECTS: LiteralString = """
create schema if not exists holdfast_demo;
create table if not exists holdfast_demo.effects (
  step_id bigint not null,
  attempt int not null,
  worker text not null,
  at timestamptz not null default clock_timestamp()
);
create index if not exists effects_of_step on holdfast_demo.effects (step_id);
"""
# `taken`: the leases of the killed worker. A rescue is when the system ends one of them.
EVIDENCE: LiteralString = """
with taken as materialized (
  select j.lease_id
    from holdfast.journal j
   where j.step_id > %(after)s and j.step_id <= %(until)s and j.event = 'claimed' and j.actor = %(killed)s),
moves as (
  select j.step_id,
         count(*) filter (where j.event = 'claimed') as claims,
         count(*) filter (where j.event = 'expired' and t.lease_id is not null) as rescues,
         count(*) filter (where j.event = 'succeeded') as successes,
         count(*) filter (where j.event = 'failed') as failures
    from holdfast.journal j
    left join taken t on t.lease_id = j.lease_id
   where j.step_id > %(after)s and j.step_id <= %(until)s
   group by j.step_id),
effects as (
  select e.step_id, count(*) as effects
    from holdfast_demo.effects e
   where e.step_id > %(after)s and e.step_id <= %(until)s
   group by e.step_id)
select s.id as step_id, s.kind, coalesce(m.claims, 0) as claims, coalesce(m.rescues, 0) as rescues,
       coalesce(m.successes, 0) as successes, coalesce(m.failures, 0) as failures, coalesce(e.effects, 0) as effects
  from holdfast.steps s
  left join moves m on m.step_id = s.id
  left join effects e on e.step_id = s.id
 where s.queue = %(queue)s and s.id > %(after)s and s.id <= %(until)s
 order by s.id
"""
STANDING: LiteralString = """
select s.kind, count(*) as total,
       count(*) filter (where s.lease_id is not null) as running,
       count(*) filter (where t.outcome = 'succeeded') as done,
       count(*) filter (where s.failures > 0 and t.outcome is distinct from 'failed') as retried,
       count(*) filter (where t.outcome = 'failed') as failed
  from holdfast.steps s
  join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
 where s.queue = %(queue)s and s.id > %(after)s and s.id <= %(until)s
 group by s.kind
"""
HELD: LiteralString = """
select s.id
  from holdfast.steps s
 where s.queue = %(queue)s and s.id > %(after)s and s.id <= %(until)s and s.lease_owner = %(worker)s
"""
STORY: LiteralString = """
select s.created_at as at, 'created' as event, t.state as to_state, '' as actor, 0 as lease_id, null as error
  from holdfast.steps s
  join holdfast.machine_states t on t.machine = s.machine and t.is_initial
 where s.id = %(step)s
union all
(select j.at, j.event, j.to_state, j.actor, j.lease_id, j.error ->> 'type'
   from holdfast.journal j where j.step_id = %(step)s order by j.id)
"""
STUCK: LiteralString = """
select s.id from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
 where n.run_id = %s and n.name = 'clear_customs' and s.finished_at is not null and s.last_event = 'failed'
"""
ORDER: LiteralString = """
select count(*) filter (where n.name like 'ship[%%' and j.successes = 1)::int as parcels,
       coalesce(sum(j.retries) filter (where n.name = 'charge'), 0)::int as retried,
       coalesce(max(j.waited) filter (where n.name = 'book_carrier'), 0)::float as waited,
       coalesce(sum(j.resolutions), 0)::int as resolved,
       count(*) filter (where j.successes > 1)::int as twice
  from holdfast.run_steps n
 cross join lateral (
         select count(*) filter (where m.event = 'succeeded') as successes,
                count(*) filter (where m.event = 'retried') as retries,
                count(*) filter (where m.event = 'resolved' and m.reason = %(reason)s) as resolutions,
                extract(epoch from max(m.next_at - m.at) filter (where m.event = 'retried')) as waited
           from (select e.event, e.reason, e.at, lead(e.at) over (order by e.id) as next_at
                   from holdfast.journal e where e.step_id = n.step_id) m) j
 where n.run_id = %(run)s
"""
TICKS: LiteralString = """
select count(*)::int as ticks, coalesce(extract(epoch from max(t.tick_at) - min(t.tick_at))::int + 1, 0) as seconds,
       (select count(*)::int from holdfast.steps s where s.kind = %(kind)s and s.id > %(after)s) as tasks
  from holdfast.schedule_ticks t
 where t.name = %(queue)s and t.outcome = 'started'
"""
EFFECT: LiteralString = "insert into holdfast_demo.effects (step_id, attempt, worker) values (%s, %s, %s)"
LAST_STEP: LiteralString = "select coalesce(max(s.id), 0) from holdfast.steps s"
WORKER: LiteralString = "select w.worker from holdfast.workers w where w.queue = %s and starts_with(w.worker, %s)"


@dataclass(frozen=True, slots=True)
class Load:
    """The started tasks of a queue, whose step ids are after `after` and up to `until`."""

    queue: str
    asked: int
    hopeless: int
    after: int
    until: int

    def scope(self) -> dict[str, Any]:
        """Return the parameters of statements about its steps."""
        return {"queue": self.queue, "after": self.after, "until": self.until}


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The evidence about one step, from the journal and the effects."""

    step_id: int
    kind: str
    claims: int
    rescues: int
    successes: int
    failures: int
    effects: int


@dataclass(frozen=True, slots=True)
class Standing:
    """The counts of the tasks of one kind, or of all."""

    kind: str
    total: int
    running: int
    done: int
    retried: int
    failed: int

    @property
    def queued(self) -> int:
        """How many wait for a claim, for the first time or again."""
        return self.total - self.running - self.over

    @property
    def over(self) -> int:
        """How many have ended."""
        return self.done + self.failed


class Move(NamedTuple):
    """A move in the story."""

    at: datetime
    event: str
    to_state: str
    actor: str
    lease_id: int
    error: str | None


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """The journal's evidence about the order."""

    parcels: int
    retried: int
    waited: float
    resolved: int
    twice: int


@dataclass(frozen=True, slots=True)
class TickFacts:
    """The ticks of the demo's schedule, over how many seconds, and the tasks that they started."""

    ticks: int
    seconds: int
    tasks: int


def make_effects(connection: Connection[Any]) -> None:
    """Create the table of effects; an existing one keeps its rows."""
    connection.execute(EFFECTS)


def last_step(connection: Connection[Any]) -> int:
    """Return the highest step id."""
    (number,) = connection.execute(LAST_STEP).fetchone() or (0,)
    return int(number)


def evidence(connection: Connection[Any], load: Load, killed: str | None) -> list[StepRecord]:
    """Read the evidence; `killed` is the name of the worker that was killed."""
    with connection.cursor(row_factory=class_row(StepRecord)) as cursor:
        return cursor.execute(EVIDENCE, {**load.scope(), "killed": killed}).fetchall()


def standings(connection: Connection[Any], load: Load) -> list[Standing]:
    """Read the counts per kind."""
    with connection.cursor(row_factory=class_row(Standing)) as cursor:
        return sorted(cursor.execute(STANDING, load.scope()).fetchall(), key=lambda kind: (-kind.total, kind.kind))


def added(standings: Sequence[Standing]) -> Standing:
    """Add them up."""
    columns = ("total", "running", "done", "retried", "failed")
    return Standing("all", *(sum(getattr(kind, column) for kind in standings) for column in columns))


def held_by(connection: Connection[Any], load: Load, worker: str) -> set[int]:
    """Return the steps that a worker holds."""
    return {row[0] for row in connection.execute(HELD, {**load.scope(), "worker": worker})}


def worker_named(connection: Connection[Any], load: Load, name: str) -> str | None:
    """Return a worker's full name by the name it was given; None before it has registered."""
    row = connection.execute(WORKER, [load.queue, f"{name}/"]).fetchone()
    return None if row is None else str(row[0])


def moves(connection: Connection[Any], step_id: int) -> list[Move]:
    """Read the moves of a step, with its start as the first."""
    with connection.cursor(row_factory=namedtuple_row) as cursor:
        return [Move._make(row) for row in cursor.execute(STORY, {"step": step_id})]


def stuck_step(connection: Connection[Any], run_id: UUID) -> int | None:
    """Find the order's step at customs, once it has failed for good."""
    row = connection.execute(STUCK, [run_id]).fetchone()
    return None if row is None else int(row[0])


def order_facts(connection: Connection[Any], run_id: UUID, reason: str) -> OrderFacts:
    """Read the journal's evidence about the order; `reason` is the one given with the resolve."""
    with connection.cursor(row_factory=class_row(OrderFacts)) as cursor:
        (facts,) = cursor.execute(ORDER, {"run": run_id, "reason": reason}).fetchall()
    return facts


def tick_facts(connection: Connection[Any], load: Load, kind: str) -> TickFacts:
    """Read what became of the ticks of the demo's schedule, which has the name of its queue."""
    with connection.cursor(row_factory=class_row(TickFacts)) as cursor:
        (facts,) = cursor.execute(TICKS, {"queue": load.queue, "after": load.after, "kind": kind}).fetchall()
    return facts
