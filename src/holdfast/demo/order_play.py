"""How the demo's order goes: started beside the tasks, stuck at customs, resolved by hand, and done."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import class_row

from holdfast.demo import orders
from holdfast.demo.judge import Finding
from holdfast.kernel import calls, db
from holdfast.models import RunResult

GOODS = ["cup", "pot", "plate", "spoon"]
RESULT = {"form": "CN23", "by": "mail"}
REASON = "the form went by mail"
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1
STUCK = """
select s.id from holdfast.run_steps n join holdfast.steps s on s.id = n.step_id
 where n.run_id = %s and n.name = 'clear_customs' and s.finished_at is not null and s.last_event = 'failed'
"""
TOLD = """
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


@dataclass(frozen=True, slots=True)
class Told:
    """What the journal says of the order."""

    parcels: int
    retried: int
    waited: float
    resolved: int
    twice: int


class OrderPlay:
    """One order; it begins when nobody is killed any more, since each of its steps fails a known number of times."""

    def __init__(self, connection: Connection[Any], order_id: int) -> None:
        self._connection = connection
        self.task_id: UUID = orders.order.options(conn=connection).start(order_id=order_id, goods=GOODS).id

    def look(self) -> RunResult:
        """See how it stands."""
        (found,) = db.run(self._connection, calls.run_results([self.task_id]))
        return found

    def see_to_it(self) -> None:
        """Do what a person would: resolve the step at customs, once it has failed for good."""
        stuck = self._connection.execute(STUCK, [self.task_id]).fetchone()
        if stuck is not None:
            db.run(self._connection, calls.resolve(str(stuck[0]), REASON, RESULT))

    def wait(self) -> None:
        """Wait until it is over."""
        until = time.monotonic() + PATIENCE
        while self.look().state != "complete" and time.monotonic() < until:
            self.see_to_it()
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Hold what happened against what must have happened."""
        with self._connection.cursor(row_factory=class_row(Told)) as cursor:
            (told,) = cursor.execute(TOLD, {"run": self.task_id, "reason": REASON}).fetchall()
        state = self.look().state
        return judged(told, state)


def judged(told: Told, state: str) -> list[Finding]:
    """Say of each figure whether it is what it must be."""
    waited, is_kept = round(told.waited, 2), told.waited >= orders.PAUSE
    return [
        Finding("order: parcels", told.parcels, "a step for each item, joined again", told.parcels == len(GOODS)),
        Finding("order: card tried again", told.retried, "declined once", told.retried == 1),
        Finding("order: Retry-After kept", is_kept, f"waited {waited} s", waited >= orders.PAUSE),
        Finding("order: resolved by hand", told.resolved, f"customs: {REASON}", told.resolved == 1),
        Finding("order: done twice", told.twice, "no step", told.twice == 0),
        Finding("order: complete", int(state == "complete"), f"its task is {state}", state == "complete"),
    ]
