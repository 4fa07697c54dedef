"""How a worker answers hints that other workers get too."""

from __future__ import annotations

import threading

import pytest

from holdfast import Holdfast
from holdfast.worker.listener import LONGEST_WAIT, PATIENCE, Hints
from worker.running import PATIENCE as WAIT
from worker.running import seconds, until, working


def test_hints_are_answered_later_only_while_others_are_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("holdfast.worker.listener.lease_clock", lambda: now)
    hints = Hints(lambda: None)
    waits = []
    for _ in range(12):
        waits.append(hints.delay())
        hints.polled(0)

    assert waits[:PATIENCE] == [0.0] * PATIENCE
    assert 0 < waits[PATIENCE] < waits[PATIENCE + 1] < waits[-1] == LONGEST_WAIT

    hints.polled(1)
    assert hints.delay() == 0.0

    for _ in range(12):
        hints.polled(0)
    assert hints.delay() == LONGEST_WAIT
    now += 1.5  # hints come seldom, so the others' claims cost little
    assert hints.delay() == 0.0
    hints.polled(0)
    assert hints.delay() == 0.0


@pytest.mark.one_server
def test_a_hint_is_answered_although_other_workers_were_faster_before(hf: Holdfast) -> None:
    """A hint that waits is not lost; here nothing else would wake the worker."""
    begun = threading.Event()

    @hf.task
    def wake() -> None:
        begun.set()

    with working(hf, poll_min=seconds(600), poll_max=seconds(600)) as worker:
        until(lambda: worker._is_asleep and worker.states.worker == "idle", "a sleep")
        for _ in range(20):
            worker._hints.polled(0)
        assert worker._hints.delay() > 0

        wake.start()

        assert begun.wait(WAIT)
        until(lambda: worker._hints.delay() == 0, "the end of the waits")
