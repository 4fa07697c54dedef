"""Who asks is told, in a thread of their own; one that raises or hangs is alone with it."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import psycopg
import pytest

from flow.asking import count_calls, counted_calls
from holdfast import Holdfast
from holdfast.errors import BadDefinition, BadInput
from holdfast.flow.define import Flow
from holdfast.flow.events import CATALOGUE, Event
from holdfast.testing import drain
from worker.running import DB, burst, metric, until, working

pytestmark = [pytest.mark.one_server, pytest.mark.own_database]  # it reads how often functions were called


@pytest.fixture
def order(hf: Holdfast) -> Flow:
    order = hf.flow("order")

    @order.step
    def reserve(order_id: int) -> int:
        return order_id

    @order.step(after=reserve)
    def charge(reserve: int) -> int:
        return reserve

    return order


def names(told: list[Event]) -> list[str]:
    return [event.name for event in told]


def test_a_subscriber_is_told_of_the_events_it_asked_for(hf: Holdfast, order: Flow) -> None:
    """T-82, T-91: by name, from the user's own code; a completed step says how long it took."""
    told: list[Event] = []

    @hf.on("flow.step.completed")
    def note(event: Event) -> None:
        told.append(event)

    run = order.start(order_id=7)
    drain(hf)

    assert [(event.run_id, event.payload["step"]) for event in told] == [(run.id, "reserve"), (run.id, "charge")]
    assert all(event.payload["execution_duration"] for event in told)


def test_a_pattern_names_several_events(hf: Holdfast, order: Flow) -> None:
    told: list[Event] = []
    hf.on("flow.run.*")(told.append)

    order.start(order_id=7)
    drain(hf)

    assert names(told) == ["flow.run.initialized", "flow.run.started", "flow.run.completed"]


def test_a_function_that_is_taken_off_is_called_no_more(hf: Holdfast, order: Flow) -> None:
    told: list[Event] = []
    others: list[Event] = []
    hf.on("flow.run.*")(told.append)
    hf.on("flow.step.completed")(told.append)
    hf.on("flow.run.completed")(others.append)

    hf.off(told.append)
    order.start(order_id=7)
    drain(hf)

    assert (told, names(others)) == ([], ["flow.run.completed"])
    with pytest.raises(BadInput):
        hf.off(told.append)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("step.completed", ["flow.step.completed"] * 2),
        ("task.*", ["flow.run.initialized", "flow.run.started", "flow.run.completed"]),
        ("workflow.task_finalization_completed", ["flow.workflow.finalization_completed"] * 2),
    ],
)
def test_a_name_of_old_still_subscribes_with_a_warning_that_says_the_new_one(
    hf: Holdfast, order: Flow, old: str, new: list[str]
) -> None:
    told: list[Event] = []

    with pytest.warns(DeprecationWarning, match=new[0]) as warned:
        hf.on(old)(told.append)
    order.start(order_id=7)
    drain(hf)

    assert warned[0].filename == __file__
    assert names(told) == new


def test_an_async_function_may_subscribe(hf: Holdfast, order: Flow) -> None:
    told: list[str] = []

    @hf.on("flow.run.completed")
    async def note(event: Event) -> None:
        told.append(event.name)

    order.start(order_id=7)
    drain(hf)

    assert told == ["flow.run.completed"]


@pytest.mark.parametrize(
    ("name", "near"), [("flow.step.complete", "flow.step.completed"), ("nothing.like.it", r"work\.task\.\*")]
)
def test_a_name_that_is_not_in_the_catalogue_is_refused_and_near_ones_are_named(
    hf: Holdfast, name: str, near: str
) -> None:
    with pytest.raises(BadDefinition, match=f"{name}.*{near}"):
        hf.on(name)


def test_a_subscriber_that_raises_changes_nothing_and_is_counted(hf: Holdfast, order: Flow, log_lines: Any) -> None:
    """T-91: the one beside it is told all the same."""
    told: list[Event] = []

    @hf.on("flow.step.completed")
    def fail(_event: Event) -> None:
        raise ConnectionError("the collector is down")

    hf.on("flow.step.completed")(told.append)
    run = order.start(order_id=7)
    worker = burst(hf)

    assert run.result(1) == {"reserve": 7, "charge": 7}
    assert len(told) == 2
    assert metric(worker, "holdfast_notifications_total", result="failed") == 2
    assert metric(worker, "holdfast_notifications_total", result="delivered") == 2
    assert "subscriber.failed" in {line["event"] for line in log_lines}


def test_a_subscriber_that_hangs_holds_up_no_run_and_no_other_subscriber(
    hf: Holdfast, order: Flow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """T-91: and the worker stops in order."""
    monkeypatch.setattr("holdfast.worker.drain.LAST_CALLS", 0.5)
    told: list[Event] = []
    let_go = threading.Event()
    hf.on("flow.step.completed")(lambda _event: let_go.wait(60))
    hf.on("flow.run.completed")(told.append)

    runs = [order.start(order_id=number) for number in range(5)]
    with working(hf) as worker:
        assert [run.result(30)["charge"] for run in runs] == list(range(5))
        until(lambda: len(told) == 5, "the other subscriber")
    let_go.set()

    assert worker.states.worker == "stopped"


def test_what_is_too_much_is_dropped_counted_and_logged(
    hf: Holdfast, order: Flow, monkeypatch: pytest.MonkeyPatch, log_lines: Any
) -> None:
    monkeypatch.setattr("holdfast.notify.MOST_WAITING", 1)
    monkeypatch.setattr("holdfast.worker.drain.LAST_CALLS", 0.5)
    hangs, let_go = threading.Event(), threading.Event()

    @hf.on("flow.step.*")
    def hang(_event: Event) -> None:
        hangs.set()
        let_go.wait(60)

    monkeypatch.setattr("holdfast.notify.MOST_WAITING", 10_000)
    run = order.start(order_id=7)
    worker = burst(hf)
    let_go.set()

    assert run.result(1)["charge"] == 7
    assert hangs.is_set()
    assert metric(worker, "holdfast_notifications_total", result="failed") >= 1
    assert "subscriber.dropped" in {line["event"] for line in log_lines}


def test_of_two_workers_each_tells_what_it_did(hf: Holdfast, order: Flow, dsn: str) -> None:
    """T-89: once in all, whoever of them moved the task."""
    other = Holdfast(dsn)
    other_order = other.flow("order")
    other_order.step(name="reserve")(lambda order_id: order_id)
    other_order.step(name="charge", after="reserve")(lambda reserve: reserve)
    told: list[Event] = []
    for app in (hf, other):
        app.on("flow.run.*")(told.append)

    runs = [order.start(order_id=number) for number in range(20)]
    with working(hf), working(other):
        for run in runs:
            run.result(30)
    other.close()

    each = Counter((event.name, event.run_id) for event in told)
    assert set(each.values()) == {1}
    assert set(each) == {
        (name, run.id) for run in runs for name in ("flow.run.initialized", "flow.run.started", "flow.run.completed")
    }


def test_a_start_whose_key_was_used_before_starts_nothing_and_is_not_told(hf: Holdfast, order: Flow) -> None:
    told: list[Event] = []
    hf.on("flow.run.initialized")(told.append)

    first = order.options(key="order 7").start(order_id=7)
    until(lambda: told, "the first start")
    again = order.options(key="order 7").start(order_id=7)
    hf._engine.subscribers.flush(5)

    assert again.id == first.id
    assert len(told) == 1


def test_a_start_inside_a_transaction_of_the_callers_is_not_told(hf: Holdfast, order: Flow, dsn: str) -> None:
    """It may be undone; that the task was started is told by the worker that takes it."""
    told: list[Event] = []
    hf.on("flow.run.*")(told.append)

    with psycopg.connect(dsn) as connection:
        order.options(conn=connection).start(order_id=7)
        hf._engine.subscribers.flush(5)
        connection.rollback()

    assert told == []


QUERIES = {"touched_tasks", "settled_tasks", "closed_tasks"}


def test_an_app_without_subscribers_asks_and_tells_nothing(hf: Holdfast, order: Flow, db: DB) -> None:
    """T-86: not one statement for it."""
    count_calls(db)
    order.start(order_id=7)

    worker = burst(hf)

    assert not worker.hooks.is_watched
    assert not counted_calls(hf, db).keys() & QUERIES


@pytest.mark.parametrize(
    ("name", "questions"),
    [
        ("flow.run.initialized", set()),
        ("flow.run.started", {"touched_tasks"}),
        ("flow.run.completed", {"closed_tasks"}),
        ("flow.step.completed", {"settled_tasks", "touched_tasks"}),
    ],
)
def test_only_what_somebody_subscribed_to_is_asked_for(
    hf: Holdfast, order: Flow, db: DB, name: str, questions: set[str]
) -> None:
    """Whether a task is over costs its own row; who asks for no more pays for no more."""
    count_calls(db)
    told: list[Event] = []
    hf.on(name)(told.append)

    run = order.start(order_id=7)
    drain(hf)

    assert counted_calls(hf, db).keys() & QUERIES == questions
    assert {(event.name, event.run_id) for event in told} == {(name, run.id)}


def test_every_name_says_what_it_tells() -> None:
    """T-147."""
    assert all(entry.published_when.endswith(".") and entry.fields for entry in CATALOGUE.values())
