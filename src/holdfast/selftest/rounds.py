"""What one round of a self-test starts, how far it is, and what there is to judge it by."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection
from psycopg.rows import class_row

from holdfast.kernel import bulk, calls, db
from holdfast.models import JournalEntry
from holdfast.selftest import tasks
from holdfast.selftest.history import Evidence, lines

LAST = "select coalesce(max(s.id), 0) from holdfast.steps s"
OVER = "select count(*) from holdfast.steps s where s.id > %s and s.id <= %s and s.finished_at is not null"
KEPT = "select count(*) from holdfast.steps s where s.id > %s and s.id <= %s"
STORY = "select * from holdfast.journal j where j.step_id > %s and j.step_id <= %s order by j.id"
EFFECTS = "select e.step_id, e.lease_id from holdfast.effects e where e.step_id > %s and e.step_id <= %s"
RESULTS = """
select s.id, s.result::bigint from holdfast.steps s
 where s.id > %s and s.id <= %s and s.last_event = 'succeeded'
"""
PAYING = "select s.id from holdfast.steps s where s.id > %s and s.id <= %s and s.kind = any (%s)"
LEASES = "select s.id, s.lease_id from holdfast.steps s where s.id > %s and s.id <= %s and s.lease_id is not null"
HELD = """
select split_part(s.lease_owner, '/', 1), array_agg(s.lease_id) from holdfast.steps s
 where s.id > %s and s.id <= %s and s.lease_id is not null group by 1
"""


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


def start(connection: Connection[Any], count: int, seconds: float, queues: Sequence[str]) -> Load:
    """Start tasks of all kinds, in these queues by turns; some take half as long, some half as long again."""
    after = last_step(connection)
    kinds = len(tasks.KINDS)
    wanted = [
        bulk.Start(
            tasks.KINDS[number % kinds],
            json.dumps({"number": number, "seconds": round(seconds * (0.5 + number % 5 / 4), 4)}),
            queues[number // kinds % len(queues)],
        )
        for number in range(count)
    ]
    return Load(bulk.start_tasks(connection, wanted), after, last_step(connection))


def last_step(connection: Connection[Any]) -> int:
    """Give the highest number of a step."""
    return _value(connection, LAST, [])


def over(connection: Connection[Any], load: Load) -> int:
    """Count those that are over."""
    return _value(connection, OVER, load.scope)


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


def gather(connection: Connection[Any], load: Load, folder: Path) -> Evidence:
    """Put together what there is to judge by."""
    return Evidence(
        story=story(connection, load),
        kept=_value(connection, KEPT, load.scope),
        effects=connection.execute(EFFECTS, load.scope).fetchall(),
        results=connection.execute(RESULTS, load.scope).fetchall(),
        paying={number for (number,) in connection.execute(PAYING, [*load.scope, list(tasks.PAID)])},
        written=[line for line in lines(folder) if load.after < line.step <= load.until],
        broken=tuple(f"{found.invariant}: {found.subject}" for found in db.run(connection, calls.violations())),
    )


def _value(connection: Connection[Any], statement: str, arguments: list[Any]) -> int:
    (found,) = connection.execute(statement, arguments).fetchone() or (0,)
    return int(found)
