"""Subscribers to the events of tasks are called once a task is settled: best effort, and never in the way."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from holdfast import Continue, Ctx, Event, Holdfast, RetryPolicy, Snooze
from holdfast.models import Ending, Release
from holdfast.work.events import CATALOGUE
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


def test_every_event_of_a_task_is_published_with_what_the_catalogue_says(hf: Holdfast, db: DB, either: Any) -> None:
    """W-10, W-11, W-25, W-26, W-53: after the database accepted it, in the order in which it happened."""
    told: list[Event] = []
    hf.on("work.task.*")(told.append)

    @hf.task
    def waits(ctx: Ctx) -> None:
        if ctx.attempt == 1:
            raise Snooze(after=0)
        if ctx.attempt == 2:
            raise Continue(cursor=1)

    good, bad, odd, dropped = either.start(number=1), either.start(number=-1), waits.start(), either.start(number=2)
    dropped.cancel("not wanted")
    burst(hf)
    state = step_row(db, bad.id)["state"]
    bad.retry("mended")
    burst(hf)
    bad.resolve("never mind")
    hf._engine.subscribers.flush(5)

    def names(task: Any) -> list[str]:
        return [event.name.removeprefix("work.task.") for event in told if hf.handle(event.id).id == task.id]

    assert names(good) == ["succeeded"]
    assert names(bad) == ["retried", "failed", "reopened", "retried", "failed", "resolved"]
    assert names(odd) == ["snoozed", "continued", "succeeded"]
    assert names(dropped) == ["cancelled"]
    assert state == "error"
    assert {event.name for event in told} | {"work.task.released"} == set(CATALOGUE)
    for event in told:
        fields = CATALOGUE[event.name].fields
        assert set(event.payload) == set(fields), event.name
        assert all(isinstance(event.payload[name], kind) for name, kind in fields.items()), event
    failed = next(event for event in told if event.name == "work.task.failed")
    assert (failed.payload["kind"], failed.payload["attempt"]) == ("either", 2)
    assert (failed.payload["error"]["type"], failed.payload["error"]["message"]) == ("ValueError", "below zero")


def test_a_worker_that_stops_says_which_tasks_it_hands_back(hf: Holdfast, either: Any) -> None:
    """W-53: what was claimed and not begun."""
    watcher = hf.work.watcher
    told: list[Event] = []
    hf.on("work.task.released")(told.append)

    watcher.ended("w", [Ending(7, "either", 1, "released", "pending", Release())], [], lambda _ok: None)
    hf._engine.subscribers.flush(5)

    assert [(event.id, event.payload["kind"]) for event in told] == [(7, "either")]


def test_a_subscriber_that_fails_changes_nothing_and_is_counted(hf: Holdfast, either: Any, log_lines: Any) -> None:
    """W-53, C-66: the one beside it is told all the same."""
    told = threading.Event()

    @hf.on("work.task.succeeded")
    def fail(_event: Event) -> None:
        raise ConnectionError("the API is down")

    @hf.on("work.task.succeeded")
    def note(_event: Event) -> None:
        told.set()

    handle = either.start(number=1)
    worker = burst(hf)

    assert handle.result() == 1
    assert told.is_set()
    assert metric(worker, "holdfast_notifications_total", result="failed") == 1
    assert metric(worker, "holdfast_notifications_total", result="delivered") == 1
    assert "subscriber.failed" in {line["event"] for line in log_lines}


def test_a_subscriber_that_hangs_holds_nothing_up(hf: Holdfast, either: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """W-53, C-66: steps are settled, and the worker stops in order."""
    monkeypatch.setattr("holdfast.worker.drain.LAST_CALLS", 0.5)
    hangs, let_go = threading.Event(), threading.Event()

    @hf.on("work.*")
    def hang(_event: Event) -> None:
        hangs.set()
        let_go.wait(60)

    handles = [either.start(number=n) for n in range(20)]
    with working(hf) as worker:
        assert [handle.result(timeout=30) for handle in handles] == list(range(20))
        until(hangs.is_set, "the subscriber")
    let_go.set()

    assert worker.states.worker == "stopped"


def test_an_outcome_that_was_not_accepted_is_not_published(hf: Holdfast, db: DB) -> None:
    """W-53, W-61."""
    told: list[Event] = []
    hf.on("work.*")(told.append)

    @hf.task
    def work(ctx: Ctx) -> None:
        db.execute("select holdfast.cancel(%s, 'by hand')", [str(ctx.step_id)])

    work.start()
    worker = burst(hf)

    assert told == []
    assert metric(worker, "holdfast_settle_refused_total") == 1


def test_without_a_subscriber_a_worker_makes_no_endings(hf: Holdfast, either: Any) -> None:
    """W-53: nobody pays for what nobody listens to."""
    either.start(number=1)

    assert not burst(hf).hooks.is_watched


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
