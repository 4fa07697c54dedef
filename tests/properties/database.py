"""The database under test: a connection for each worker and one for people, and readers of what the model predicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import datetime
from typing import Any, LiteralString
from uuid import UUID

import psycopg
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from properties.documents import KINDS
from properties.subjects import Step

WORKERS = ("a", "b", "c")

# What an installed database has, and no start or claim has written.
INSTALLED = (
    "{migrations,installed,policies,kinds,machines,machine_states,machine_moves,role_tenants,faces,"
    "retention_rules,retention_sweep}"
)
TABLES = f"""
select relnamespace::regnamespace || '.' || relname from pg_class
 where relnamespace = any ('{{holdfast,ops,rules}}'::regnamespace[]) and relkind in ('r', 'p') and not relispartition
   and relname <> all ('{INSTALLED}'::text[])
"""
RESTART = """
select setval(oid, 1, false) from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'S';
"""
STEPS = """
select s.id, s.machine, s.state, s.kind, s.queue, s.priority, s.run_id, s.waits, coalesce(s.due_at, s.parked_due_at),
       s.lease_id, s.lease_owner, s.lease_until, s.attempt, s.failures, s.cursor, s.result, s.error ->> 'type',
       s.finished_at
  from holdfast.steps s
"""
RUNS = "select r.id, r.state, r.total, r.live, r.succeeded, r.failed, r.cancelled, r.finished_at from holdfast.runs r"
STEP_STORIES = """
select j.step_id, j.event, j.actor_kind, j.actor, j.attempt, j.lease_id
  from holdfast.journal j where j.step_id is not null order by j.id
"""
RUN_STORIES = "select j.run_id, j.event, j.actor_kind from holdfast.journal j where j.step_id is null order by j.id"
INSERT_OPS = """
insert into holdfast.steps (machine, state, kind, policy, priority, due_at, created_at)
select 'ops.run', 'queued', k.kind, k.policy, %(priority)s, holdfast.clock(), holdfast.clock()
  from holdfast.kinds k, holdfast.remember_queues(array['default'], array[%(priority)s])
 where k.kind = %(kind)s
returning id
"""
MOVE_BY_HAND = """
update holdfast.steps
   set state = %(state)s, finished_at = %(finished_at)s, due_at = %(due)s, parked_due_at = null, parked_for = null,
       lease_id = %(lease_id)s, lease_owner = %(owner)s, lease_until = %(until)s
 where id = %(id)s
"""
NOTES = "select n.step_id, n.level from holdfast.notes n order by n.id"


def wipe(db: Connection[Any]) -> None:
    """Empty a database: append-only holds for all but a superuser who switches the triggers off.

    A clone takes 100 times as long.
    """
    emptied = "".join(f"delete from {table};" for (table,) in db.execute(TABLES).fetchall())
    db.execute(f"set session_replication_role = replica; {emptied} reset session_replication_role; {RESTART}")


class Database:
    """One cloned database, wiped before each example."""

    def __init__(self, dsn: str) -> None:
        self._stack = ExitStack()
        self.person = self._connect(dsn)
        self.workers = {name: self._connect(dsn) for name in WORKERS}
        self.login = self.person.info.user
        self._clock = Clock(self.person)
        for name, kind in KINDS.items():
            values = [name, kind.policy, kind.lease, kind.queue]
            self.person.execute(
                "insert into holdfast.kinds (kind, policy, lease, queue) values (%s, %s, %s, %s)", values
            )

    def close(self) -> None:
        self._stack.close()

    def wipe(self) -> datetime:
        """Empty it, and stop the clock at a whole second of today."""
        wipe(self.person)
        for connection in self.workers.values():
            connection.execute("reset all")
        ((today,),) = self._read("select date_trunc('second', clock_timestamp())")
        return self._clock.set(today)

    def set_clock(self, moment: datetime) -> None:
        self._clock.set(moment)

    def told(self) -> dict[int | UUID, Any]:
        """Give row, journal and notes of each step, row and journal of each run: as the model does."""
        with self.person.pipeline():  # one trip
            steps, runs, step_stories, run_stories, notes = map(
                self.person.execute, (STEPS, RUNS, STEP_STORIES, RUN_STORIES, NOTES)
            )
        stories, said = _grouped([*step_stories, *run_stories]), _grouped(notes)
        told_steps = {step_id: (row, stories[step_id], said[step_id]) for step_id, *row in steps}
        return told_steps | {run_id: (row, stories[run_id]) for run_id, *row in runs}

    def parked(self) -> set[int]:
        return {
            step_id for (step_id,) in self._read("select s.id from holdfast.steps s where s.parked_for is not null")
        }

    def violations(self) -> set[tuple[str, str]]:
        return {(v.invariant, v.subject) for v in run(self.person, calls.violations())}

    def steps_of(self, run_id: UUID) -> list[int]:
        query = "select s.step_id from holdfast.run_steps s where s.run_id = %s order by s.step_id"
        return [step_id for (step_id,) in self.person.execute(query, [run_id])]

    def new_lease_id(self) -> int:
        ((lease_id,),) = self._read("select nextval('holdfast.lease_ids')")
        return int(lease_id)

    def insert_ops(self, kind: str, priority: int) -> int:
        """Start an ops run, as its face will."""
        ((step_id,),) = self.person.execute(INSERT_OPS, {"kind": kind, "priority": priority})
        return int(step_id)

    def move_by_hand(self, step: Step) -> None:
        """Bring the row to where the model's step is, by a plain UPDATE."""
        lease_id, owner, until = step.lease or (None, None, None)
        lease = {"lease_id": lease_id, "owner": owner, "until": until}
        columns = {"id": step.id, "state": step.state, "finished_at": step.finished_at, "due": step.due}
        self.person.execute(MOVE_BY_HAND, {**columns, **lease})

    def _connect(self, dsn: str) -> Connection[Any]:
        return self._stack.enter_context(psycopg.connect(dsn, autocommit=True))

    def _read(self, query: LiteralString) -> list[Any]:
        return self.person.execute(query).fetchall()


def _grouped(rows: Iterable[Any]) -> dict[Any, list[Any]]:
    groups = defaultdict(list)
    for subject, *rest in rows:
        groups[subject].append(rest)
    return groups
