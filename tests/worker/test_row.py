"""A worker's row says what the worker does between two writes of it, not that it passed through recovery."""

from __future__ import annotations

import threading

import pytest

from holdfast import Holdfast
from holdfast.worker.loop import Worker
from kernel.steps import DB
from worker.running import read, running, seconds, until, worker_of

pytestmark = pytest.mark.one_server


def states(db: DB, worker: Worker, relation: str = "workers") -> list[str]:
    query = f"select state from holdfast.{relation} where worker = %s order by 1"
    return [state for (state,) in db.execute(query, [worker.options.identity])]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{}, {"listens": False, "recovery_interval": seconds(0.05)}], ids=["hints", "polls"]
)
def test_a_worker_without_work_is_idle(hf: Holdfast, db: DB, options: dict[str, object]) -> None:
    """W-07, W-64: it read `recovery` for good, for only then was its row written."""
    worker = worker_of(hf, queues=("default", "other"), **options)

    with running(worker):
        until(lambda: states(db, worker) == ["idle", "idle"], "it was idle")

    assert states(db, worker) == []


def test_a_worker_that_recovers_as_it_falls_asleep_is_idle(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch
) -> None:
    """W-07, W-64: a recovery between its mark and its next poll wrote `polling`, which stayed for 30 s."""
    worker = worker_of(hf)
    fall_asleep = worker._fall_asleep

    async def fall_asleep_and_recover() -> None:
        await fall_asleep()
        worker._recovery.hasten()

    monkeypatch.setattr(worker, "_fall_asleep", fall_asleep_and_recover)
    with running(worker):
        until(lambda: worker._is_asleep and worker.states.worker == "idle", "it fell asleep")
        assert states(db, worker) == ["idle"]


def test_a_worker_with_work_is_processing_and_then_drains(hf: Holdfast, db: DB) -> None:
    """W-09, W-62, W-64."""
    began, may_end = threading.Event(), threading.Event()

    @hf.task
    def hold() -> None:
        began.set()
        read(may_end)

    worker = worker_of(hf, queues=("default", "other"))
    with running(worker):
        until(lambda: states(db, worker) == ["idle", "idle"], "it was idle")
        hold.start()
        read(began)
        assert states(db, worker, "worker_list") == ["processing"]
        assert worker.settler._loop is not None
        worker.settler._loop.call_soon_threadsafe(worker.stop)
        until(lambda: states(db, worker, "worker_list") == ["draining"], "it drained")
        may_end.set()


def test_a_worker_that_connects_anew_is_polling(hf: Holdfast, db: DB) -> None:
    """W-03, W-64: it read `connecting` until its next recovery."""
    worker = worker_of(hf, listens=False, recovery_interval=seconds(3600), poll_min=seconds(3600))
    with running(worker):
        until(lambda: worker.states.worker == "idle", "it was idle")
        assert states(db, worker) == ["polling"]


def test_a_failure_at_startup_is_waited_for(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """W-13, W-27: a thread that could not be started ended the worker."""

    @hf.task
    def count() -> int:
        return 1

    worker = worker_of(hf, listens=False)
    start, failures = worker.leases.start, iter([True, True])

    def failing() -> None:
        if next(failures, False):
            raise RuntimeError("can't start new thread")
        start()

    monkeypatch.setattr(worker.leases, "start", failing)
    with running(worker):
        assert count.start().result(timeout=30) == 1

    assert worker.states.moves["startup", "error_wait"] == 1
    assert worker.states.moves["error_wait", "connecting"] == 1
