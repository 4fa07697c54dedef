"""Plays the demo's order: it starts alongside the tasks, gets stuck at customs, is resolved by hand, and completes."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from psycopg import Connection

from holdfast.demo import orders
from holdfast.demo.judge import Finding
from holdfast.kernel import calls, db
from holdfast.models import RunResult
from holdfast.reads import demo
from holdfast.reads.demo import OrderFacts

GOODS = ["cup", "pot", "plate", "spoon"]
RESULT = {"form": "CN23", "by": "mail"}
REASON = "the form went by mail"
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1
LATE = 0.1  # seconds: the journal's time is later than the clock that set the due time, on a busy machine by this much


class OrderPlay:
    """One order; it begins after the kill, because each of its steps must fail a known number of times."""

    def __init__(self, connection: Connection[Any], order_id: int) -> None:
        self._connection = connection
        self.run_id: UUID = orders.order.options(conn=connection).start(order_id=order_id, goods=GOODS).id

    def status(self) -> RunResult:
        """Read its state."""
        (found,) = db.run(self._connection, calls.run_results([self.run_id]))
        return found

    def see_to_it(self) -> None:
        """Resolve the step at customs once it has failed for good, as a person would."""
        stuck = demo.stuck_step(self._connection, self.run_id)
        if stuck is not None:
            db.run(self._connection, calls.resolve(str(stuck), REASON, RESULT))

    def wait(self) -> None:
        """Wait until it ends."""
        until = time.monotonic() + PATIENCE
        while self.status().state != "complete" and time.monotonic() < until:
            self.see_to_it()
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(demo.order_facts(self._connection, self.run_id, REASON), self.status().state)


def judged(facts: OrderFacts, state: str) -> list[Finding]:
    """Judge each figure."""
    waited = round(facts.waited, 2)
    is_kept = waited >= orders.PAUSE - LATE
    return [
        Finding("order: parcels", facts.parcels, "one step per item, then joined", facts.parcels == len(GOODS)),
        Finding("order: card retried", facts.retried, "declined once", facts.retried == 1),
        Finding("order: Retry-After kept", int(is_kept), f"waited {waited} s", is_kept),
        Finding("order: resolved by hand", facts.resolved, f"customs: {REASON}", facts.resolved == 1),
        Finding("order: done twice", facts.twice, "no step", facts.twice == 0),
        Finding("order: complete", int(state == "complete"), f"its run is {state}", state == "complete"),
    ]
