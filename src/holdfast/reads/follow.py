"""Following a run or a step until it is over: what a follower is told, at once and then with each change."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.errors import WaitTimedOut
from holdfast.reads import run_detail
from holdfast.reads.run_detail import RunDetail, StepDetail

SOONEST, LATEST = 0.2, 2.0  # seconds between two reads: the longer nothing happens, the longer


@dataclass(frozen=True, slots=True)
class Glance:
    """How a run or a step stands, as far as a follower is told."""

    id: str
    what: str
    name: str
    state: str
    phase: str | None
    outcome: str | None
    is_over: bool
    attempt: int | None
    total: int | None = None
    live: int | None = None
    succeeded: int | None = None
    failed: int | None = None
    cancelled: int | None = None

    @property
    def is_partial(self) -> bool:
        """Whether it ended with both: steps that succeeded and steps that failed."""
        has_both = bool(self.succeeded and self.failed) and self.outcome != "succeeded"
        return self.is_over and (self.outcome == "partial" or has_both)


def glance(connection: Connection[Any], id: int | UUID) -> Glance:  # noqa: A002 - the word is the same in SQL
    """Read once how it stands."""
    if isinstance(id, int):
        return of_step(run_detail.step(connection, id))
    return of_run(run_detail.run(connection, id))


def of_step(step: StepDetail) -> Glance:
    """Take from a step what a follower is told."""
    is_over = step.finished_at is not None
    return Glance(step.id, step.what, step.kind, step.state, step.phase, step.outcome, is_over, step.attempt)


def of_run(run: RunDetail) -> Glance:
    """Take from a run what a follower is told; one whose steps are still being moved is not over."""
    is_over = run.finished_at is not None and run.moving is None
    outcome = run.outcome if is_over else None
    counts = (run.total, run.live, run.succeeded, run.failed, run.cancelled)
    return Glance(run.id, run.what, run.name, run.state, run.phase, outcome, is_over, None, *counts)


def changes(connection: Connection[Any], id: int | UUID, timeout: timedelta | None) -> Iterator[Glance]:  # noqa: A002
    """Give how it stands, and again with each change until it is over."""
    end = None if timeout is None else time.monotonic() + timeout.total_seconds()
    last = glance(connection, id)
    yield last
    pause = SOONEST
    while not last.is_over:
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            raise WaitTimedOut(
                f"{last.what} {last.id} is {last.state} and not over yet",
                where=last.id,
                next=(f"it goes on: watch it longer, or stop it by `holdfast runs cancel {last.id}`"),
            )
        time.sleep(pause if left is None else min(pause, left))
        now = glance(connection, id)
        pause = SOONEST if now != last else min(pause * 1.5, LATEST)
        if now != last:
            yield now
        last = now
