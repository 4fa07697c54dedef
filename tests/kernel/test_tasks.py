"""Single tasks: started, claimed, settled, rescued."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Release, Retry, Settlement, Snooze
from holdfast.testing import Clock, events, journal
from psycopg import Connection

DB = Connection[Any]
LEASE = timedelta(seconds=30)


def start(db: DB, name: str = "mail", **options: Any) -> int:
    return run(db, calls.start_task(name, {"to": "a"}, **options))[0]


def claim(db: DB, worker: str = "a", **options: Any) -> list[ClaimedStep]:
    return run(db, calls.claim_steps(worker, lease=LEASE, **options))


def settle(db: DB, step: ClaimedStep, outcome: Outcome) -> list[str]:
    return [s.event for s in run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))]


def column(db: DB, step_id: int, name: str) -> Any:
    row = db.execute(f"select {name} from holdfast.steps where id = %s", [step_id]).fetchone()
    assert row is not None
    return row[0]


def test_a_task_goes_from_start_to_done(db: DB) -> None:
    """W-08 W-10 W-31 W-37 W-42 W-60"""
    step_id = start(db)
    (step,) = claim(db)

    assert settle(db, step, Done({"sent": 1})) == ["succeeded"]

    assert (step.step_id, step.kind, step.input, step.attempt) == (step_id, "mail", {"to": "a"}, 1)
    assert column(db, step_id, "state") == "done"
    assert column(db, step_id, "result") == {"sent": 1}
    assert events(db, step=step_id) == ["claimed", "succeeded"]
    assert [(e.actor_kind, e.actor, e.attempt, e.lease_id) for e in journal(db, step=step_id)] == [
        ("worker", "a", 1, step.lease_id)
    ] * 2
    assert claim(db) == []
