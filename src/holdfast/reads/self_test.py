"""What a self-test reads of its tasks: how far they are, who holds them, and what there is to judge them by."""

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
    """So many tasks were acknowledged; their numbers are those after `after` and up to `until`."""

    started: int
    after: int
    until: int

    @property
    def scope(self) -> list[Any]:
        """The parameters of statements about its steps."""
        return [self.after, self.until]


def last_step(connection: Connection[Any]) -> int:
    """Give the highest number of a step."""
    return _number(connection, LAST, [])


def over(connection: Connection[Any], load: Load) -> int:
    """Count those that are over."""
    return _number(connection, OVER, load.scope)


def kept(connection: Connection[Any], load: Load) -> int:
    """Count those that are there at all."""
    return _number(connection, KEPT, load.scope)


def held(connection: Connection[Any], load: Load) -> dict[str, set[int]]:
    """Tell which worker, by the name that we gave it, holds which leases."""
    return {name: set(leases) for name, leases in connection.execute(HELD, load.scope)}


def leases(connection: Connection[Any], load: Load) -> dict[int, int]:
    """Tell which steps are held, and under which lease."""
    return dict(connection.execute(LEASES, load.scope).fetchall())


def story(connection: Connection[Any], load: Load) -> list[JournalEntry]:
    """Read what the journal says of its steps, in order."""
    with connection.cursor(row_factory=class_row(JournalEntry)) as cursor:
        return cursor.execute(STORY, load.scope).fetchall()


def effects(connection: Connection[Any], load: Load) -> list[tuple[int, int]]:
    """Read the effects of its steps: of which step, under which lease."""
    return connection.execute(EFFECTS, load.scope).fetchall()


def results(connection: Connection[Any], load: Load) -> list[tuple[int, int]]:
    """Read what its steps gave: the lease that each succeeded under."""
    return connection.execute(RESULTS, load.scope).fetchall()


def of_kinds(connection: Connection[Any], load: Load, kinds: Sequence[str]) -> set[int]:
    """List those of its steps that are of some kinds."""
    return {number for (number,) in connection.execute(OF_KINDS, [*load.scope, list(kinds)])}


def other_connections(connection: Connection[Any], name: str) -> list[int]:
    """List the server's processes for the connections of that name, but for this one."""
    return [pid for (pid,) in connection.execute(OTHERS, [name])]


def end_connection(connection: Connection[Any], pid: int) -> None:
    """End a connection by the server's process for it."""
    connection.execute(END, [pid])


def _number(connection: Connection[Any], statement: LiteralString, arguments: list[Any]) -> int:
    (number,) = connection.execute(statement, arguments).fetchone() or (0,)
    return int(number)
