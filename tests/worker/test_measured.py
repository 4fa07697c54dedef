"""What a worker measures beside its work: steps without a try left, and steps that are due in its queues."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import Holdfast, RetryPolicy
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from holdfast.worker.probe import Probe
from kernel.steps import DB, claim_one, start
from worker.running import burst, metric, running, scraped, seconds, until, worker_of

pytestmark = pytest.mark.one_server


def test_steps_whose_tries_are_used_up_are_counted(hf: Holdfast, db: DB, clock: Clock) -> None:
    """W-36, W-56: by a handler that fails and by a worker that dies; not what a handler gave up by itself."""

    @hf.task(retry=RetryPolicy(limit=2, base=seconds(0)))
    def stumble() -> None:
        raise ConnectionError

    @hf.task
    def give_up() -> None:
        raise ValueError

    @hf.task(name="lost", retry=RetryPolicy(limit=1))
    def lose() -> None: ...

    burst(hf)  # so that the policies are known
    start(db, "lost", {})
    claim_one(db, "a worker that died", lease=seconds(30))
    clock.advance(seconds(31))
    stumble.start()
    give_up.start()

    worker = burst(hf)

    assert [metric(worker, "holdfast_exhausted_total", kind=kind) for kind in ("stumble", "give_up", "lost")] == [
        1,
        0,
        1,
    ]
    assert metric(worker, "holdfast_rescued_total") == 1


@pytest.mark.parametrize("is_probed", [True, False])
def test_the_backlog_is_counted_where_somebody_may_read_it(hf: Holdfast, db: DB, is_probed: bool) -> None:
    """W-56: due now, in each queue that the worker serves; without a probe nothing is counted."""
    for queue, due in (("default", 3), ("other", 1), ("not served", 5)):
        for _ in range(due):
            start(db, "nobody", {}, queue=queue)
        run(db, calls.pause_queue(queue, "to be counted"))
    start(db, "nobody", {}, due_at=db.execute("select now() + interval '1 hour'").fetchone()[0])  # type: ignore[index]
    worker = worker_of(hf, queues=("default", "other"), listens=False, recovery_interval=seconds(0.01))
    probe = Probe("127.0.0.1", 0)
    if is_probed:
        probe.start(worker)
    try:
        with running(worker):
            until(lambda: worker.states.moves["idle", "connecting"] > 2, "it went round")
    finally:
        probe.stop()

    assert ("holdfast_backlog{" in scraped(worker)) is is_probed
    found = [metric(worker, "holdfast_backlog", queue=queue) for queue in ("default", "other", "not served")]
    assert found == ([3, 1, 0] if is_probed else [0, 0, 0])


def test_a_backlog_is_counted_up_to_a_limit(db: DB) -> None:
    """W-56: over all priorities together."""
    for priority in (0, 3, 3, 9):
        start(db, priority=priority)
    run(db, calls.enlist_worker("w", ["default"]))

    found: list[Any] = [run(db, calls.measured_upkeep("w", most=most))[0].backlog for most in (0, 3, 10)]

    assert found == [{}, {"default": 3}, {"default": 4}]
