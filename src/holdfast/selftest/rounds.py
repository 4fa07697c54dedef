"""One round of a self-test: its tasks and its evidence."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from psycopg import Connection

from holdfast.kernel import bulk, calls, db
from holdfast.reads import self_test
from holdfast.reads.self_test import Load
from holdfast.selftest import tasks
from holdfast.selftest.history import Evidence, lines


def start(connection: Connection[Any], count: int, seconds: float, queues: Sequence[str]) -> Load:
    """Start tasks of all kinds, in these queues by turns; they take from half to one and a half times as long."""
    after = self_test.last_step(connection)
    kinds = len(tasks.KINDS)
    wanted = [
        bulk.Start(
            tasks.KINDS[number % kinds],
            json.dumps({"number": number, "seconds": round(seconds * (0.5 + number % 5 / 4), 4)}),
            queues[number // kinds % len(queues)],
        )
        for number in range(count)
    ]
    return Load(bulk.start_tasks(connection, wanted), after, self_test.last_step(connection))


def gather(connection: Connection[Any], load: Load, folder: Path) -> Evidence:
    """Collect the evidence."""
    return Evidence(
        story=self_test.story(connection, load),
        kept=self_test.kept(connection, load),
        effects=self_test.effects(connection, load),
        results=self_test.results(connection, load),
        paying=self_test.of_kinds(connection, load, tasks.PAID),
        written=[line for line in lines(folder) if load.after < line.step <= load.until],
        broken=tuple(f"{found.invariant}: {found.subject}" for found in db.run(connection, calls.violations())),
    )
