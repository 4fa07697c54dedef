"""After each settle it is said what is to become of the task, as the database holds it, and a strategy is told."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from typing import Any

import pytest

from flow.asking import count_calls, counted_calls
from holdfast import Ctx, Fail, Holdfast, Retry
from holdfast.flow.coordinator import Coordinator
from holdfast.flow.decisions import Decision
from holdfast.flow.events import Event
from holdfast.testing import Clock, drain, recorded
from worker.running import DB, until, working

pytestmark = [pytest.mark.one_server, pytest.mark.own_database]  # it reads how often functions were called
DIES = """
import os, signal, sys
from holdfast import Holdfast
from holdfast.testing import drain

hf = Holdfast(sys.argv[1])
order = hf.flow("order")
order.step(name="reserve")(lambda: os.getpid())
order.step(name="charge", after="reserve", queue="bank")(lambda reserve: (reserve, os.getpid()))

class Dies:
    def reenqueue(self, decision):
        os.kill(os.getpid(), signal.SIGKILL)

hf.coordinator(strategy=Dies())
print(order.start().id, flush=True)
drain(hf, queues=["default"])
"""


class Notes:
    """A strategy that takes down what it is told."""

    def __init__(self) -> None:
        self.calls: list[Decision] = []

    def reenqueue(self, decision: Decision) -> None:
        self.calls.append(decision)


def said(decisions: Any) -> list[tuple[str, str]]:
    return [(decision.status, decision.action) for decision in decisions]


def test_a_strategy_is_told_of_each_decision_that_a_task_goes_on(hf: Holdfast, clock: Clock) -> None:
    """T-12, T-58, T-60, T-63, T-78, T-92: at once where steps are ready; not when it is over."""
    notes = Notes()
    coordinator = hf.coordinator(strategy=notes)
    order = hf.flow("order")
    order.step(name="reserve")(lambda: 1)
    order.step(name="charge", after="reserve")(lambda: 2)
    clock.freeze()

    run = order.start()
    drain(hf)

    assert run.status().state == "complete"
    assert said(coordinator.decisions) == [("has_ready_steps", "reenqueue"), ("all_complete", "complete")]
    assert [(call.run_id, call.delay) for call in notes.calls] == [(run.id, timedelta(0))]


def test_a_task_whose_only_path_failed_ends_and_is_not_handed_on(hf: Holdfast) -> None:
    """T-09, T-11, T-27, T-59, T-64."""
    notes = Notes()
    coordinator = hf.coordinator(strategy=notes)
    order = hf.flow("order")

    @order.step
    def reserve() -> None:
        raise Fail("sold out")

    order.step(name="charge", after=reserve)(lambda: 1)
    run = order.start()
    drain(hf)

    assert run.status().state == "error"
    assert said(coordinator.decisions) == [("blocked_by_failures", "fail")]
    assert notes.calls == []


def test_the_next_pass_is_due_with_the_earliest_retry(hf: Holdfast, clock: Clock) -> None:
    """T-13, T-61, T-65, T-70, T-71, C-48, C-49: +3 s and +20 s give +3 s and the buffer; the task is not in error."""
    coordinator = hf.coordinator()
    order = hf.flow("order")

    @order.step
    def soon() -> None:
        raise Retry("busy", after=3)

    @order.step
    def late() -> None:
        raise Retry("busy", after=20)

    clock.freeze()
    run = order.start()
    drain(hf)

    last = coordinator.decisions[-1]
    assert (last.status, last.action) == ("waiting_for_dependencies", "reenqueue")
    assert last.delay == timedelta(seconds=3 + 5)
    assert run.status().state == "in_progress"


def test_a_task_with_steps_under_way_goes_on_when_they_are_through(hf: Holdfast, clock: Clock) -> None:
    """T-14, T-62, T-111."""
    notes = Notes()
    hf.coordinator(strategy=notes)
    order = hf.flow("order")

    @order.step
    def quick() -> None: ...

    @order.step
    def slow() -> None:
        until(lambda: notes.calls, "a decision about the other")

    order.start()
    drain(hf)

    assert said(notes.calls) == [("processing", "reenqueue")]
    assert notes.calls[0].delay == timedelta(seconds=10 + 5)


def test_what_is_decided_is_what_the_settle_left_though_the_next_claim_comes_first(hf: Holdfast) -> None:
    """T-12, C-60: asked in the settle's own transaction."""
    coordinator = hf.coordinator()
    order = hf.flow("order")
    order.step(name="a")(lambda: 1)
    order.step(name="b", after="a")(lambda: 1)
    order.step(name="c", after="b")(lambda: 1)

    runs = [order.start() for _ in range(20)]
    with working(hf):
        for run in runs:
            run.result(30)

    one = ["has_ready_steps", "has_ready_steps", "all_complete"]
    of_runs = [[d.status for d in coordinator.decisions if d.run_id == run.id] for run in runs]
    assert of_runs == [one] * len(runs)


def test_a_strategy_that_raises_harms_nothing_and_is_told_of(hf: Holdfast, log_lines: Any) -> None:
    """T-78, T-147."""

    class Broken:
        def reenqueue(self, _decision: Decision) -> None:
            raise ConnectionError("no scheduler")

    hf.coordinator(strategy=Broken())
    order = hf.flow("order")
    order.step(name="a")(lambda: 1)
    order.step(name="b", after="a")(lambda: 2)

    with recorded(hf) as told:
        run = order.start()
        drain(hf)

    assert run.result(1) == {"a": 1, "b": 2}
    (failed,) = [event for event in told if event.name == "flow.workflow.reenqueue_failed"]
    assert failed.payload["error"] == "ConnectionError: no scheduler"
    assert "strategy.failed" in {line["event"] for line in log_lines}


def test_a_strategy_that_hangs_holds_up_no_run_and_no_event(hf: Holdfast, monkeypatch: pytest.MonkeyPatch) -> None:
    """T-78."""
    monkeypatch.setattr("holdfast.worker.drain.LAST_CALLS", 0.5)
    let_go = threading.Event()
    told: list[Event] = []

    class Hangs:
        def reenqueue(self, _decision: Decision) -> None:
            let_go.wait(60)

    hf.coordinator(strategy=Hangs())
    hf.on("flow.run.completed")(told.append)
    order = hf.flow("order")
    order.step(name="a")(lambda: 1)
    order.step(name="b", after="a")(lambda: 2)

    run = order.start()
    drain(hf)

    assert run.result(1) == {"a": 1, "b": 2}
    until(lambda: told, "the event")
    let_go.set()
    assert len(told) == 1


class Late:
    """Tells the coordinator of claims only when their steps are settled."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._claims: list[tuple[Any, ...]] = []

    def claimed(self, *claim: Any) -> None:
        self._claims.append(claim)

    def ended(self, *ending: Any) -> None:
        for claim in self._claims:
            self._coordinator.claimed(*claim)
        self._claims.clear()
        self._coordinator.ended(*ending)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._coordinator, name)


def test_an_ending_that_overtakes_its_claim_is_told_once_and_after_it(hf: Holdfast) -> None:
    """T-89: a quick handler is through before it is told that its step was taken."""
    told: list[Event] = []
    hf.on("flow.run.*")(told.append)
    hf._engine.hooks.watch(Late(hf.coordinator()))
    order = hf.flow("order")
    order.step(name="a")(lambda: 1)

    order.start()
    drain(hf)

    assert [event.name for event in told] == ["flow.run.initialized", "flow.run.started", "flow.run.completed"]


def test_a_pass_asks_once_however_many_listen_and_the_next_asks_anew(hf: Holdfast, db: DB) -> None:
    """T-86, T-138, C-60."""
    count_calls(db)
    told: list[Event] = []
    for name in ("*", "flow.step.*", "flow.workflow.finalization_started"):
        hf.on(name)(told.append)
    coordinator = hf.coordinator(strategy=Notes())
    order = hf.flow("order")

    @order.step
    def a(ctx: Ctx) -> None:
        if ctx.attempt < 3:
            raise Retry("busy", after=0)

    order.step(name="b", after=a)(lambda: 1)
    order.start()
    drain(hf)

    assert len(coordinator.decisions) == 4
    counts = counted_calls(hf, db)
    assert counts["settled_tasks"] == 4
    assert counts["closed_tasks"] == counts["get_task_execution_context_batch"] == 0


def test_a_question_that_is_refused_costs_the_settle_nothing(hf: Holdfast, db: DB, log_lines: Any) -> None:
    """The outcome is stored; only the telling is lost, and logged."""
    told: list[Event] = []
    hf.on("flow.run.*")(told.append)
    db.execute("drop function flow.closed_tasks")
    order = hf.flow("order")
    order.step(name="a")(lambda: 1)

    run = order.start()
    drain(hf)

    assert run.result(1) == {"a": 1}
    assert [event.name for event in told] == ["flow.run.initialized", "flow.run.started"]
    assert {"question.refused", "coordinator.failed"} <= {line["event"] for line in log_lines}


def test_a_task_goes_on_in_another_process_when_the_one_that_decided_so_is_killed(hf: Holdfast, dsn: str) -> None:
    """T-15, T-71, T-72: what was decided is in the rows, not in a loop of that process."""
    died = subprocess.run(
        [sys.executable, "-c", DIES, dsn], capture_output=True, text=True, timeout=60, env={**os.environ}, check=False
    )
    assert died.returncode == -signal.SIGKILL, died.stderr
    order = hf.flow("order")
    order.step(name="reserve")(os.getpid)
    order.step(name="charge", after="reserve", queue="bank")(lambda reserve: (reserve, os.getpid()))
    run = order.handle(died.stdout.splitlines()[0])

    drain(hf)

    first, second = run.result(1)["charge"]
    assert (first == os.getpid(), second) == (False, os.getpid())


def test_by_default_a_task_that_goes_on_is_a_row_that_is_due(hf: Holdfast, db: DB) -> None:
    """T-15, T-71: the settle made the next step due, so the default strategy has nothing to add to the queue."""
    order = hf.flow("order")
    order.step(name="reserve")(lambda: 1)
    order.step(name="charge", after="reserve", queue="bank")(lambda reserve: reserve + 1)
    coordinator = hf.coordinator()
    order.start()

    drain(hf, queues=["default"])

    assert said(coordinator.decisions) == [("has_ready_steps", "reenqueue")]
    due = db.execute("select queue from holdfast.steps where due_at <= holdfast.clock()").fetchall()
    assert due == [("bank",)]
