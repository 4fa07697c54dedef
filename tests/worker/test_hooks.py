"""Whoever asked is told what became of a step, once it is settled: best effort, and never in the way."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast import Ctx, Holdfast, RetryPolicy
from holdfast.models import Ending
from kernel.steps import DB, step_row
from worker.running import burst, metric, seconds, until, working

pytestmark = pytest.mark.one_server


@pytest.fixture
def either(hf: Holdfast) -> Any:
    @hf.task(retry=RetryPolicy(limit=2, base=seconds(0)))
    def either(ctx: Ctx, number: int) -> int:
        if number < 0:
            raise ValueError("below zero")
        return number

    return either


def test_a_hook_is_told_after_the_database_accepted(hf: Holdfast, db: DB, either: Any) -> None:
    """W-10, W-11, W-25, W-26, W-53."""
    told: list[tuple[str, str, Any]] = []

    @hf.on_ending
    def note(ending: Ending) -> None:
        told.append((ending.event, ending.state, ending.step_id))

    good, bad = either.start(number=1), either.start(number=-1)
    burst(hf)

    assert ("succeeded", "done", good.id) in told
    assert [t for t in told if t[2] == bad.id] == [("retried", "pending", bad.id), ("failed", "error", bad.id)]
    assert step_row(db, bad.id)["state"] == "error"


def test_a_hook_that_fails_changes_nothing_and_is_counted(hf: Holdfast, either: Any, log_lines: Any) -> None:
    """W-53, C-66: the one beside it is told all the same."""
    told = threading.Event()

    @hf.on_ending
    def fail(_ending: Ending) -> None:
        raise ConnectionError("the API is down")

    @hf.on_ending
    def note(_ending: Ending) -> None:
        told.set()

    handle = either.start(number=1)
    worker = burst(hf)

    assert handle.result() == 1
    assert told.is_set()
    assert metric(worker, "holdfast_notifications_total", result="failed") == 1
    assert metric(worker, "holdfast_notifications_total", result="delivered") == 1
    assert "hook.failed" in {line["event"] for line in log_lines}


def test_a_hook_that_hangs_holds_nothing_up(hf: Holdfast, either: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """W-53, C-66: steps are settled, and the worker stops in order."""
    monkeypatch.setattr("holdfast.worker.drain.LAST_CALLS", 0.5)
    hangs, let_go = threading.Event(), threading.Event()

    @hf.on_ending
    def hang(_ending: Ending) -> None:
        hangs.set()
        let_go.wait(60)

    handles = [either.start(number=n) for n in range(20)]
    with working(hf) as worker:
        assert [handle.result(timeout=30) for handle in handles] == list(range(20))
        until(hangs.is_set, "the hook")
    let_go.set()

    assert worker.states.worker == "stopped"


def test_an_outcome_that_was_not_accepted_is_not_told(hf: Holdfast, db: DB) -> None:
    """W-53, W-61."""
    told: list[Ending] = []
    hf.on_ending(told.append)  # type: ignore[arg-type]

    @hf.task
    def work(ctx: Ctx) -> None:
        db.execute("select holdfast.cancel(%s, 'by hand')", [str(ctx.step_id)])

    work.start()
    worker = burst(hf)

    assert told == []
    assert metric(worker, "holdfast_settle_refused_total") == 1


def test_durations_and_counts_are_recorded_with_each_kind(hf: Holdfast, either: Any) -> None:
    """W-54, W-56."""
    for number in (1, 2, -1):
        either.start(number=number)
    worker = burst(hf)

    assert metric(worker, "holdfast_handler_seconds_count", kind="either") == 4
    assert metric(worker, "holdfast_settled_total", kind="either", event="succeeded") == 2
    assert metric(worker, "holdfast_settled_total", kind="either", event="retried") == 1
    assert metric(worker, "holdfast_settled_total", kind="either", event="failed") == 1
    assert metric(worker, "holdfast_claimed_total", kind="either") == 4
