"""Whether a worker claims more steps than it has idle handlers."""

from __future__ import annotations

PATIENCE, MOST_PATIENCE = 8, 64  # full claims after which it is tried again whether a limit still binds


class FetchAhead:
    """Whether claims of one queue may ask for more steps than there are idle handlers.

    Where a limit binds, a claim gets no more than that, and the database looks at the others in vain. So after a claim
    that got just as many, later ones ask for no more, until some were full. Then one tries again.
    """

    def __init__(self) -> None:
        self._patience = PATIENCE
        self._full_left = 0  # full claims until it tries again

    def most(self, room: int, free: int) -> int:
        """Return how many steps to ask for."""
        return min(room, free) if self._full_left else room

    def claimed(self, asked: int, free: int, got: int) -> None:
        """Learn from a claim."""
        if self._full_left:
            self._full_left -= 0 < asked == got
        elif got > free:
            self._patience = PATIENCE
        elif 0 < free == got < asked:
            self._full_left = self._patience
            self._patience = min(MOST_PATIENCE, 2 * self._patience)
