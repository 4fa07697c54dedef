"""What the demo puts into the database: a table for effects, and tasks in a queue of its own."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.demo import tasks
from holdfast.errors import PermissionMissing
from holdfast.kernel import bulk
from holdfast.kernel.bulk import Start

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
            "the demo keeps the effects of its tasks in a schema holdfast_demo, which the login may not make; "
            "grant it create on the database, or unset HOLDFAST_DSN to use the embedded PostgreSQL"
        ) from error


def start(connection: Connection[Any], queue: str, count: int, seconds: float) -> Load:
    """Start the tasks in bulk, all or none; each takes about so many seconds."""
    wanted = shares(count)
    after = _last_step(connection)
    bulk.start_tasks(connection, (Start(kind, given, queue) for kind, given in mixed(wanted, seconds)))
    return Load(queue, count, wanted[tasks.HOPELESS], after, _last_step(connection))


def mixed(wanted: dict[str, int], seconds: float) -> Iterator[tuple[str, str]]:
    """Give kinds and inputs in turns, so that all kinds are under way at any time."""
    for number in range(1, max(wanted.values()) + 1):
        for kind, count in wanted.items():
            if number <= count:
                # Some take half as long, some half as long again: whoever is killed is not between two batches.
                yield kind, json.dumps({"number": number, "seconds": round(seconds * (0.5 + number % 5 / 4), 4)})


def _last_step(connection: Connection[Any]) -> int:
    row = connection.execute("select coalesce(max(s.id), 0) from holdfast.steps s").fetchone()
    return 0 if row is None else int(row[0])
