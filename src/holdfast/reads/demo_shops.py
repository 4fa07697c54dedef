"""The demo's reads of its shops: what their handlers recorded, and what the journal and the limit's changes say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import class_row

# A handler adds its row when its call begins, and completes it when the shop has answered.
CALLS: LiteralString = """
create table if not exists holdfast_demo.calls (
  batch text not null,
  shop text not null,
  step_id bigint not null,
  attempt int not null,
  began_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  status int
);
create index if not exists calls_of_batch on holdfast_demo.calls (batch, shop);
"""
# Only 429s whose attempts were settled count: the answer of a worker that was killed meanwhile closed nothing.
BEGAN: LiteralString = """
insert into holdfast_demo.calls (batch, shop, step_id, attempt)
values (%(batch)s, %(shop)s, %(step)s, %(attempt)s)
returning (select count(*) from holdfast_demo.calls c
            where c.batch = %(batch)s and c.shop = %(shop)s and c.status = 429
              and exists (select from holdfast.journal j
                           where j.step_id = c.step_id and j.attempt = c.attempt and j.event = 'retried'))
"""
ENDED: LiteralString = """
update holdfast_demo.calls c
   set ended_at = clock_timestamp(), status = %(status)s
 where c.batch = %(batch)s and c.shop = %(shop)s and c.step_id = %(step)s and c.attempt = %(attempt)s
"""
# A call counts as long as its lease: that of a killed worker has no end in the record, and a worker that was cut off
# for longer than its lease may still be calling.
OF_HANDLERS: LiteralString = """
select c.shop, c.began_at, least(c.ended_at, (
         select min(j.at) from holdfast.journal j
          where j.step_id = c.step_id and j.attempt = c.attempt and j.event <> 'claimed')) as ended_at,
       c.status
  from holdfast_demo.calls c
 where c.batch = %(batch)s
"""
OF_LEASES: LiteralString = """
select s.input ->> 'shop' as shop, j.at as began_at,
       (select min(n.at) from holdfast.journal n
         where n.step_id = j.step_id and n.lease_id = j.lease_id and n.event <> 'claimed') as ended_at,
       null::int as status
  from holdfast.steps s
  join holdfast.journal j on j.step_id = s.id and j.event = 'claimed'
 where s.id = any (%(steps)s)
"""
PAUSES: LiteralString = """
select substr(c.name, length(%(family)s)) as shop, c.at as began_at, (c.payload ->> 'until')::timestamptz as ended_at,
       null::int as status
  from holdfast.limit_changes c
 where c.event = 'paused' and c.name = any (%(names)s)
   and c.at >= (select min(s.created_at) from holdfast.steps s where s.id = any (%(steps)s))
"""
DONE: LiteralString = """
select count(*) from holdfast.steps s
  join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
 where s.id = any (%s) and s.finished_at is not null and t.outcome = 'succeeded'
"""


@dataclass(frozen=True, slots=True)
class Span:
    """A time during which a shop was called, held or closed; without an end it still is."""

    shop: str
    began_at: datetime
    ended_at: datetime | None
    status: int | None = None


@dataclass(frozen=True, slots=True)
class ShopFacts:
    """The evidence about the shops: from the database, and from the handlers' own record."""

    done: int
    leases: list[Span]
    pauses: list[Span]
    calls: list[Span]


def make_calls(connection: Connection[Any]) -> None:
    """Create the table of calls; an existing one keeps its rows."""
    connection.execute(CALLS)


def call_began(connection: Connection[Any], **call: Any) -> int:
    """Record that a call began; return how many of the shop's calls were retried because of a 429."""
    (refused,) = connection.execute(BEGAN, call).fetchone() or (0,)
    return int(refused)


def call_ended(connection: Connection[Any], **call: Any) -> None:
    """Record the answer to a call."""
    connection.execute(ENDED, call)


def done(connection: Connection[Any], step_ids: Sequence[int]) -> int:
    """Count the steps that succeeded."""
    (count,) = connection.execute(DONE, [list(step_ids)]).fetchone() or (0,)
    return int(count)


def facts(connection: Connection[Any], batch: str, family: str, shops: Sequence[str], ids: Sequence[int]) -> ShopFacts:
    """Read the evidence."""
    names = [family.replace("*", shop) for shop in shops]
    scope = {"batch": batch, "family": family, "names": names, "steps": list(ids)}
    with connection.cursor(row_factory=class_row(Span)) as cursor:
        leases, pauses, calls = (
            cursor.execute(statement, scope).fetchall() for statement in (OF_LEASES, PAUSES, OF_HANDLERS)
        )
    return ShopFacts(done(connection, ids), leases, pauses, calls)
