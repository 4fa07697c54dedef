"""What tests of limits share: a rule, its counts, and steps that end."""

from __future__ import annotations

from typing import Any

from psycopg.types.json import Jsonb

from holdfast.kernel import limit_calls
from holdfast.kernel.db import run
from holdfast.models import Fail
from kernel.steps import (
    DB,
    claim_one,
    settle,
    start,
)

LIMITED = {"type": "RateLimited", "message": "429"}


def limit(db: DB, name: str, **rule: Any) -> None:
    run(db, limit_calls.define_limit(name, **rule))


def ids(steps: list[Any]) -> list[int]:
    return [step.step_id for step in steps]


def held(db: DB, name: str, tenant: str = "*") -> tuple[int, int]:
    """Read how many steps hold a limit and how many are parked on it."""
    row = db.execute("select held, parked from holdfast.limit_list where name = %s and tenant = %s", [name, tenant])
    counts: tuple[int, int] = row.fetchone() or (0, 0)
    return counts


def settled(db: DB, step: Any, outcome: str, **parts: Any) -> list[str]:
    """Settle a step by JSON, as a worker in another language does."""
    head = {"step_id": step.step_id, "lease_id": step.lease_id, "outcome": outcome}
    rows = db.execute("select event from holdfast.settle_steps(%s)", [Jsonb([{**head, **parts}])])
    return [event for (event,) in rows]


def fail_limited(db: DB, times: int) -> None:
    for _ in range(times):
        start(db, limits=["api"])
        settle(db, claim_one(db), Fail(LIMITED))
