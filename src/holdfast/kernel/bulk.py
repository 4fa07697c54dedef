"""Bulk starts by COPY: into a staging table, taken over by one function."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.kernel import calls, db


def start_steps(
    connection: Connection[Any],
    steps: Iterable[tuple[str, str]],
    *,
    machine: str,
    name: str,
    step_machine: str,
    tenant: str = "default",
) -> UUID:
    """Start one run with many steps, each a kind and its input as JSON text, in the transaction of the connection."""
    with connection.transaction():
        (run_id,) = db.run(connection, calls.start_run(machine, name, step_machine, tenant=tenant))
        _stage(connection, steps)
        db.run(connection, calls.take_staged(step_machine, run_id=run_id, tenant=tenant))
    return run_id


def start_tasks(connection: Connection[Any], tasks: Iterable[tuple[str, str]], *, tenant: str = "default") -> int:
    """Start many tasks, each a name and its input as JSON text; tell how many."""
    with connection.transaction():
        _stage(connection, tasks)
        (taken,) = db.run(connection, calls.take_staged("work.task", tenant=tenant))
    return taken


def _stage(connection: Connection[Any], steps: Iterable[tuple[str, str]]) -> None:
    db.run(connection, calls.stage_steps())
    statement = "copy pg_temp.staged_steps (kind, input) from stdin"
    with db.translated(), connection.cursor() as cursor, cursor.copy(statement) as copy:
        for step in steps:
            copy.write_row(step)
