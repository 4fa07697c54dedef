"""A worker releases what it has fetched and not begun when the run is paused or stopped."""

from __future__ import annotations

import json
import os
import threading
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from holdfast import Batch, Holdfast
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.worker import claimer
from kernel.plans import draft, halt, install
from kernel.steps import DB, stage, value
from worker.lanes import cpu
from worker.running import read, running, until, worker_of

pytestmark = pytest.mark.one_server
HELD = "select count(*) from holdfast.steps where lease_id is not null"
RELEASED = "select count(*) from holdfast.journal where event = 'released'"


@pytest.mark.parametrize("what", ["pause", "stop"])
def test_what_was_fetched_ahead_is_released(hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    """R11: only the step that has begun runs to its end; the others cost no attempt that counts."""
    monkeypatch.setattr(claimer, "SURPLUS_AFTER", 1e9)  # else they are released because they wait
    began, may_end = threading.Event(), threading.Event()
    calls: list[int] = []

    @hf.task(name="item")
    def item(n: int) -> None:
        calls.append(n)
        if len(calls) > 50:  # by then the worker knows that they are quick, and fetches ahead
            began.set()
            read(may_end)

    install(db, 400)
    run_id = draft(db, 300, machine="test.rush")
    with running(worker_of(hf, concurrency=1)):
        assert read(began)
        until(lambda: value(db, HELD) > 1, "a step that was fetched ahead")
        halt(db, what, run_id)
        until(lambda: value(db, HELD) == 1, "the release of the others")
        assert value(db, RELEASED) > 0
        may_end.set()

    assert len(calls) == 51
    assert value(db, "select max(failures) from holdfast.steps") == 0
    assert value(db, "select count(*) from holdfast.violations()") == 0


@pytest.mark.parametrize("what", ["pause", "stop"])
def test_a_step_that_waits_for_a_core_is_released(
    hf: Holdfast, db: DB, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, what: str
) -> None:
    """By a worker with idle threads that fetches ahead and finds nothing more: it would sleep for five minutes."""
    monkeypatch.setattr(claimer, "SURPLUS_AFTER", 1e9)  # else they are released because they wait
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    gate = tmp_path / "gate"
    hf.task(name="item", cpu=True)(cpu.until_there)
    hf.task(name="other")(lambda: None)
    install(db, 400)
    run_id = UUID(str(run(db, calls.start_run("test.rush", "plan", "test.item"))[0]))
    stage(db, [("item", json.dumps({"mark": str(gate)}))] * 3, run_id=run_id, machine="test.item")
    worker = worker_of(hf, concurrency=10, poll_min=timedelta(minutes=5), poll_max=timedelta(minutes=5))
    worker.claimer._batch_size.size = 64
    with running(worker):
        until(lambda: worker.state == "idle" and value(db, HELD) == 3, "the claim of all")
        halt(db, what, run_id)
        until(lambda: value(db, HELD) == 1, "the release of the others")
        gate.touch()

    assert value(db, RELEASED) == 2
    assert value(db, "select max(failures) from holdfast.steps") == 0


@pytest.mark.parametrize("what", ["pause", "stop"])
def test_a_call_that_waits_for_more_steps_is_released(hf: Holdfast, db: DB, what: str) -> None:
    """By a worker that does nothing else, and would sleep until the time of the call is over."""
    calls: list[int] = []

    @hf.task(name="item", batch=10, batch_wait=180, lease=600)
    def item(batch: Batch, items: list[dict[str, int]]) -> list[None]:
        calls.append(len(items))
        return [None] * len(items)

    install(db, 400)
    with running(worker_of(hf, poll_max=timedelta(minutes=5))) as worker:
        until(lambda: worker.is_ready, "the kind")
        run_id = draft(db, 3, machine="test.rush")
        until(lambda: value(db, HELD) == 3, "the claim")
        halt(db, what, run_id)
        until(lambda: value(db, HELD) == 0, "the release")

    assert calls == []
    assert value(db, RELEASED) == 3
    assert value(db, "select max(failures) from holdfast.steps") == 0
