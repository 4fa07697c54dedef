"""Plays the demo's schedule: it ticks every second while a worker is killed, and each tick starts one task."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from psycopg import Connection

from holdfast.demo import tasks
from holdfast.demo.judge import Finding
from holdfast.kernel import db, schedule_calls
from holdfast.kernel.schedule_calls import When
from holdfast.reads import demo
from holdfast.reads.demo import Load, TickFacts

EACH = timedelta(seconds=1)
LEAST = 3  # ticks to judge
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1


class TickPlay:
    """One schedule, with the name of the demo's queue."""

    def __init__(self, connection: Connection[Any], load: Load) -> None:
        self._connection = connection
        self._load = load
        target = tasks.send_digest.scheduled({})
        call = schedule_calls.define_schedule(load.queue, target, When(every=EACH), missed="all")
        db.run(connection, call)

    def wait(self) -> None:
        """Wait until it has ticked some times, and let it end."""
        until = time.monotonic() + PATIENCE
        while self.facts().ticks < LEAST and time.monotonic() < until:
            time.sleep(LOOK_EACH)
        self.end()

    def end(self) -> None:
        """Remove the schedule; its ticks stay."""
        db.run(self._connection, schedule_calls.forget_schedule(self._load.queue, reason="the demo is over"))

    def facts(self) -> TickFacts:
        """Read what became of its ticks."""
        return demo.tick_facts(self._connection, self._load, tasks.send_digest.name)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(self.facts())


@contextmanager
def ticking(connection: Connection[Any], load: Load) -> Iterator[TickPlay]:
    """Let a schedule tick during the block."""
    playing = TickPlay(connection, load)
    try:
        yield playing
    finally:
        playing.end()


def judged(facts: TickFacts) -> list[Finding]:
    """Judge each figure."""
    is_whole = facts.ticks == facts.seconds and facts.ticks >= LEAST
    return [
        Finding("schedule: ticks", facts.ticks, f"one per second, for {facts.seconds} s", is_whole),
        Finding("schedule: fired twice", facts.tasks - facts.ticks, "one task per tick", facts.tasks == facts.ticks),
    ]
