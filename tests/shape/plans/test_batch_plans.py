"""A claim that forms calls reads the steps of its calls, not all that are due with the same key.

With `--faults` a million steps are due, otherwise some thousands.
"""

from __future__ import annotations

import pytest

from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run
from kernel.steps import DB, claim, finish, stage
from shape.plans.reading import reading

pytestmark = pytest.mark.scenario("R21")
BATCH = 50


@pytest.fixture
def steps(request: pytest.FixtureRequest) -> int:
    return 1_000_000 if request.config.getoption("--faults") else 8_000


@pytest.mark.parametrize("is_analyzed", [False, True], ids=["no statistics", "statistics"])
@pytest.mark.parametrize("is_limited", [False, True], ids=["free", "limited"])
def test_a_claim_reads_its_calls(db: DB, steps: int, is_limited: bool, is_analyzed: bool) -> None:
    """One key has all of the steps; under a limit the calls come from its queue."""
    run(db, calls.define_kind("push", batch=BATCH // 2, limits=["shop"]))
    if is_limited:
        run(db, limit_calls.define_limit("shop", concurrency=BATCH))
    for _ in range(2):
        stage(db, [("push", "{}")] * (steps // 2))
        if is_analyzed:
            db.execute("analyze holdfast.steps")
        finish(db, claim(db, batch=BATCH))

    claimed, read = reading(db, calls.claim_steps("w", batch=BATCH))

    ids = [step.step_id for step in claimed]
    assert (len(ids), len({step.call for step in claimed})) == (BATCH, 2)
    assert sorted(ids) == list(range(min(ids), min(ids) + BATCH)), "not in the order of their due times"
    entries = sum(count for name, count in read.rows.items() if name.startswith("steps"))
    assert entries <= 20 * BATCH, read.most
