"""A self-test's reads of its tasks: their progress, their holders, and the evidence to judge them by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from psycopg import Connection
from psycopg.rows import class_row

from holdfast.models import JournalEntry

EFFECT: LiteralString = "insert into holdfast.effects (step_id, lease_id) values (%s, %s)"
LAST: LiteralString = "select coalesce(max(s.id), 0) from holdfast.steps s"
OVER: LiteralString = """
select count(*) from holdfast.steps s where s.id > %s and s.id <= %s and s.finished_at is not null
"""
KEPT: LiteralString = "select count(*) from holdfast.steps s where s.id > %s and s.id <= %s"
STORY: LiteralString = "select * from holdfast.journal j where j.step_id > %s and j.step_id <= %s order by j.id"
EFFECTS: LiteralString = """
select e.step_id, e.lease_id from holdfast.effects e where e.step_id > %s and e.step_id <= %s
"""
RESULTS: LiteralString = """
select s.id, s.result::bigint from holdfast.steps s
 where s.id > %s and s.id <= %s and s.last_event = 'succeeded'
"""
OF_KINDS: LiteralString = "select s.id from holdfast.steps s where s.id > %s and s.id <= %s and s.kind = any (%s)"
LEASES: LiteralString = """
select s.id, s.lease_id from holdfast.steps s where s.id > %s and s.id <= %s and s.lease_id is not null
"""
HELD: LiteralString = """
select split_part(s.lease_owner, '/', 1), array_agg(s.lease_id) from holdfast.steps s
 where s.id > %s and s.id <= %s and s.lease_id is not null group by 1
"""
OTHERS: LiteralString = """
select a.pid from pg_catalog.pg_stat_activity a where a.application_name = %s and a.pid <> pg_backend_pid() order by 1
"""
END: LiteralString = "select pg_catalog.pg_terminate_backend(%s)"


@dataclass(frozen=True, slots=True)
class Load:
    """The acknowledged tasks; their ids are after `after` and up to `until`."""

    started: int
    after: int
    until: int

    @property
    def scope(self) -> list[Any]:
        """The parameters of statements about its steps."""
        return [self.after, self.until]


def last_step(connection: Connection[Any]) -> int:
    """Return the highest step id."""
    return _number(connection, LAST, [])


def over(connection: Connection[Any], load: Load) -> int:
    """Count the tasks that have ended."""
    return _number(connection, OVER, load.scope)


def kept(connection: Connection[Any], load: Load) -> int:
    """Count the tasks that exist."""
    return _number(connection, KEPT, load.scope)


def held(connection: Connection[Any], load: Load) -> dict[str, set[int]]:
    """Return the leases of each worker, by the name that we gave it."""
    return {name: set(leases) for name, leases in connection.execute(HELD, load.scope)}


def leases(connection: Connection[Any], load: Load) -> dict[int, int]:
    """Return the held steps, with their leases."""
    return dict(connection.execute(LEASES, load.scope).fetchall())


def story(connection: Connection[Any], load: Load) -> list[JournalEntry]:
    """Read the journal of its steps, in order."""
    with connection.cursor(row_factory=class_row(JournalEntry)) as cursor:
        return cursor.execute(STORY, load.scope).fetchall()


def effects(connection: Connection[Any], load: Load) -> list[tuple[int, int]]:
    """Read the effects of its steps, with step and lease."""
    return connection.execute(EFFECTS, load.scope).fetchall()


def results(connection: Connection[Any], load: Load) -> list[tuple[int, int]]:
    """Read the results of its steps: the lease that each succeeded under."""
    return connection.execute(RESULTS, load.scope).fetchall()


def of_kinds(connection: Connection[Any], load: Load, kinds: Sequence[str]) -> set[int]:
    """List its steps of the given kinds."""
    return {number for (number,) in connection.execute(OF_KINDS, [*load.scope, list(kinds)])}


def other_connections(connection: Connection[Any], name: str) -> list[int]:
    """List the server processes of the connections of that name, except this one."""
    return [pid for (pid,) in connection.execute(OTHERS, [name])]


def end_connection(connection: Connection[Any], pid: int) -> None:
    """Terminate a connection by its server process."""
    connection.execute(END, [pid])


def _number(connection: Connection[Any], statement: LiteralString, arguments: list[Any]) -> int:
    (number,) = connection.execute(statement, arguments).fetchone() or (0,)
    return int(number)
