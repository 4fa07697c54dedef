"""What the demo puts into the database: a table for effects, and tasks in a queue of its own."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.demo import tasks
from holdfast.errors import PermissionMissing

HOPELESS_EACH = 1000  # of so many tasks one cannot succeed
KINDS = (tasks.send_welcome, tasks.resize_image, tasks.charge_card)

# Without a key over step_id: the table must be able to hold what the demo says does not happen.
EFFECTS = """
create schema if not exists holdfast_demo;
create table if not exists holdfast_demo.effects (
  step_id bigint not null,
  attempt int not null,
  worker text not null,
  at timestamptz not null default clock_timestamp()
);
create index if not exists effects_of_step on holdfast_demo.effects (step_id);
"""


@dataclass(frozen=True, slots=True)
class Load:
    """What was started: so many tasks in a queue, the numbers of their steps after `after` and up to `until`."""

    queue: str
    asked: int
    hopeless: int
    after: int
    until: int

    def scope(self) -> dict[str, Any]:
        """Give the parameters of statements about its steps."""
        return {"queue": self.queue, "after": self.after, "until": self.until}


def new_queue() -> str:
    """Name a queue that nobody else uses."""
    return f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def shares(count: int) -> dict[str, int]:
    """Say how many tasks of which kind make up so many, and at least one that cannot succeed."""
    hopeless = max(1, count // HOPELESS_EACH)
    rest = count - hopeless
    each = {task.name: rest // len(KINDS) for task in KINDS}
    each[KINDS[0].name] += rest % len(KINDS)
    return {**each, tasks.HOPELESS: hopeless}


def prepare(connection: Connection[Any]) -> None:
    """Make the table of effects; one that is there keeps what it has."""
    try:
        connection.execute(EFFECTS)
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionMissing(
            "the demo keeps the effects of its tasks in a schema of its own, holdfast_demo, and the login may not make it; "
            "grant it create on the database, or unset HOLDFAST_DSN to use the embedded PostgreSQL"
        ) from error


def start(connection: Connection[Any], queue: str, count: int, seconds: float) -> Load:
    """Start the tasks in bulk, all or none; each takes about so many seconds."""
    wanted = shares(count)
    after = _last_step(connection)
    with connection.transaction():
        for task in (*KINDS, tasks.import_catalog):
            task.options(queue=queue, conn=connection).start_many(_arguments(wanted[task.name], seconds))
    return Load(queue, count, wanted[tasks.HOPELESS], after, _last_step(connection))


def _arguments(count: int, seconds: float) -> Iterator[dict[str, Any]]:
    # Some take half as long again and some half as long: whoever is killed is not between two batches.
    return ({"number": number, "seconds": seconds * (0.5 + number % 5 / 4)} for number in range(1, count + 1))


def _last_step(connection: Connection[Any]) -> int:
    row = connection.execute("select coalesce(max(s.id), 0) from holdfast.steps s").fetchone()
    return 0 if row is None else int(row[0])
