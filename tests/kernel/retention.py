"""What tests of retention arrange and read: work that ended in each way, sweeps, and what is left."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.kernel.retention_calls import Removal, Sweep
from holdfast.models import Done, Fail
from kernel.steps import DB, claim, claim_one, node, settle, start, start_flow, value

# The tables of a run and its steps, with the column that has the step's id.
OF_STEPS = {"steps": "id", "run_steps": "step_id", "edges": "step_id", "note_keys": "step_id"}


def days(number: float) -> timedelta:
    return timedelta(days=number)


def task(db: DB, outcome: str = "succeeded", **options: Any) -> int:
    """Start a task, and end it that way."""
    step_id = start(db, **options)
    if outcome == "cancelled":
        run(db, calls.cancel(str(step_id)))
    else:
        claimed = claim_one(db, queue=options.get("queue") or "default", tenants=[options.get("tenant", "default")])
        settle(db, claimed, Done() if outcome == "succeeded" else Fail({"type": "Broken", "message": "no"}))
    return step_id


def flow(db: DB, outcome: str = "succeeded", **options: Any) -> UUID:
    """Start a run of three steps, the last of which waits for the others, and end it that way."""
    run_id = start_flow(db, node("a"), node("b"), node("c", "a", "b"), **options)
    if outcome == "cancelled":
        run(db, calls.cancel(str(run_id)))
        return run_id
    while steps := claim(db, batch=9):
        for step in steps:
            run(db, calls.note(step.step_id, step.lease_id, "info", "hello", key="once"))
            settle(db, step, Fail("no") if outcome == "failed" and step.kind == "a" else Done())
    return run_id


def sweep(db: DB, *, batch: int = 1000) -> Sweep:
    """Sweep from the first row to the last; the sums."""
    total = [0, 0, 0, 0]
    (chunk,) = run(db, retention_calls.sweep_now(batch=batch, afresh=True))
    while True:
        total = [a + b for a, b in zip(total, (chunk.steps, chunk.runs, chunk.keys, chunk.ticks), strict=True)]
        if chunk.is_through is not False:
            return Sweep(*total, chunk.months, chunk.is_through, chunk.wait)
        (chunk,) = run(db, retention_calls.sweep_now(batch=batch))


def keep(db: DB, span: timedelta | str | None, **rule: Any) -> None:
    run(db, retention_calls.set_retention(span, **rule))


def is_there(db: DB, subject: int | UUID) -> bool:
    table = "steps" if isinstance(subject, int) else "runs"
    found: bool = value(db, f"select exists (select from holdfast.{table} where id = %s)", subject)
    return found


def left_of(db: DB, run_id: UUID, step_ids: list[int]) -> dict[str, int]:
    """Count what is left of a run and of these steps, by table; without those where nothing is."""
    counts = {
        table: value(db, f"select count(*) from holdfast.{table} where {column} = any (%s)", step_ids)
        for table, column in OF_STEPS.items()
    } | {"runs": value(db, "select count(*) from holdfast.runs where id = %s", run_id)}
    return {table: count for table, count in counts.items() if count}


def removal(db: DB, subject: int | UUID) -> Removal | None:
    return next(iter(run(db, retention_calls.pruned(str(subject)))), None)
