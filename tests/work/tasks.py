"""What the tests of `work` read and do through the face alone."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

DB = Connection[Any]
TERMS = "select * from work.claim_next_task(%(worker)s, types => %(types)s, queue => %(queue)s, lease => %(lease)s)"


def task(db: DB, task_id: int) -> dict[str, Any]:
    (row,) = rows(db, "select * from work.tasks where id = %s", task_id)
    return row


def claim_next(db: DB, worker: str = "a", **terms: Any) -> dict[str, Any] | None:
    """Claim a task; its row, or nothing."""
    with db.cursor(row_factory=dict_row) as cursor:
        given = {"worker": worker, "types": None, "queue": "default", "lease": "30 s", **terms}
        return cursor.execute(TERMS, given).fetchone()


def held(db: DB, worker: str = "a", **terms: Any) -> dict[str, Any]:
    """Claim a task that must be there."""
    row = claim_next(db, worker, **terms)
    assert row is not None
    return row


def report(db: DB, claimed: dict[str, Any], outcome: str = "done", **more: Any) -> list[str]:
    """Say what became of a claimed task; the states that were accepted, so none when the lease is lost."""
    said = {"step_id": claimed["id"], "lease_id": claimed["lease_id"], "outcome": outcome, **more}
    return [row["state"] for row in rows(db, "select * from holdfast.settle_steps(%s)", Jsonb([said]))]


def recover(db: DB) -> int:
    (row,) = rows(db, "select work.recover_expired_leases() as amount")
    amount: int = row["amount"]
    return amount


def audit(db: DB, task_id: int) -> list[tuple[str, str, str]]:
    """Read a task's entries in order: what happened, where it led, who did it."""
    logs = rows(db, "select * from work.audit_logs where resource_id = %s order by id", task_id)
    return [(log["event_type"], log["metadata"]["to_status"], log["actor"]) for log in logs]


def rows(db: DB, query: str, *arguments: Any) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query, arguments).fetchall()
