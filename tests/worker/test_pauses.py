"""A worker releases what it has fetched and not begun when the run is paused or stopped."""

from __future__ import annotations

import threading

import pytest

from holdfast import Holdfast
from holdfast.worker import claimer
from kernel.plans import draft, halt, install
from kernel.steps import DB, value
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
