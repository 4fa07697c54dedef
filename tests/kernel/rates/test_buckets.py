"""When a bucket is charged: at one time per claim, which never goes back, so that no refill counts twice."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.kernel import limit_calls
from holdfast.kernel.db import run
from kernel.limits import ids, limit
from kernel.steps import DB, claim, claim_one, start, value

pytestmark = pytest.mark.one_server
SECOND = timedelta(seconds=1)
AHEAD = """
update holdfast.limit_states set tokens = 5, filled_at = holdfast.clock() + interval '1 h' returning filled_at
"""


def test_all_that_a_claim_takes_is_charged_at_its_time(db: DB) -> None:
    """A-54: a claim that looks twice must not be paid for what comes back meanwhile."""
    limit(db, "shop:*", concurrency=1)
    limit(db, "api", rate=10**9, per=SECOND, burst=10**9)  # full again within a microsecond of any charge
    shops = [start(db, limits=["shop:a", "api"]) for _ in range(3)]
    others = [start(db, limits=["api"]) for _ in range(2)]

    assert ids(claim(db, batch=3)) == [shops[0], *others]

    charged = "select tokens::int, filled_at from holdfast.limit_states where name = 'api'"
    claimed_at = value(db, "select distinct claimed_at from holdfast.steps where lease_id is not null")
    assert db.execute(charged).fetchone() == (10**9 - 3, claimed_at)


@pytest.mark.parametrize("how", ["claim", "charge", "rule"])
def test_a_clock_that_goes_back_fills_nothing_twice(db: DB, how: str) -> None:
    """A-54: what came back until the last charge was counted then."""
    limit(db, "api", rate=1, per=SECOND, burst=10)
    start(db, limits=["api"])
    start(db, limits=["api"])
    step = claim_one(db)
    ahead = value(db, AHEAD)

    if how == "claim":
        claim_one(db)
    elif how == "charge":
        run(db, limit_calls.charge_limit(step.step_id, step.lease_id, "api", 1))
    else:
        limit(db, "api", rate=1, per=SECOND, burst=20)

    assert value(db, "select filled_at from holdfast.limit_states") == ahead
    assert value(db, "select tokens::int from holdfast.limit_states") == (5 if how == "rule" else 4)
