"""Decides how a run goes on after some of its steps were settled. Pure, except for strategies.

A decision carries nothing out: the rows are the queue. The settle that freed a step or delayed it has written when
it is due, in its own transaction, and any worker continues from there. A decision reports that, and when the next pass
is due.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol
from uuid import UUID

from holdfast.flow.backoff import Backoff

Action = Literal["complete", "fail", "reenqueue", "none"]
OVER = {"complete", "resolved_manually", "error", "cancelled"}


class Standing(Protocol):
    """The state of a run, as flow.get_task_execution_context returns it."""

    @property
    def run_id(self) -> UUID: ...
    @property
    def state(self) -> str: ...
    @property
    def execution_status(self) -> str: ...
    @property
    def earliest_retry_at(self) -> datetime | None: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """How a run goes on; `delay` is the time until its next pass, None if there is none."""

    run_id: UUID
    status: str
    action: Action
    delay: timedelta | None
    reason: str


class Strategy(Protocol):
    """Receives each decision that a run goes on."""

    def reenqueue(self, decision: Decision) -> None:
        """Note that the run is due again after `decision.delay`."""


class Durable:
    """Does nothing, and loses nothing: the rows have their due times, and workers wake for them."""

    def reenqueue(self, decision: Decision) -> None:
        """Do nothing."""


def decide(run: Standing, backoff: Backoff, now: datetime) -> Decision:
    """Decide how a run in this state goes on."""
    status = run.execution_status
    match status:
        case _ if run.state == "cancelled":
            return Decision(run.run_id, status, "none", None, "it was cancelled")
        case "all_complete":
            return Decision(run.run_id, status, "complete", None, "all its steps are done")
        case "blocked_by_failures" if run.state in OVER:
            return Decision(run.run_id, status, "fail", None, "steps failed for good, and nothing else is left to do")
        case "blocked_by_failures":  # a step failed for good, and another waits for its next try: the run goes on
            delay, reason = _delay("waiting_for_dependencies", run, backoff, now), "a branch failed, others go on"
        case "has_ready_steps":
            delay, reason = _delay(status, run, backoff, now), "steps are ready"
        case "processing":
            delay, reason = _delay(status, run, backoff, now), "steps are being executed"
        case "waiting_for_dependencies" if run.earliest_retry_at is not None:
            delay, reason = _delay(status, run, backoff, now), "a failed step waits for its next try"
        case _:
            delay, reason = _delay(status, run, backoff, now), "steps wait for others"
    return Decision(run.run_id, status, "reenqueue", delay, reason)


def _delay(status: str, run: Standing, backoff: Backoff, now: datetime) -> timedelta:
    earliest = run.earliest_retry_at
    retry_in = None if earliest is None else max(0.0, (earliest - now).total_seconds())
    return timedelta(seconds=backoff.reenqueue_delay(status, retry_in))
