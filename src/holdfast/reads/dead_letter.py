"""The dead letter queue: steps that failed for good, listed, grouped by error, and retried or resolved in bulk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, LiteralString
from uuid import UUID

import psycopg
from psycopg import Connection

from holdfast import faces
from holdfast.errors import BadInput, RefusedError
from holdfast.kernel import db
from holdfast.kernel.query import Query, query
from holdfast.reads.run_detail import parse_id

CHUNK = 100  # dead steps per transaction
LOOK_AT = 100_000  # dead steps that one report reads, newest first
Verb = Literal["retry", "resolve"]


@dataclass(frozen=True, slots=True)
class Dead:
    """A dead step."""

    id: str
    kind: str
    queue: str
    tenant: str
    state: str
    phase: str
    outcome: str
    run_id: UUID | None
    attempt: int
    finished_at: datetime
    error_type: str
    message: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Group:
    """Dead steps of one kind with the same error; `fingerprint` is the message without its variable parts."""

    kind: str
    error_type: str
    fingerprint: str
    count: int
    first_at: datetime
    last_at: datetime
    sample_id: str


@dataclass(frozen=True, slots=True)
class DeadPage:
    """One page of dead steps; the next page begins below the id `next`."""

    rows: list[Dead]
    next: str | None


@dataclass(frozen=True, slots=True)
class Report:
    """Dead steps by error; if there are more than one report reads, only the newest."""

    groups: list[Group]
    is_partial: bool


@dataclass(frozen=True, slots=True)
class Scope:
    """A filter of dead steps; None matches everything."""

    kind: str | None = None
    queue: str | None = None
    tenant: str | None = None
    since: datetime | None = None

    def __str__(self) -> str:
        parts = [f"{name} {value}" for name, value in asdict(self).items() if value is not None]
        return ", ".join(parts) or "all kinds, queues and tenants"


@dataclass(frozen=True, slots=True)
class Moved:
    """A dead step that was retried or resolved, and its new state."""

    id: str
    state: str


@dataclass(frozen=True, slots=True)
class OfMachine:
    """A dead step, and the machine that it follows."""

    id: int
    machine: str


LIST: LiteralString = """
select d.id::text, d.kind, d.queue, d.tenant, d.state, 'over' as phase, 'failed' as outcome, d.run_id,
       d.attempt, d.finished_at,
       coalesce(d.error ->> 'type', '') as error_type,
       left(coalesce(holdfast.error_text(d.error), ''), 300) as message, d.error::text
  from holdfast.dead_steps d
 where d.id < %(below)s
   and holdfast.matches(%(kind)s, d.kind)
   and holdfast.matches(%(queue)s, d.queue)
   and holdfast.matches(%(tenant)s, d.tenant)
   and (%(since)s::timestamptz is null or d.finished_at >= %(since)s)
 order by d.id desc limit %(limit)s
"""
# Quoted parts and words with a figure in them differ from step to step.
REPORT: LiteralString = r"""
select g.kind, g.error_type, g.fingerprint, count(*) as count, min(g.finished_at) as first_at,
       max(g.finished_at) as last_at, max(g.id)::text as sample_id
  from (select d.id, d.kind, d.finished_at, left(coalesce(d.error ->> 'type', ''), 200) as error_type,
               regexp_replace(
                 regexp_replace(
                   left(split_part(coalesce(holdfast.error_text(d.error), ''), E'\n', 1), 300),
                   '"[^"]*"|''[^'']*''', '…', 'g'),
                 '\m[0-9a-f-]*[0-9][0-9a-f-]*\M', 'N', 'g') as fingerprint
          from holdfast.dead_steps d
         where holdfast.matches(%(kind)s, d.kind)
           and holdfast.matches(%(queue)s, d.queue)
           and holdfast.matches(%(tenant)s, d.tenant)
           and (%(since)s::timestamptz is null or d.finished_at >= %(since)s)
         order by d.id desc limit %(limit)s) g
 group by g.kind, g.error_type, g.fingerprint
 order by count(*) desc, max(g.finished_at) desc
"""
SNAPSHOT: LiteralString = """
select d.id from holdfast.dead_steps d
 where holdfast.matches(%(kind)s, d.kind)
   and holdfast.matches(%(queue)s, d.queue)
   and holdfast.matches(%(tenant)s, d.tenant)
   and (%(since)s::timestamptz is null or d.finished_at >= %(since)s)
 order by d.id
"""
# Only those that are still dead: a step that somebody has moved meanwhile is left alone.
RETRY: LiteralString = """
select d.id::text, holdfast.retry(d.id::text, %(reason)s) as state
  from (select d.id from holdfast.dead_steps d
         where d.id = any (%(ids)s) and d.machine <> all (%(machines)s) order by d.id) d
"""
# Those whose face has its own way to retry.
OF_MACHINES: LiteralString = """
select d.id, d.machine from holdfast.dead_steps d
 where d.id = any (%(ids)s) and d.machine = any (%(machines)s) order by d.id
"""
RESOLVE: LiteralString = """
select d.id::text, holdfast.resolve(d.id::text, %(reason)s) as state
  from (select d.id from holdfast.dead_steps d where d.id = any (%(ids)s) order by d.id) d
"""


def listed(scope: Scope, *, limit: int, below: int = 2**63 - 1) -> Query[Dead]:
    """Return the query for dead steps, newest first."""
    return Query(LIST, Dead, {**asdict(scope), "limit": limit, "below": below})


def page(connection: Connection[Any], scope: Scope, *, limit: int, below: str | None) -> DeadPage:
    """Return one page of dead steps, newest first, below the last page's id."""
    begin = 2**63 - 1 if below is None else parse_id(below)
    if not isinstance(begin, int):
        raise BadInput(
            f"the dead letter queue lists steps, got the run {below}",
            where=below,
            next="use a step's id, which is a number",
        )
    rows = query(connection, listed(scope, limit=limit + 1, below=min(begin, 2**63 - 1)))
    return DeadPage(rows[:limit], rows[limit - 1].id if len(rows) > limit else None)


def by_fault(scope: Scope) -> Query[Group]:
    """Return the query for the errors of dead steps, the most frequent first."""
    return Query(REPORT, Group, {**asdict(scope), "limit": LOOK_AT})


def report(connection: Connection[Any], scope: Scope) -> Report:
    """Group dead steps by kind and error."""
    groups = query(connection, by_fault(scope))
    return Report(groups, sum(group.count for group in groups) == LOOK_AT)


def snapshot(scope: Scope) -> Query[int]:
    """Return the query for the ids of all dead steps, in order."""
    return Query(SNAPSHOT, int, asdict(scope))


def deal_with(connection: Connection[Any], verb: Verb, ids: Sequence[int], reason: str | None) -> list[Moved]:
    """Retry or resolve the steps that are still dead, in one transaction; if one is refused, none is moved."""
    if verb == "resolve":
        return query(connection, Query(RESOLVE, Moved, {"ids": list(ids), "reason": reason}))
    retries = faces.retries()
    arguments = {"ids": list(ids), "reason": reason, "machines": list(retries)}
    if not retries:
        return query(connection, Query(RETRY, Moved, arguments))
    with connection.transaction():
        moved = query(connection, Query(RETRY, Moved, arguments))
        for step in query(connection, Query(OF_MACHINES, OfMachine, arguments)):
            (state,) = db.run(connection, retries[step.machine](str(step.id), reason))
            moved.append(Moved(str(step.id), state))
    return moved


@dataclass
class Tally:
    """The progress of a bulk action."""

    done: int = 0
    left_alone: int = 0  # no longer dead: somebody else moved it
    refusals: list[RefusedError] = field(default_factory=list)


def deal_with_all(
    connection: Connection[Any], verb: Verb, ids: Sequence[int], reason: str | None
) -> Iterator[tuple[int, Tally]]:
    """Retry or resolve the steps that are still dead, in chunks; yield the progress after each."""
    tally = Tally()
    for begin in range(0, len(ids), CHUNK):
        _deal_with_chunk(connection, verb, ids[begin : begin + CHUNK], reason, tally)
        yield min(begin + CHUNK, len(ids)), tally


def _deal_with_chunk(
    connection: Connection[Any], verb: Verb, ids: Sequence[int], reason: str | None, tally: Tally
) -> None:
    try:
        moved = deal_with(connection, verb, ids, reason)
    except (RefusedError, psycopg.errors.DeadlockDetected) as error:
        if len(ids) > 1:  # one of them failed the whole chunk, so try each alone
            for one in ids:
                _deal_with_chunk(connection, verb, [one], reason, tally)
            return
        if not isinstance(error, RefusedError):
            raise
        tally.refusals.append(error)
        return
    tally.done += len(moved)
    tally.left_alone += len(ids) - len(moved)
