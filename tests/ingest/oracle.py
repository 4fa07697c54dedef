"""A source that changes between any two calls, and a feed of it under kills, faults and people, as a state machine.

The machine claims one step at a time and runs its real handler. It may die instead: before the handler's transaction
commits, or with the page in its hands.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import count
from typing import Any
from unittest.mock import patch

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from holdfast import Holdfast
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.errors import RateLimited, Rejected, Unavailable
from holdfast.ingest import Canonical
from holdfast.ingest.api import Feed
from holdfast.ingest.handle import IngestRun
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import Settlement
from holdfast.testing import Clock, drain
from holdfast.worker.attempt import Attempt, Claim, lease_clock
from holdfast.worker.execute import run_handler
from ingest.shop import DB, Order, Shop
from kernel.steps import seconds, violations

LEASE = seconds(300)
NUMBERS = count(1)
places = st.integers(0, 10**6)


class Killed(BaseException):
    """The worker's process ends here."""


def die(place: str) -> None:
    if place == "before_commit":
        raise Killed


class Oracle(RuleBasedStateMachine):
    overlap = "15m"

    def __init__(self, hf: Holdfast, db: DB, clock: Clock) -> None:
        super().__init__()
        self.hf, self.db, self.clock = hf, db, clock
        self.executor = HandlerExecutor(hf.dsn, "w", None, seconds(30))
        self.run: IngestRun | None = None
        self.mark: datetime | None = None
        self.at_bound: list[dict[str, Any]] = []
        self.completed: set[Any] = set()
        clock.freeze()

    @initialize(axis=st.booleans())
    def define(self, axis: bool) -> None:
        self.name = f"shop{next(NUMBERS)}"
        old = self.now() - timedelta(days=1)
        self.rows = [self.row(n, old) for n in range(20)]
        self.made = len(self.rows)
        self.shop = Shop(self.rows, page_size=3, **({"axis": "cents"} if axis else {}))
        self.db.execute(
            f"create table public.{self.name} (id text primary key, name text, cents bigint, deleted_at timestamptz)"
        )
        self.feed: Feed = self.hf.ingest(
            self.name, source=self.shop, into=Canonical(f"public.{self.name}", Order, key="id"), least=6, batch=7,
            upsert=3, overlap=self.overlap, max_delete_ratio=1, breaker_after=None,
        )  # fmt: skip
        drain(self.hf)  # a worker that connects registers the kinds, their policies and limits
        self.clock.freeze()

    def now(self) -> datetime:
        """Give the time, which is another one at each call."""
        self.clock.advance(seconds(1))
        return self.clock.now()

    def row(self, n: int, at: datetime) -> dict[str, Any]:
        return {"id": f"k{n:03}", "name": f"n{n}", "cents": n % 17, "at": at}

    @rule(place=places, what=st.sampled_from(["change", "move", "tombstone", "revive", "remove"]))
    @precondition(lambda self: len(self.rows) > 8)
    def touch(self, place: int, what: str) -> None:
        at = place % len(self.rows)
        self.made += 1
        fields: dict[str, dict[str, Any]] = {
            "change": {"name": f"changed {self.made}"},
            "move": {"cents": (self.rows[at]["cents"] + 9) % 40},
            "tombstone": {"gone": True},
            "revive": {"gone": False},
        }
        if what == "remove":
            del self.rows[at]
        else:
            self.rows[at] = {**self.rows[at], **fields[what], "at": self.now()}

    @rule(minutes=st.sampled_from([0, 0, 3, 10]))
    def come(self, minutes: int) -> None:
        """A row comes; one that commits late has an older time."""
        self.made += 1
        self.rows.append(self.row(self.made, self.now() - timedelta(minutes=minutes)))

    @rule(fault=st.sampled_from([Unavailable("502"), Rejected("401"), RateLimited("429", retry_after=5)]))
    def fail_next(self, fault: Exception) -> None:
        self.shop.faults = [fault]

    # Rules that do not apply do nothing: what Hypothesis draws must not depend on what the database says.

    @rule(full=st.booleans())
    def start(self, full: bool) -> None:
        self.now()
        if self.is_idle():
            self.run = self.feed.start(full=full)

    @rule(times=st.integers(1, 12))
    def work(self, times: int) -> None:
        for _ in range(0 if self.is_idle() else times):
            self.attempt()

    @rule(how=st.sampled_from(["holding", "committing"]))
    def kill(self, how: str) -> None:
        """A worker dies with a page in its hands, or before the commit; its lease runs out, and others recover it."""
        if not self.is_idle():
            self.attempt(dies=how)
        self.clock.advance(LEASE + seconds(1))
        make(self.db, calls.rescue_steps(batch=100))

    @rule(what=st.sampled_from(["retry", "force", "leave", "leave"]))
    def decide(self, what: str) -> None:
        if what == "leave" or self.run is None or self.run.status().state != "failed":
            return
        found = "select failed_workers from ingest.run_metadata where run_id = %s"
        (failed,) = self.db.execute(found, [self.run.id]).fetchone() or (0,)
        if what == "force" and failed > 0:
            self.run.force(reason="now")
        else:
            self.run.retry(reason="again")

    def is_idle(self) -> bool:
        return self.run is None or self.run.status().outcome is not None

    def attempt(self, dies: str | None = None) -> bool:
        """Claim one step and run its handler, or wait until something is due; return whether there was one."""
        self.now()
        kinds = [f"ingest:{self.name}:{part}" for part in ("plan", "page", "consolidate", "batch")]
        claimed = make(self.db, calls.claim_steps("w", kinds=kinds, batch=1, lease=LEASE, keeps_json=True))
        if not claimed:  # what failed is due again by then, and what was left is recovered
            self.clock.advance(seconds(30))
            make(self.db, calls.rescue_steps(batch=100))
            return False
        (step,) = claimed
        handler = self.hf._engine.registry.find(step.kind)
        assert handler is not None
        if step.kind.endswith(":plan") and step.cursor is None:  # it fixes the bound
            self.at_bound = [dict(row) for row in self.rows]
        attempt = Attempt(step, handler, self.executor, LEASE.total_seconds(), Claim(1, lease_clock()))
        if dies == "holding":
            return True
        with patch("holdfast.handlers.transaction.failpoint", die if dies else lambda _: None):
            outcome = run_handler(attempt)
        if outcome is not None and dies is None:
            make(self.db, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))
        return True

    @invariant()
    def what_was_there_at_the_bound_is_there_once(self) -> None:
        """And the watermark moves in a completed run only, to its bound, and unasked in none that was forced."""
        if self.run is None:
            return
        row = self.db.execute(
            "select run_id, state, forced, updated_to from ingest.run_metadata where feed = %s"
            " order by no desc limit 1",
            [self.name],
        ).fetchone()
        mark, before = self.feed.watermark, self.mark
        if row is None or row[1] != "completed" or row[2] or row[0] in self.completed:
            assert mark == before
            return
        self.completed.add(row[0])
        self.mark = mark
        assert mark == (row[3] if before is None else max(before, row[3]))
        expected = {each["id"]: each["name"] for each in self.at_bound if each in self.rows and not each.get("gone")}
        assert expected.items() <= self.table().items()

    def table(self) -> dict[str, str]:
        return dict(self.db.execute(f"select id, name from public.{self.name} where deleted_at is null").fetchall())

    def teardown(self) -> None:
        """When the source rests, one more run makes both equal."""
        try:
            self.rest()
        finally:
            self.executor.close()

    def rest(self) -> None:
        self.shop.faults.clear()
        if self.run is not None and not self.is_idle():
            self.finish(self.run)
        self.run = self.feed.start(full=True)
        self.finish(self.run)
        assert self.run.status().state == "completed", self.run.status()
        assert self.table() == {row["id"]: row["name"] for row in self.rows if not row.get("gone")}
        assert violations(self.db) == []

    def finish(self, run: IngestRun) -> None:
        for _ in range(400):
            if run.status().outcome is not None:
                return
            self.attempt()
        raise AssertionError(f"run {run.id} does not end: {run.status()}")
