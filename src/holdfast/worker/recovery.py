"""Recovery: now and then, and whoever comes first, a worker takes back what silent workers held."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from holdfast import log
from holdfast.connections.worker import Link
from holdfast.kernel import calls
from holdfast.worker.metrics import MOST_COUNTED, Meters
from holdfast.worker.options import Options


class Recovery:
    """The recoveries of one worker; each also writes its row, and measures for its metrics."""

    def __init__(self, link: Link, options: Options, meters: Meters) -> None:
        self._link = link
        self._options = options
        self._meters = meters
        self._done_at: float | None = None  # when it last found nothing more to do
        self._log = log.get("worker").bind(worker=options.identity)

    @property
    def is_through(self) -> bool:
        """Whether the last recovery left nothing; each takes a chunk, in a transaction of its own."""
        return self._done_at is not None

    async def run_if_due(self, about: Callable[[], dict[str, Any]], *, counts_backlog: bool) -> None:
        """Recover if the last time is long enough ago; the first time after a start it always is."""
        now = time.monotonic()
        interval = self._options.recovery_interval.total_seconds()
        if self._done_at is not None and now - self._done_at < interval:
            return
        most = MOST_COUNTED if counts_backlog else 0
        (done,) = await self._link.make(calls.measured_upkeep(self._options.identity, about=about(), most=most))
        self._done_at = None if done.rescued or done.moved else now  # more may be left: after the next poll
        self._meters.rescued(done.rescued)
        self._meters.waiting(done.backlog)
        for kind, steps in done.exhausted.items():
            self._meters.exhausted(kind, steps)
        if done.rescued or done.moved:
            self._log.info("worker.recovered", rescued=done.rescued, moved=done.moved)
