"""The demo's data: a table of effects, and tasks in their own queue."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import Connection

from holdfast.demo import tasks
from holdfast.errors import PermissionMissing
from holdfast.kernel import bulk
from holdfast.kernel.bulk import Start
from holdfast.reads import demo
from holdfast.reads.demo import Load

HOPELESS_EACH = 1000  # one task in this many cannot succeed
KINDS = (tasks.send_welcome, tasks.resize_image, tasks.charge_card)


def new_queue() -> str:
    """Return a queue name that nobody else uses."""
    return f"demo-{datetime.now(UTC):%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:4]}"


def shares(count: int) -> dict[str, int]:
    """Return how many tasks of each kind make up the total, at least one of which cannot succeed."""
    hopeless = max(1, count // HOPELESS_EACH)
    rest = count - hopeless
    each = {task.name: rest // len(KINDS) for task in KINDS}
    each[KINDS[0].name] += rest % len(KINDS)
    return {**each, tasks.HOPELESS: hopeless}


def prepare(connection: Connection[Any]) -> None:
    """Create the table of effects; an existing one keeps its rows."""
    try:
        demo.make_effects(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise PermissionMissing(
            "the login may not create the schema holdfast_demo, where the demo stores the effects of its tasks",
            next="grant the login CREATE on the database, or unset HOLDFAST_DSN to use the embedded PostgreSQL",
        ) from error


def start(connection: Connection[Any], queue: str, count: int, seconds: float) -> Load:
    """Start the tasks in bulk, all or none; each takes about `seconds`."""
    wanted = shares(count)
    after = demo.last_step(connection)
    bulk.start_tasks(connection, (Start(kind, given, queue) for kind, given in mixed(wanted, seconds)))
    return Load(queue, count, wanted[tasks.HOPELESS], after, demo.last_step(connection))


def mixed(wanted: dict[str, int], seconds: float) -> Iterator[tuple[str, str]]:
    """Yield kinds and inputs in turns, so that all kinds run at any time."""
    for number in range(1, max(wanted.values()) + 1):
        for kind, count in wanted.items():
            if number <= count:
                # From half to one and a half times as long, so that the killed worker is not between two batches.
                yield kind, json.dumps({"number": number, "seconds": round(seconds * (0.5 + number % 5 / 4), 4)})
