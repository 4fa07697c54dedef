"""Where handlers run: what all lanes have in common, and the attempts that wait in one.

A lane takes attempts and gives each back, with its outcome, to `ended`. None of them runs on the loop that claims and
settles, so a handler that blocks holds up no other's outcome.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from holdfast.models import Outcome
from holdfast.worker.attempt import Attempt

Ended = Callable[[Attempt], None]
Run = Callable[[Attempt], Outcome | None]


class Lane(Protocol):
    """Somewhere to run attempts."""

    def add(self, attempts: list[Attempt]) -> None:
        """Take attempts to be run."""

    def withdraw(self, claimed_before: float = math.inf) -> list[Attempt]:
        """Give back those that were not begun, or of them those that were claimed before a time."""

    def close(self) -> None:
        """Take no more."""


def emptied(waiting: deque[Attempt]) -> Iterable[Attempt]:
    """Give what waits, one after the other, without a lock."""
    while True:
        try:
            yield waiting.popleft()
        except IndexError:
            return


def taken_back(waiting: deque[Attempt], claimed_before: float) -> list[Attempt]:
    """Take from the front what has waited longest: it stands there."""
    found: list[Attempt] = []
    for one in emptied(waiting):
        if one.batch.claimed_at >= claimed_before:
            waiting.appendleft(one)
            break
        found.append(one)
    return found
