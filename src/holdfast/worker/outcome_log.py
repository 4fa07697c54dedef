"""Logs the outcomes of steps: every failure, and successes one by one while people can read them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from datetime import timedelta

from holdfast import log
from holdfast.models import Fail, Outcome, Retry, SettledStep
from holdfast.worker.attempt import Attempt
from holdfast.worker.finished import Finished, Summary

DONE = "succeeded"
LONGEST_MESSAGE = 500  # characters of an error in a log line


class OutcomeLog:
    """The log lines of one worker's settler, all from its loop's thread."""

    def __init__(self, logger: log.Logger) -> None:
        self._log = logger
        self._finished = Finished()
        self._flushing: asyncio.TimerHandle | None = None

    def succeeded(self, accepted: Iterable[tuple[Attempt, SettledStep]], counts: Mapping[str, int]) -> None:
        """Log successes: one line each or, if there are many, counts by kind once per second, at no cost per step.

        `accepted` holds everything that was settled, `counts` the successes per kind.
        """
        if not log.is_on(self._log, "info"):
            return
        now = time.monotonic()
        self._sum_up(self._finished.flush(now))
        if not counts:
            return
        if self._finished.takes_lines(now, sum(counts.values())):
            for attempt, row in accepted:
                if row.event == DONE:
                    self._log.info("step.succeeded", **attempt.named(), duration=duration(attempt))
        else:
            self._finished.add(counts)
            self._flush_later(now)

    def other(self, attempt: Attempt, event: str, wait: timedelta | None = None) -> None:
        """Log an outcome that is not a success; `wait` is how long a retry waits, None if it is already claimed."""
        outcome, fields = attempt.outcome, attempt.named() | {"duration": duration(attempt)}
        match event:
            case "failed":
                self._log.error("step.failed", **fault(outcome), will_retry=False, **fields)
            case "retried":
                self._log.warning("step.retried", **fault(outcome), will_retry=True, **_when(wait), **fields)
            case _:
                self._log.info(f"step.{event}", **fields)

    def close(self) -> None:
        """Log the summary of what was counted so far."""
        if self._flushing is not None:
            self._flushing.cancel()
        self._sum_up(self._finished.close(time.monotonic()))

    def _flush_later(self, now: float) -> None:
        if self._flushing is None and self._finished.flush_at is not None:
            wait = max(0.0, self._finished.flush_at - now)
            self._flushing = asyncio.get_running_loop().call_later(wait, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        now = time.monotonic()
        self._sum_up(self._finished.flush(now))
        self._flush_later(now)  # a settle may have begun a new second meanwhile

    def _sum_up(self, summary: Summary | None) -> None:
        if summary is not None:
            self._log.info("steps.succeeded", count=summary.count, kinds=dict(summary.kinds), seconds=summary.seconds)


def duration(attempt: Attempt) -> float | None:
    """Return how long its handler took, in seconds; None if it was not called."""
    return None if attempt.began_at is None else round(attempt.ended_at - attempt.began_at, 4)


def fault(outcome: Outcome | None) -> dict[str, str]:
    """Return the class and the message of a failure, and nothing else, because it may be a payload."""
    error = outcome.error if isinstance(outcome, (Fail, Retry)) else None
    parts = error if isinstance(error, dict) else {"message": error if isinstance(error, str) else ""}
    kind, message = (str(parts.get(name) or "") for name in ("type", "message"))
    return {"error": kind or "none given", "message": message[:LONGEST_MESSAGE]}


def _when(wait: timedelta | None) -> dict[str, float]:
    return {} if wait is None else {"retry_after": round(wait.total_seconds(), 3)}
