"""The demo's labels: the table that the carriers' printers write to, and what became of the steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import class_row

# A row per label, written in the transaction of its call.
LABELS: LiteralString = """
create table if not exists holdfast_demo.labels (
  batch text not null, call text not null, carrier text not null, step_id bigint not null);
create index if not exists labels_of_batch on holdfast_demo.labels (batch);
"""
PRINTED: LiteralString = """
insert into holdfast_demo.labels (batch, call, carrier, step_id)
select %(batch)s, %(call)s, u.carrier, u.step_id
  from unnest(%(carriers)s::text[], %(steps)s::bigint[]) u (carrier, step_id)
"""
FACTS: LiteralString = """
select count(distinct l.step_id)::int as printed,
       (count(*) - count(distinct l.step_id))::int as twice,
       count(distinct l.call)::int as calls,
       coalesce((select max(c.size) from (select count(*)::int as size from holdfast_demo.labels n
                                           where n.batch = %(batch)s group by n.call) c), 0) as largest,
       (select count(*)::int from (select from holdfast_demo.labels n where n.batch = %(batch)s
                                    group by n.call having count(distinct n.carrier) > 1) c) as mixed,
       (select count(*)::int from holdfast.steps s
          join holdfast.machine_states t on t.machine = s.machine and t.state = s.state
         where s.queue = %(batch)s and s.kind = %(kind)s and t.outcome = 'failed') as failed
  from holdfast_demo.labels l
 where l.batch = %(batch)s
"""
OVER: LiteralString = """
select count(*)::int from holdfast.steps s where s.queue = %s and s.kind = %s and s.finished_at is not null
"""


@dataclass(frozen=True, slots=True)
class LabelFacts:
    """The evidence about the labels: from the table that the handler wrote, and from the steps."""

    printed: int
    twice: int
    calls: int
    largest: int
    mixed: int
    failed: int


def make_labels(connection: Connection[Any]) -> None:
    """Create the table of labels; an existing one keeps its rows."""
    connection.execute(LABELS)


def add_printed(tx: Any, batch: str, call: str, carriers: Sequence[str], steps: Sequence[int]) -> None:
    """Record the labels of one call, in its transaction."""
    tx.execute(PRINTED, {"batch": batch, "call": call, "carriers": list(carriers), "steps": list(steps)})


def over(connection: Connection[Any], batch: str, kind: str) -> int:
    """Count the steps that have ended."""
    (count,) = connection.execute(OVER, [batch, kind]).fetchone() or (0,)
    return int(count)


def facts(connection: Connection[Any], batch: str, kind: str) -> LabelFacts:
    """Read the evidence."""
    with connection.cursor(row_factory=class_row(LabelFacts)) as cursor:
        found = cursor.execute(FACTS, {"batch": batch, "kind": kind}).fetchone()
    return found or LabelFacts(0, 0, 0, 0, 0, 0)
