"""What the tests of ops handlers arrange: apps with handlers, quick retries, and reads of what became of a run."""

from __future__ import annotations

from typing import Any

from psycopg import Connection

from holdfast import Holdfast
from holdfast.ops import OpsHandle
from ops.runs import events, run
from worker.running import Worker, burst, until

DB = Connection[Any]


def work(hf: Holdfast, **options: Any) -> Worker:
    """Work until nothing is due in queue `ops`."""
    return burst(hf, queues=("ops",), **options)


def queue(hf: Holdfast, **options: Any) -> OpsHandle:
    return hf.ops.queue("proj-123", **{"env": "staging", "git_sha": "abc123", "git_ref": "main", **options})


def at_once(db: DB, executions: int = 3) -> None:
    """Let failed executions be repeated without a delay."""
    db.execute("update holdfast.policies set base = '0', tries = %s where policy = 'ops.in_place'", [executions])


def metadata(db: DB, handle: OpsHandle) -> dict[str, Any]:
    found: dict[str, Any] = run(db, handle.id)["metadata"]
    return found


def messages(db: DB, handle: OpsHandle) -> list[str]:
    return [message for _, message in events(db, handle.id)]


def until_message(db: DB, handle: OpsHandle, text: str) -> None:
    until(lambda: any(text in message for message in messages(db, handle)), text)
