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
LOCKS = "select sum(calls) from pg_stat_xact_user_functions where schemaname = 'holdfast' and funcname ~ '^lock_'"


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


def locks(db: DB) -> int:
    """How often functions that lock steps were called."""
    (made,) = db.execute(LOCKS).fetchone() or (None,)
    return int(made or 0)


@pytest.mark.parametrize("per_key", [1, 2])
def test_small_keys_are_locked_together(db: DB, per_key: int) -> None:
    """Each key was read and locked by statements of its own: a drain of tiny keys was many times slower than by one."""
    run(db, calls.define_kind("push", batch=BATCH, batch_by="key"))
    made = []
    for keys in (5, 100):
        stage(db, [("push", f'{{"key": {n % keys}}}') for n in range(keys * per_key)])
        with db.transaction():
            db.execute("set local track_functions = 'all'")
            before = locks(db)
            claimed = run(db, calls.claim_steps("w", batch=1000, calls=keys))
            made.append(locks(db) - before)
        assert (len(claimed), len({step.call for step in claimed})) == (keys * per_key, keys)

    few, many = made
    assert 0 < many <= few
