"""Leases while handlers run: kept by renewal, lost by takeover, and unknown while the database is away."""

from __future__ import annotations

import threading
from datetime import datetime

import pytest

from holdfast import Batch, Ctx, Holdfast
from holdfast.errors import Unreachable
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events
from holdfast.worker import leases
from kernel.steps import DB, step_row
from worker.running import metric, read, running, seconds, until, worker_of, working

pytestmark = pytest.mark.one_server


class Held:
    """A handler that goes on until it is let go."""

    def __init__(self, hf: Holdfast) -> None:
        self.began, self.go = threading.Event(), threading.Event()
        self.calls = 0
        self.stopped: list[str | None] = []

        @hf.task
        def work(ctx: Ctx) -> str:
            self.calls += 1
            self.began.set()
            try:
                while not self.go.wait(0.01):
                    pass
            finally:
                self.stopped.append(ctx.stop_reason)
            return "done"

        self.task = work


@pytest.fixture
def held(hf: Holdfast) -> Held:
    return Held(hf)


def test_a_handler_longer_than_three_leases_keeps_its_lease_and_runs_once(
    hf: Holdfast, db: DB, clock: Clock, held: Held
) -> None:
    """W-57, C-62: two more workers look for lost steps all the while.

    The database's clock moves on when the lease was renewed, so a machine that is busy lets no lease run out there.
    """
    lease = seconds(2)
    clock.freeze()
    handle = held.task.start()
    with working(hf, lease=lease) as worker:
        assert read(held.began)
        others = {"lease": lease, "recovery_interval": seconds(0.05)}
        with working(hf, **others), working(hf, **others):
            for _ in range(4):
                whole = clock.now() + lease
                until(lambda: step_row(db, handle.id)["lease_until"] == whole, "a whole lease")  # noqa: B023
                clock.advance(seconds(1.9))
            held.go.set()
            assert handle.result(timeout=30) == "done"

    assert (held.calls, events(db, step=handle.id)) == (1, ["claimed", "succeeded"])
    assert metric(worker, "holdfast_leases_renewed_total") >= 3
    assert metric(worker, "holdfast_leases_lost_total") == 0


def test_a_lost_lease_stops_the_handler_and_its_outcome_is_not_accepted(hf: Holdfast, db: DB, held: Held) -> None:
    """W-61, C-62: counted, and the step stays the other's."""
    handle = held.task.start()
    with working(hf, lease=seconds(3)) as worker:
        assert read(held.began)
        with db.transaction():
            db.execute(
                "update holdfast.steps set lease_until = holdfast.clock() - interval '1 s' where id = %s", [handle.id]
            )
            run(db, calls.rescue_steps())
            run(db, calls.claim_steps("another", lease=seconds(3600)))
        until(lambda: held.stopped, "the stop")
        until(lambda: worker.in_flight == 0, "the letting go")

    assert held.stopped[0] is not None
    assert "its lease is lost" in held.stopped[0]
    assert step_row(db, handle.id)["lease_owner"] == "another"
    assert metric(worker, "holdfast_leases_lost_total") == 1
    assert metric(worker, "holdfast_settle_refused_total") == 1


def test_a_renewal_that_fails_in_transit_is_unknown_and_not_lost(hf: Holdfast, db: DB, held: Held) -> None:
    """C-62: the handler goes on, and its outcome counts while the lease has not run out."""
    handle = held.task.start()
    worker = worker_of(hf, lease=seconds(3))
    make, failures = worker.leases._connection.make, threading.Event()

    async def failing(call):  # type: ignore[no-untyped-def]
        if not failures.is_set():
            failures.set()
            raise Unreachable("cut in transit")
        return await make(call)

    worker.leases._connection.make = failing  # type: ignore[method-assign]
    with running(worker):
        assert read(failures)
        until(lambda: metric(worker, "holdfast_leases_renewed_total") >= 1, "the renewal after it")
        held.go.set()
        assert handle.result(timeout=30) == "done"

    assert held.stopped == [None]
    assert metric(worker, "holdfast_leases_lost_total") == 0


@pytest.mark.parametrize("error", [Unreachable("cut"), OSError("cut"), TimeoutError()], ids=repr)
def test_a_lease_that_ran_out_unrenewed_stops_its_handler(hf: Holdfast, held: Held, error: Exception) -> None:
    """C-62: counted from when the last granted request was sent; nothing is written then."""
    held.task.start()
    worker = worker_of(hf, lease=seconds(0.5), recovery_interval=seconds(3600))

    async def failing(_call):  # type: ignore[no-untyped-def]
        raise error

    worker.leases._connection.make = failing  # type: ignore[method-assign]
    with running(worker):
        until(lambda: held.stopped, "the stop")
        held.go.set()

    assert held.stopped[0] is not None
    assert "its lease ran out" in held.stopped[0]
    assert metric(worker, "holdfast_leases_lost_total") >= 1


def test_all_leases_of_a_running_call_are_renewed(hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEW_AT", 0.0)  # with every look
    began, go = threading.Event(), threading.Event()

    @hf.task(batch=10)
    def work(batch: Batch, items: list[dict[str, int]]) -> list[int]:
        began.set()
        assert read(go)
        return [len(items)] * len(items)

    def ends() -> list[datetime]:
        return [end for (end,) in db.execute("select lease_until from holdfast.steps order by id").fetchall()]

    work.start_many([{"n": n} for n in range(3)])
    with working(hf):
        assert read(began)
        before = ends()
        until(lambda: all(end > first for end, first in zip(ends(), before, strict=True)), "a renewal of each")
        go.set()

    assert [result for (result,) in db.execute("select result from holdfast.steps").fetchall()] == [3] * 3
