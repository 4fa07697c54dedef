"""Runs and plain tasks in one list, newest first, page by page.

Ids are ordered by time, so a page walks both primary keys down from where the last one ended, and merges them. It reads
a bounded number of rows: if a filter leaves too few of them, the page ends early and reports how far it got.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, LiteralString, Protocol, TypeVar
from uuid import UUID

from psycopg import Connection

from holdfast.errors import BadInput
from holdfast.kernel.query import Query, query, query_one
from holdfast.reads.run_detail import parse_id

LOOK_AT = 50_000  # rows of each table that one page may read
WIDEST = 5_000  # of them at once; with more the planner would read the whole table
FEW = 10_000  # up to this many held or parked steps are found by their own index
LAST_STEP = 2**63 - 1
LAST_RUN = UUID(int=2**128 - 1)
STANDINGS = (
    "over", "no handler", "no move", "limited", "upstream paused", "breaker open", "parked",
    "held", "waiting", "later", "due", "not admitted",
    "under way", "being cancelled", "being reopened",
)  # fmt: skip


class Dated(Protocol):
    """The kinds of rows that a list can hold."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def created_at(self) -> datetime:
        """When it was started."""


Row = TypeVar("Row")
Listed = TypeVar("Listed", bound=Dated)


@dataclass(frozen=True, slots=True)
class Asked:
    """A run, or a step without one; `what` is the label of its machine."""

    id: str
    what: str
    name: str
    state: str
    phase: str | None
    outcome: str | None
    standing: str
    queue: str | None
    tenant: str
    attempt: int | None
    total: int | None
    succeeded: int | None
    failed: int | None
    created_at: datetime
    finished_at: datetime | None
    error: str | None


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a list; None and False match everything."""

    states: list[str] | None = None
    name: str | None = None
    queue: str | None = None
    tenant: str | None = None
    since: datetime | None = None
    is_failed: bool = False


@dataclass(frozen=True, slots=True)
class Position:
    """The start of a page: below this step and this run."""

    step: int = LAST_STEP
    run: UUID = LAST_RUN

    def __str__(self) -> str:
        ends = [
            *([str(self.step)] if self.step != LAST_STEP else []),
            *([str(self.run)] if self.run != LAST_RUN else []),
        ]
        return ",".join(ends)


@dataclass(frozen=True, slots=True)
class Page:
    """One page; `next` is where the following page begins, `looked_until` how far a page that ended early got."""

    rows: list[Asked]
    next: Position | None
    looked_until: datetime | None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A candidate row of the list."""

    id: Any
    at: datetime


@dataclass(frozen=True, slots=True)
class Seen(Generic[Row]):
    """A row that a walk found; without one the walk stopped here."""

    at: datetime
    id: Any
    row: Row | None


STEP_IDS: LiteralString = """
select s.id, s.created_at as at from holdfast.steps s where s.id < %(below)s order by s.id desc limit %(size)s
"""
DEAD_IDS: LiteralString = """
select s.id, s.created_at as at from holdfast.dead_steps d join holdfast.steps s on s.id = d.id
 where d.id < %(below)s order by d.id desc limit %(size)s
"""
RUN_IDS: LiteralString = """
select r.id, r.created_at as at from holdfast.runs r where r.id < %(below)s order by r.id desc limit %(size)s
"""
# By the indexes of held and of parked steps, in their order, not by id.
HELD_IDS: LiteralString = """
select s.id, s.created_at as at from holdfast.steps s
 where s.lease_until is not null and s.id < %(below)s order by s.lease_until limit %(size)s
"""
PARKED_IDS: LiteralString = """
select s.id, s.created_at as at from holdfast.steps s
 where s.parked_for is not null and s.id < %(below)s
 order by s.queue, s.parked_for, s.kind, s.tenant limit %(size)s
"""
BY_STANDING = {"held": HELD_IDS, "no handler": PARKED_IDS, "no move": PARKED_IDS, "parked": PARKED_IDS}
TASKS: LiteralString = """
select s.id::text, s.label as what, s.kind as name, s.state, s.phase, s.outcome, s.standing, s.queue, s.tenant,
       s.attempt, null::int as total, null::int as succeeded, null::int as failed, s.created_at, s.finished_at,
       left(holdfast.error_text(s.error), 300) as error
  from holdfast.step_list s
 where s.id = any (%(ids)s) and s.run_id is null
   and (%(states)s::text[] is null or s.state = any (%(states)s) or s.standing = any (%(states)s))
   and holdfast.matches(%(name)s, s.kind)
   and holdfast.matches(%(queue)s, s.queue)
   and holdfast.matches(%(tenant)s, s.tenant)
   and (%(since)s::timestamptz is null or s.created_at >= %(since)s)
 order by s.id desc
"""
RUNS: LiteralString = """
select r.id::text, r.label as what, r.name, r.state, r.phase, r.outcome, p.standing, null::text as queue, r.tenant,
       null::int as attempt, r.total, r.succeeded, r.failed, r.created_at, r.finished_at, null::text as error
  from holdfast.run_list r,
  lateral (select case when r.finished_at is null and r.halt = 'stopped' then 'being stopped'
                       when r.moving is not null then 'being ' || r.moving
                       when r.finished_at is not null then 'over' when r.phase = 'shut' then 'not admitted'
                       when r.halt is not null then 'paused'
                       when r.live = 0 then 'waiting' else 'under way' end as standing) p
 where r.id = any (%(ids)s) and %(queue)s::text is null
   and (%(states)s::text[] is null or r.state = any (%(states)s) or p.standing = any (%(states)s))
   and holdfast.matches(%(name)s, r.name)
   and holdfast.matches(%(tenant)s, r.tenant)
   and (%(since)s::timestamptz is null or r.created_at >= %(since)s)
   and (not %(is_failed)s or r.failed > 0 or r.outcome = 'failed')
 order by r.id desc
"""
KNOWN_STATES: LiteralString = "select distinct state from holdfast.machine_states order by state"
STEP_AT: LiteralString = """
select s.id, s.created_at as at from holdfast.steps s where s.id <= %(step)s order by s.id desc limit 1
"""
# The last step up to a point in time, by bisection: ids are ordered by time, and created_at has no index.
STEP_BY_TIME: LiteralString = """
with recursive halves (low, high) as (
  select coalesce((select min(id) from holdfast.steps), 0), coalesce((select max(id) from holdfast.steps), 0) + 1
  union all
  select case when s.created_at <= %(moment)s then m.id else h.low end,
         case when s.created_at <= %(moment)s then h.high else m.id end
    from halves h, lateral (select (h.low + h.high) / 2 as id) m,
         lateral (select n.created_at from holdfast.steps n where n.id >= m.id order by n.id limit 1) s
   where h.high - h.low > 1)
select high from halves order by high - low limit 1
"""


def newest(connection: Connection[Any], wanted: Wanted, begin: Position, *, limit: int) -> Page:
    """Return one page of the list."""

    def rows_of(text: LiteralString) -> Callable[[list[Any]], list[Asked]]:
        return lambda ids: query(connection, Query(text, Asked, {"ids": ids, **asdict(wanted)}))

    source = _steps_source(connection, wanted, begin.step)
    streams = [walk(connection, source, rows_of(TASKS), begin.step, first=limit, since=wanted.since)]
    if wanted.queue is None:  # a run has no queue, only its steps have
        streams.append(walk(connection, RUN_IDS, rows_of(RUNS), begin.run, first=limit, since=wanted.since))
    rows: list[Asked] = []
    step, run = begin.step, begin.run
    for seen in heapq.merge(*streams, key=lambda seen: seen.at, reverse=True):
        if seen.row is not None and len(rows) == limit:
            return Page(rows, Position(step, run), None)
        step, run = (seen.id, run) if isinstance(seen.id, int) else (step, seen.id)
        if seen.row is None:
            return Page(rows, Position(step, run), seen.at)
        rows.append(seen.row)
    return Page(rows, None, None)


def position_of(connection: Connection[Any], text: str | None) -> Position:
    """Find where a page begins, from the last page's `next` or from one id; None is the beginning."""
    if text is None:
        return Position()
    ids = [parse_id(part) for part in text.split(",", 1)]
    steps, runs = [i for i in ids if isinstance(i, int)], [i for i in ids if isinstance(i, UUID)]
    if len(steps) > 1 or len(runs) > 1:
        raise BadInput(
            f"the page must begin at an id or a `next`, got {text!r}",
            where=text,
            next="use one id, or the last page's `next`",
        )
    return position(connection, step=next(iter(steps), None), run=next(iter(runs), None))


def position(connection: Connection[Any], *, step: int | None, run: UUID | None) -> Position:
    """Find where a page begins from one id or from both; if one is missing, it is found by time."""
    if step is not None and run is not None:
        return Position(step, run)
    if step is not None:
        at = query_one(connection, Query(STEP_AT, Candidate, {"step": min(step, LAST_STEP)}))
        return Position(step, LAST_RUN if at is None else _after(at.at))
    if run is None:
        return Position()
    moment = datetime.fromtimestamp((run.int >> 80) / 1000, tz=UTC)
    ids = query(connection, Query(STEP_BY_TIME, int, {"moment": moment}))
    return Position(ids[0], run)


def check_states(connection: Connection[Any], states: Sequence[str] | None) -> list[str] | None:
    """Return the words that `Wanted.states` can hold, which are states and standings; raise for others."""
    if not states:
        return None
    known = [*query(connection, Query(KNOWN_STATES, str, {})), *STANDINGS]
    if odd := [state for state in states if state not in known]:
        raise BadInput(f"there is no state {odd[0]!r}", where="state", next=f"use one of: {', '.join(known)}")
    return list(states)


def _steps_source(connection: Connection[Any], wanted: Wanted, below: int) -> LiteralString:
    if wanted.is_failed:
        return DEAD_IDS
    few = BY_STANDING.get(wanted.states[0]) if wanted.states is not None and len(wanted.states) == 1 else None
    if few is not None and len(_candidates(connection, few, below, FEW + 1)) <= FEW:
        return few
    return STEP_IDS


def _candidates(connection: Connection[Any], source: LiteralString, below: Any, size: int) -> list[Candidate]:
    return query(connection, Query(source, Candidate, {"below": below, "size": size}))


def walk(
    connection: Connection[Any],
    source: LiteralString,
    rows_of: Callable[[list[Any]], list[Listed]],
    below: Any,
    *,
    first: int,
    since: datetime | None,
) -> Iterator[Seen[Listed]]:
    """Walk down the ids in growing windows, and yield the matching rows."""
    in_order = source not in {HELD_IDS, PARKED_IDS}
    size, left = (min(2 * first, WIDEST), LOOK_AT) if in_order else (FEW, FEW)
    as_id: Callable[[str], Any] = UUID if source == RUN_IDS else int
    while True:
        window = _candidates(connection, source, below, size)
        if window:
            yield from (Seen(row.created_at, as_id(row.id), row) for row in rows_of([c.id for c in window]))
        if len(window) < size or not in_order or (since is not None and window[-1].at < since):
            return
        below, left = window[-1].id, left - len(window)
        if left <= 0:
            yield Seen(window[-1].at, below, None)
            return
        size = min(size * 10, WIDEST, left)


def _after(moment: datetime) -> UUID:
    """Return the lowest run id of the millisecond after `moment`."""
    return UUID(int=(int((moment + timedelta(milliseconds=1)).timestamp() * 1000) << 80))
