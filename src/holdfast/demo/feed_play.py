"""Plays the demo's feed: a worker is killed in the middle of a partition, and a second run brings a late record."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.demo import feeds
from holdfast.demo.feeds import RECORDS
from holdfast.demo.judge import Finding
from holdfast.ingest import calls
from holdfast.kernel import db
from holdfast.reads import demo_feed
from holdfast.reads.demo_feed import FeedFacts
from holdfast.worker_processes import WorkerGroup

KILLED_AT = "page_written:kill9@30"  # of 40 pages in 20 partitions: some partitions are half read by then
PATIENCE = 60.0  # seconds
LOOK_EACH = 0.1
OVER = ("completed", "failed", "cancelled")


class FeedPlay:
    """Two runs of the feed, with workers of its own."""

    def __init__(self, connection: Connection[Any], batch: str, group: WorkerGroup) -> None:
        self._connection = connection
        self._late = f"late/{batch}"
        self._group = group
        demo_feed.prepare(connection)
        if feeds.catalog.definition is not None:
            db.run(connection, feeds.catalog.definition)
        for left in demo_feed.active_runs(connection, feeds.FEED):
            db.run(connection, calls.cancel_run(left, "an earlier demo was interrupted"))
        (self.first,) = db.run(connection, calls.start(feeds.FEED, "full"))
        self.second: UUID | None = None
        self._dying = group.start(feeds.QUEUE, failpoint=KILLED_AT)
        self._is_replaced = False

    def see_to_it(self) -> None:
        """Start another worker when the first has died, and another run when the first has ended."""
        if not self._is_replaced and self._dying.process.poll() is not None:
            self._is_replaced = True
            self._group.start(feeds.QUEUE)
        if self.second is None and demo_feed.state(self._connection, self.first) == "completed":
            demo_feed.add_late(self._connection, self.first, self._late)
            (self.second,) = db.run(self._connection, calls.start(feeds.FEED))

    def wait(self) -> None:
        """Wait until the second run has ended, or the first has failed."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.see_to_it()
            if demo_feed.state(self._connection, self.second or self.first) in OVER:
                return
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(demo_feed.facts(self._connection, self.first, self.second))


def judged(facts: FeedFacts) -> list[Finding]:
    """Judge each figure."""
    is_read = facts.read == RECORDS and facts.state == "completed" and facts.failed == 0
    is_late = facts.late == 1 and facts.then_state == "completed" and facts.is_marked
    stored = RECORDS - 1 + facts.late
    return [
        Finding("feed: records read", facts.read, "each once, though its worker was killed", is_read),
        Finding("feed: partitions rescued", facts.rescued, "half read, and continued by another", facts.rescued > 0),
        Finding("feed: 429", facts.refused, "all partitions waited, no try was used up", facts.refused == 1),
        Finding("feed: counted twice", facts.twice, "each partition ended once", facts.twice == 0),
        Finding("feed: quarantined", facts.quarantined, "the poison record alone", facts.quarantined == 1),
        Finding("feed: records stored", facts.live, "all but the poison one, plus the late one", facts.live == stored),
        Finding("feed: late records", facts.late, "by the second run, which moved the watermark", is_late),
    ]
