"""A plan that was made when the tables held a few rows stays linear when they have grown: nobody plans it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Settlement
from shape.plans.reading import reading

BATCH = 100


def start(db: Connection[Any], steps: int) -> None:
    plan = [{"kind": "mail", "name": f"s{number}"} for number in range(steps)]
    run(db, calls.start_run("flow.task", "few", "flow.step", steps=plan))


def settlements(steps: Sequence[ClaimedStep], outcome: Outcome) -> list[Settlement]:
    return [Settlement(step.step_id, step.lease_id, outcome) for step in steps]


@pytest.mark.parametrize("rows", [2, 3, 5])
@pytest.mark.parametrize("outcome", [Done(), Fail("no")], ids=["done", "fail"])
def test_a_settle_that_was_planned_on_a_few_rows_reads_its_batch(
    db: Connection[Any], rows: int, outcome: Outcome
) -> None:
    start(db, rows)
    db.execute("vacuum (analyze)")
    run(db, calls.settle_steps(settlements(run(db, calls.claim_steps("w")), outcome)))
    start(db, 2000)
    steps = run(db, calls.claim_steps("w", batch=BATCH))

    settled, read = reading(db, calls.settle_steps(settlements(steps, outcome)))

    assert len(settled) == BATCH
    assert read.rows["steps_pkey"] <= 10 * BATCH, read.most
