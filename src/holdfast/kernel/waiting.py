"""How long to pause between looks at something that is waited for."""

from __future__ import annotations

import time
from collections.abc import Iterator

from holdfast.errors import WaitTimedOut
from holdfast.models import Span, span

FIRST_LOOK = 0.01  # seconds between looks, growing
LAST_LOOK = 0.5


def pauses(timeout: Span | None, what: str) -> Iterator[float]:
    """Give one pause after the other; raises WaitTimedOut when the time is up."""
    until = None if timeout is None else time.monotonic() + span(timeout).total_seconds()
    pause = FIRST_LOOK
    while True:
        yield pause if until is None else min(pause, max(0.0, until - time.monotonic()))
        if until is not None and time.monotonic() >= until:
            number = what.rpartition(" ")[2]
            raise WaitTimedOut(
                f"{what} is not over after {span(timeout or 0)}; it goes on: holdfast runs watch {number}"
            )
        pause = min(LAST_LOOK, pause * 1.5)
