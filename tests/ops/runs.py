"""What the tests of ops arrange and read: queue, claim, report, finish."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

DB = Connection[Any]
SHA = "abc123def456"


def queue(db: DB, key: str | None = None, metadata: dict[str, Any] | None = None, **options: Any) -> str:
    """Queue a run and give its id."""
    given = {"p_project_id": "proj-123", "p_env": "staging", "p_git_sha": SHA, "p_git_ref": "main", **options}
    if key is not None:
        given["p_idempotency_key"] = key
    if metadata is not None:
        given["p_metadata"] = Jsonb(metadata)
    return str(called(db, "queue_run", **given)[0]["run_id"])


def called(db: DB, function: str, **given: Any) -> list[dict[str, Any]]:
    """Call a function by named arguments, and give its rows."""
    arguments = ", ".join(f"{name} => %({name})s" for name in given)
    with db.cursor(row_factory=dict_row) as cursor:
        cursor.execute(f"select * from ops.{function}({arguments})", given)
        return cursor.fetchall()


def value(db: DB, function: str, *given: Any) -> Any:
    """Call a function by position, and give what it returns."""
    ((answer,),) = db.execute(f"select ops.{function}({', '.join(['%s'] * len(given))})", given).fetchall()
    return answer


def claim(db: DB, worker: str = "worker-001") -> str | None:
    """Claim the next run and give its id."""
    rows = called(db, "claim_next_run", p_worker_id=worker)
    return str(rows[0]["run_id"]) if rows else None


def event(db: DB, run_id: str, message: str = "Starting build process", level: str = "info", **more: Any) -> str:
    return str(called(db, "append_event", p_run_id=run_id, p_level=level, p_message=message, **more)[0]["append_event"])


def finish(db: DB, run_id: str, status: str, metadata: dict[str, Any] | None = None, worker: str | None = None) -> bool:
    return bool(value(db, "finish_run", run_id, status, Jsonb(metadata or {}), worker))


def run(db: DB, run_id: str) -> dict[str, Any]:
    """Read a run."""
    with db.cursor(row_factory=dict_row) as cursor:
        (row,) = cursor.execute("select * from ops.runs where run_id = %s", [run_id]).fetchall()
        return dict(row)


def status(db: DB, run_id: str) -> str:
    return str(run(db, run_id)["status"])


def events(db: DB, run_id: str) -> list[tuple[str, str]]:
    """Read the levels and messages of a run's events, in order."""
    return db.execute(
        "select level, message from ops.run_events where run_id = %s order by event_id", [run_id]
    ).fetchall()


def refused(db: DB, function: str, *given: Any) -> str | None:
    """Call a function that is refused, and give the SQLSTATE; nothing is left of it."""
    try:
        with db.transaction():
            value(db, function, *given)
    except psycopg.Error as error:
        return error.sqlstate
    return None
