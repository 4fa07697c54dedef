"""Decides how a worker logs successful steps: one line per step, or one line per second if there are too many.

It reads no clock: the caller passes the time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MOST_LINES = 50  # per second
WINDOW = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Summary:
    """How many steps of each kind succeeded in a period, instead of one line per step."""

    count: int
    kinds: Mapping[str, int]
    seconds: float


class Finished:
    """Decides between lines and summaries, second by second.

    A second with more than `MOST_LINES` ends with a summary of those without a line. The seconds after it have only
    summaries, until one of them is quiet again.
    """

    def __init__(self) -> None:
        self._since: float | None = None  # when the current second began
        self._lines = 0
        self._counted: Counter[str] = Counter()
        self._is_busy = False

    @property
    def flush_at(self) -> float | None:
        """Return when the next summary is due; None if there is nothing to summarise."""
        return None if self._since is None or not self._counted else self._since + WINDOW

    def takes_lines(self, now: float, count: int) -> bool:
        """Return whether `count` more steps get a line each; if so, count them as lines."""
        if self._since is None or now - self._since >= WINDOW:
            self._since, self._lines, self._is_busy = now, 0, False
        if self._is_busy or self._lines + count > MOST_LINES:
            self._is_busy = True
            return False
        self._lines += count
        return True

    def add(self, counts: Mapping[str, int]) -> None:
        """Count steps without a line, by kind."""
        self._counted.update(counts)

    def flush(self, now: float) -> Summary | None:
        """Return the summary of a second that has passed; None before that, or if there is nothing to summarise."""
        if self.flush_at is None or now < self.flush_at:
            return None
        return self.close(now)

    def close(self, now: float) -> Summary | None:
        """Return the summary of the rest."""
        if self._since is None or not self._counted:
            return None
        summary = Summary(self._counted.total(), dict(self._counted.most_common()), round(now - self._since, 3))
        self._is_busy = summary.count + self._lines > MOST_LINES * max(1.0, summary.seconds)
        self._since, self._lines, self._counted = now, 0, Counter()
        return summary
