"""How the demo stands: what the live view shows, read from the steps themselves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from holdfast.demo.workload import Load

STANDING = """
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
HELD = """
select s.id
  from holdfast.steps s
 where s.queue = %(queue)s and s.id > %(after)s and s.id <= %(until)s and s.lease_owner = %(worker)s
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """How the tasks of a kind, or all of them, stand."""

    kind: str
    total: int
    running: int
    done: int
    retried: int
    failed: int

    @property
    def queued(self) -> int:
        """How many wait to be claimed, for the first time or again."""
        return self.total - self.running - self.over

    @property
    def over(self) -> int:
        """How many are over."""
        return self.done + self.failed


def read(connection: Connection[Any], load: Load) -> list[Standing]:
    """Read how each kind stands."""
    with connection.cursor(row_factory=class_row(Standing)) as cursor:
        return sorted(cursor.execute(STANDING, load.scope()).fetchall(), key=lambda one: (-one.total, one.kind))


def added(standings: Sequence[Standing]) -> Standing:
    """Add them up."""
    columns = ("total", "running", "done", "retried", "failed")
    return Standing("all", *(sum(getattr(one, column) for one in standings) for column in columns))


def held_by(connection: Connection[Any], load: Load, worker: str) -> set[int]:
    """Tell which steps a worker holds."""
    return {row[0] for row in connection.execute(HELD, {**load.scope(), "worker": worker})}


def worker_named(connection: Connection[Any], load: Load, name: str) -> str | None:
    """Find what a worker calls itself by the name that it was given; None before it has enlisted."""
    statement = "select w.worker from holdfast.workers w where w.queue = %s and starts_with(w.worker, %s)"
    row = connection.execute(statement, [load.queue, f"{name}/"]).fetchone()
    return None if row is None else str(row[0])
