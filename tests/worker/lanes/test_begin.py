"""Handlers begin only under a lease that is still good: a process that was frozen may have lost it without notice."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast import Holdfast
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.errors import Unreachable
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done
from holdfast.testing import events
from holdfast.worker.attempt import Attempt, Claim, LeaseRanOut, lease_clock
from holdfast.worker.lanes.processes import Child
from holdfast.worker.loop import Worker
from kernel.steps import DB, step_row
from worker.lanes import cpu
from worker.running import metric, running, seconds, until, worker_of

pytestmark = pytest.mark.one_server
LEASE = 300.0


async def sign_async(mark: str) -> int:
    return cpu.sign(mark)


def frozen_after_its_first_claim(hf: Holdfast, meanwhile: Callable[[], object]) -> Worker:
    """A worker for which its first leases ran out between the claim and the handlers, and that cannot renew them."""
    worker = worker_of(hf, lease=seconds(LEASE), concurrency=1)
    hand_out, frozen = worker.claimer._hand_out, []

    def thaw(attempts: list[Attempt]) -> None:
        if not frozen:
            frozen.append(meanwhile())
            for one in attempts:
                one.renewed_at -= LEASE
        hand_out(attempts)

    async def cut(_call: Any) -> Any:
        raise Unreachable("cut")

    worker.claimer._hand_out = thaw  # type: ignore[method-assign]
    worker.leases._connection.make = cut  # type: ignore[method-assign]
    return worker


@pytest.mark.parametrize(
    ("handler", "is_cpu"), [(cpu.sign, False), (sign_async, False), (cpu.sign, True)], ids=["thread", "loop", "process"]
)
def test_what_was_not_begun_before_its_lease_ran_out_is_given_back(
    hf: Holdfast, db: DB, tmp_path: Path, handler: object, is_cpu: bool
) -> None:
    """W-61: nobody else had it meanwhile, so it is due again, and is not charged."""
    mark = tmp_path / "mark"
    handle = hf.task(name="sign", cpu=is_cpu)(handler).start(mark=str(mark))  # type: ignore[call-overload]

    with running(frozen_after_its_first_claim(hf, meanwhile=int)) as worker:
        handle.result(timeout=30)

    assert events(db, step=handle.id) == ["claimed", "released", "claimed", "succeeded"]
    assert (mark.read_text(), step_row(db, handle.id)["failures"]) == ("ran\n", 0)
    assert metric(worker, "holdfast_leases_lost_total") == 0


def test_what_another_has_by_now_is_not_begun(hf: Holdfast, db: DB, tmp_path: Path) -> None:
    """W-61, C-62: the other keeps it, and nothing is written."""
    mark = tmp_path / "mark"
    handle = hf.task(cpu.sign).start(mark=str(mark))

    def take_over() -> None:
        db.execute("update holdfast.steps set lease_until = holdfast.clock() - interval '1 s'")
        run(db, calls.rescue_steps())
        run(db, calls.claim_steps("another", lease=seconds(3600)))

    with running(frozen_after_its_first_claim(hf, take_over)) as worker:
        until(lambda: metric(worker, "holdfast_settle_refused_total"), "the refusal")

    assert not mark.exists()
    assert step_row(db, handle.id)["lease_owner"] == "another"
    assert events(db, step=handle.id) == ["claimed", "expired", "claimed"]


@pytest.mark.parametrize("is_renewed", [False, True], ids=["run out", "renewed"])
def test_a_process_that_was_frozen_begins_only_what_is_still_leased(
    hf: Holdfast, tmp_path: Path, is_renewed: bool
) -> None:
    """W-61: its worker may have lost the lease meanwhile, or renewed it; then the handler runs, once."""
    mark = tmp_path / "mark"
    hf.task(cpu=True)(cpu.sign)
    step = ClaimedStep(1, None, "sign", json.dumps({"mark": str(mark)}), 1, 1, datetime.now(UTC), None)
    executor = HandlerExecutor(hf.dsn, "w", None, seconds(1))
    child = Child(hf.dsn)
    one = Attempt(step, hf._engine.registry.find("sign"), executor, LEASE, Claim(1, lease_clock() - LEASE + 1))
    process = psutil.Process(child.process.pid)
    process.suspend()
    with ThreadPoolExecutor(1) as thread:
        outcome = thread.submit(child.run, one)
        until(lambda: lease_clock() - one.claim.claimed_at > LEASE, "the end of the lease")
        if is_renewed:
            one.renewed_at = lease_clock()
        process.resume()
        if is_renewed:
            assert isinstance(outcome.result(timeout=30), Done)
        else:
            with pytest.raises(LeaseRanOut):
                outcome.result(timeout=30)
    child.process.kill()
    child.process.join()

    assert (mark.read_text() if mark.exists() else "") == ("ran\n" if is_renewed else "")
