"""How many steps to take at a time: as many as handlers get through in a moment; more is left to others."""

from __future__ import annotations

SOON = 0.1  # seconds: a batch that is through before may be larger
LATE = 0.3


class Pace:
    """Begins with what can run at once; doubles while batches are through soon, halves when they are late."""

    def __init__(self, concurrency: int, largest: int) -> None:
        self._least = min(concurrency, largest)
        self._largest = largest
        self.size = self._least

    def room(self, unfinished: int) -> int:
        """How many to claim now; 0 while enough are waiting for a free slot."""
        if unfinished >= self._least and unfinished > self.size // 4:
            return 0
        return max(0, min(self.size - unfinished, self._largest))

    def batch_ended(self, size: int, took: float) -> None:
        """Learn from a batch."""
        if took <= SOON and size >= self.size // 2:
            self.size = min(self._largest, self.size * 2)
        elif took >= LATE:
            self.size = max(self._least, self.size // 2)

    def overfull(self) -> None:
        """Begin again with what can run at once: what was taken beyond that had to be given back."""
        self.size = self._least
