"""Runs of feeds in plain SQL, as a worker in any language makes them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Retry, Settlement

DB = Connection[Any]
FEED = "nivoda"
SETTINGS = {"page_size": 30, "batch": 2000}
UNTIL = "2024-01-16T02:00:00Z"


def define(db: DB, feed: str = FEED, *, tenant: str = "default", raw: str | None = None, **settings: Any) -> None:
    db.execute("select ingest.define_feed(%s, %s, %s, %s)", [feed, Jsonb(SETTINGS | settings), raw, tenant])


def start(db: DB, feed: str = FEED, **options: Any) -> UUID:
    names = ", ".join(f"{name} => %({name})s" for name in options)
    row = db.execute(f"select ingest.start(%(feed)s{', ' + names if names else ''})", {"feed": feed, **options})
    return row.fetchone()[0]  # type: ignore[index,no-any-return]


def claim(db: DB, kind: str, batch: int = 1, worker: str = "w1", feed: str = FEED) -> list[ClaimedStep]:
    return make(db, calls.claim_steps(worker, kinds=[f"ingest:{feed}:{kind}"], batch=batch))


def settle(db: DB, step: ClaimedStep, outcome: Outcome) -> list[Any]:
    return make(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))


def plan(db: DB, parts: int, *, run_type: str = "full", until: str = UNTIL, feed: str = FEED) -> None:
    """Plan a started run with so many partitions."""
    (step,) = claim(db, "plan", feed=feed)
    row = db.execute("select watermark from ingest.start_to_plan(%s, %s)", [step.step_id, step.lease_id]).fetchone()
    watermark = None if row is None or row[0] is None else row[0].isoformat()
    document = {
        "run_type": run_type,
        "until": until,
        "since": None if run_type == "full" else watermark,
        "watermark": watermark,
        "partitions": [{"min": n * 100, "max": n * 100 + 100, "estimated": 30} for n in range(parts)],
    }
    with db.transaction():
        db.execute("select ingest.create_run(%s, %s, %s)", [step.step_id, step.lease_id, Jsonb(document)])
        settle(db, step, Done(None))


def run_of(db: DB, parts: int, **options: Any) -> UUID:
    """A run with so many pending partitions."""
    run_id = start(db)
    plan(db, parts, **options)
    return run_id


def put(db: DB, step: ClaimedStep, keys: Sequence[str | None], payloads: Sequence[Any] | None = None) -> int:
    given = [Jsonb({"id": key}) for key in keys] if payloads is None else [Jsonb(each) for each in payloads]
    row = db.execute(
        "select ingest.put_page(%s, %s, %s, %s::jsonb[])", [step.step_id, step.lease_id, list(keys), given]
    ).fetchone()
    return row[0]  # type: ignore[index,no-any-return]


def page(db: DB, step: ClaimedStep, keys: Sequence[str], *, offset: int | None = None) -> None:
    """Store a page, and continue at an offset or end."""
    with db.transaction():
        put(db, step, keys)
        if offset is None:
            settle(db, step, Done({"records": len(keys)}))
        else:
            settle(db, step, Continue({"offset": offset, "read": offset, "round": 0}, step.cursor))


def consolidate(db: DB, *, mark: bool = True) -> None:
    """Consolidate a run whose partitions are done, without a target."""
    (step,) = claim(db, "consolidate")
    with db.transaction():
        row = db.execute("select ingest.begin_consolidation(%s, %s)", [step.step_id, step.lease_id]).fetchone()
        if row is not None and row[0]:
            settle(db, step, Continue({"end": True}, step.cursor))
    while batches := claim(db, "batch", batch=5):
        for each in batches:
            rows = db.execute("select key from ingest.batch_rows(%s, %s)", [each.step_id, each.lease_id]).fetchall()
            with db.transaction():
                keys = [key for (key,) in rows] if mark else []
                db.execute("select ingest.mark_consolidated(%s, %s, %s)", [each.step_id, each.lease_id, keys])
                settle(db, each, Done({"rows": len(keys)}))
    if row is not None and row[0]:
        (step,) = claim(db, "consolidate")
    end(db, step)


def end(db: DB, step: ClaimedStep) -> None:
    with db.transaction():
        row = db.execute("select * from ingest.check_consolidated(%s, %s)", [step.step_id, step.lease_id]).fetchone()
        problem, deletes = row or ("?", False)
        if problem is None and deletes:
            db.execute("select ingest.delete_absent(%s, %s)", [step.step_id, step.lease_id])
        settle(db, step, Done(None) if problem is None else Fail(problem))


def fail_for_good(db: DB, kind: str = "page") -> None:
    """Fail a step until its deliveries are used up."""
    for _ in range(3):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")
        (step,) = claim(db, kind)
        settle(db, step, Retry({"type": "Unavailable", "message": "the source answered 502"}))


def facts(db: DB, run_id: UUID) -> dict[str, Any]:
    with db.cursor(row_factory=dict_row) as cursor:
        found = cursor.execute("select * from ingest.run_metadata where run_id = %s", [run_id]).fetchone()
    assert found is not None
    return found


def events(db: DB, run_id: UUID, *names: str) -> list[Any]:
    rows = db.execute("select event, severity, body from ingest.events where run_id = %s order by id", [run_id])
    return [json.loads(json.dumps(row)) for row in rows if not names or row[0] in names]


def journal(db: DB, run_id: UUID) -> list[str]:
    rows = db.execute(
        "select to_state from holdfast.journal where run_id = %s and step_id is null order by id", [run_id]
    )
    return [state for (state,) in rows]


def watermark(db: DB, feed: str = FEED) -> Any:
    row = db.execute("select document from ingest.watermarks where feed = %s", [feed]).fetchone()
    return None if row is None else row[0]
