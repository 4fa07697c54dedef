"""Plays the demo's labels: starts them, waits for them, and judges how they shared calls."""

from __future__ import annotations

import time
from typing import Any

from psycopg import Connection

from holdfast.demo import labels
from holdfast.demo.judge import Finding
from holdfast.demo.labels import CARRIERS, SIZE, Label
from holdfast.reads import demo_labels
from holdfast.reads.demo_labels import LabelFacts

EACH = 40  # labels per carrier
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1


class LabelPlay:
    """The labels of one demo, in its own queue."""

    def __init__(self, connection: Connection[Any], queue: str) -> None:
        self._connection = connection
        self._batch = queue
        demo_labels.make_labels(connection)
        start = labels.print_label.options(queue=queue, conn=connection, priority=9)  # beside the tasks, not after
        asked = [Label(queue, carrier, f"Mill Lane {number}") for number in range(EACH) for carrier in CARRIERS]
        self._asked = start.start_many([*asked[1:], Label(queue, asked[0].carrier, "")])

    def wait(self) -> None:
        """Wait until all of them have ended."""
        until = time.monotonic() + PATIENCE
        while self._over() < self._asked and time.monotonic() < until:
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(demo_labels.facts(self._connection, self._batch, labels.print_label.name))

    def _over(self) -> int:
        return demo_labels.over(self._connection, self._batch, labels.print_label.name)


def judged(facts: LabelFacts) -> list[Finding]:
    """Judge each figure."""
    asked = EACH * len(CARRIERS) - 1
    is_shared = facts.calls < facts.printed and facts.largest <= SIZE
    return [
        Finding("labels: printed", facts.printed, "all that have an address", facts.printed == asked),
        Finding("labels: calls", facts.calls, f"of a batch handler, up to {SIZE} labels each", is_shared),
        Finding("labels: of two carriers", facts.mixed, "a call has the labels of one", facts.mixed == 0),
        Finding("labels: failed", facts.failed, "without an address, and no other of its call", facts.failed == 1),
        Finding("labels: printed twice", facts.twice, "rows and outcomes in one commit", facts.twice == 0),
    ]
