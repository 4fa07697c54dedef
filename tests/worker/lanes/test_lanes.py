"""Lanes by themselves: who runs what at the same time."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from queue import SimpleQueue
from typing import Any, cast

from holdfast import Holdfast
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.models import ClaimedStep, Done
from holdfast.worker.attempt import Attempt, Claim, Unit
from holdfast.worker.lanes.threads import Threads

SIZE = 4
WAIT = 20.0


def claimed() -> list[Attempt]:
    app = Holdfast("dbname=nowhere")
    app.task(name="meet")(lambda: None)
    handler = app._engine.registry.find("meet")
    step = ClaimedStep(1, None, "meet", cast("Any", "{}"), 1, 1, datetime.now(UTC), None)
    return [Attempt(step, handler, cast("HandlerExecutor", None), 300.0, Claim(SIZE, 0.0)) for _ in range(SIZE)]


def test_handlers_that_wait_for_each_other_are_all_under_way_at_once() -> None:
    """W-05: one thread is woken at a time, and each wakes the next; the second batch finds them asleep."""
    meeting = threading.Barrier(SIZE)
    ended: SimpleQueue[Any] = SimpleQueue()

    def meet(one: Unit) -> None:
        meeting.wait(WAIT)
        if isinstance(one, Attempt):
            one.conclude(Done())

    lane = Threads("test", SIZE, ended.put, run=meet)
    for _ in range(2):
        lane.add(claimed())
        outcomes = [ended.get(timeout=2 * WAIT).outcome for _ in range(SIZE)]

        assert [type(outcome) for outcome in outcomes] == [Done] * SIZE
    lane.close()
