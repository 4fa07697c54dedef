"""A call makes sure that its steps stay its own while it talks to another system."""

from __future__ import annotations

from typing import Any

import pytest
from typing_extensions import TypedDict

from holdfast import Batch, Holdfast
from holdfast.errors import LeaseLost
from holdfast.testing import Clock
from kernel.steps import DB, column
from worker.running import burst, seconds

pytestmark = pytest.mark.one_server


class Job(TypedDict):
    n: int


@pytest.mark.parametrize(("at_least", "is_renewed"), [(10, False), (1000, True)], ids=["long enough", "too short"])
def test_a_hold_marks_what_is_lost_and_renews_what_runs_out(
    hf: Holdfast, db: DB, clock: Clock, *, at_least: int, is_renewed: bool
) -> None:
    """R3: a lease that outlasts the call is only read"""
    found: list[Any] = []

    @hf.task(batch=10, lease=100)
    def work(batch: Batch, jobs: list[Job]) -> list[int]:
        before = column(db, batch.steps[0].step_id, "lease_until")
        db.execute("select holdfast.cancel(%s)", [str(batch.steps[1].step_id)])
        clock.advance(1)
        batch.hold(seconds(at_least))
        found.append([step.cancelled for step in batch.steps])
        found.append(column(db, batch.steps[0].step_id, "lease_until") > before)
        db.execute("select holdfast.cancel(%s)", [str(batch.steps[0].step_id)])
        with pytest.raises(LeaseLost):
            batch.hold(seconds(at_least))
        return [job["n"] for job in jobs]

    clock.freeze()
    for number in range(2):
        work.start({"n": number})
    burst(hf)

    assert found == [[False, True], is_renewed]
