"""What a worker logs of steps that succeeded: a line each, or one line per second where there are too many to read.

No clock is read here: whoever calls says what time it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

MOST_LINES = 50  # a second
WINDOW = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Summary:
    """How many steps of each kind succeeded in a while, in place of a line for each."""

    count: int
    kinds: Mapping[str, int]
    seconds: float


class Finished:
    """Decides between lines and summaries, a second at a time.

    A second with more than `MOST_LINES` ends in a summary of those that got no line, and the seconds after it have
    summaries alone, until one of them is quiet again.
    """

    def __init__(self) -> None:
        self._since: float | None = None  # when the current second began
        self._lines = 0
        self._counted: Counter[str] = Counter()
        self._is_busy = False

    @property
    def flush_at(self) -> float | None:
        """When a summary has to be written at the latest; None while there is nothing to sum up."""
        return None if self._since is None or not self._counted else self._since + WINDOW

    def takes_lines(self, now: float, count: int) -> bool:
        """Whether so many more steps get a line each; if so, they are counted as lines."""
        if self._since is None or now - self._since >= WINDOW:
            self._since, self._lines, self._is_busy = now, 0, False
        if self._is_busy or self._lines + count > MOST_LINES:
            self._is_busy = True
            return False
        self._lines += count
        return True

    def add(self, counts: Mapping[str, int]) -> None:
        """Count steps by kind that get no line."""
        self._counted.update(counts)

    def flush(self, now: float) -> Summary | None:
        """Sum up a second that is over; None while it is not, or where there is nothing to sum up."""
        if self.flush_at is None or now < self.flush_at:
            return None
        return self.close(now)

    def close(self, now: float) -> Summary | None:
        """Sum up what is left."""
        if self._since is None or not self._counted:
            return None
        summary = Summary(self._counted.total(), dict(self._counted.most_common()), round(now - self._since, 3))
        self._is_busy = summary.count + self._lines > MOST_LINES * max(1.0, summary.seconds)
        self._since, self._lines, self._counted = now, 0, Counter()
        return summary
