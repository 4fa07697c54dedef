"""How many steps to take at a time: as many as handlers get through in a moment; more is left to others.

Where handlers are quick, one batch is fetched while another is worked on: neither side waits for the other.
"""

from __future__ import annotations

SOON = 0.1  # seconds: a batch that is through before may be larger
LATE = 0.3
AT_ONCE = 0.02  # a batch that was through before is waited for where only its steps' children are left to do


class Pace:
    """Begins with what can run at once; doubles while batches are through soon, halves when they are late."""

    def __init__(self, concurrency: int, largest: int) -> None:
        self._least = min(concurrency, largest)
        self._largest = largest
        self.size = self._least
        self.is_at_once = True  # until a batch proves otherwise

    def room(self, unfinished: int) -> int:
        """How many to claim now: what can run at once, or a batch while no more than one is waiting to be run."""
        if self.size == self._least:
            return max(0, self.size - unfinished)
        return self.size if unfinished <= self.size else 0

    def batch_ended(self, size: int, took: float) -> None:
        """Learn from a batch."""
        self.is_at_once = took <= AT_ONCE
        if took <= SOON and size >= self.size // 2:
            self.size = min(self._largest, self.size * 2)
        elif took >= LATE:
            self.size = max(self._least, self.size // 2)

    def overfull(self) -> None:
        """Begin again with what can run at once: what was taken beyond that had to be given back."""
        self.size = self._least
