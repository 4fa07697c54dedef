"""The context of the handlers of feeds, and what a handler raises when the source is busy."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.errors import RateLimited
from holdfast.handlers.context import Ctx
from holdfast.kernel.call import Call
from holdfast.models import Snooze

BUSY_FOR = timedelta(seconds=1)  # where the source does not say how long


class IngestCtx(Ctx):
    """A handler's context that also makes calls of the face, apart from its transaction."""

    __slots__ = ()

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call; raise LeaseLost if the step is no longer ours."""
        return self._make(call)


def busy(error: RateLimited, limit: str) -> Snooze:
    """Return the snooze that pauses a source's limit for all its steps and charges none of them."""
    return Snooze(BUSY_FOR if error.retry_after is None else error.retry_after, pause=limit)
