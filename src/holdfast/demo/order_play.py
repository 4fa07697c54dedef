"""How the demo's order goes: started beside the tasks, stuck at customs, resolved by hand, and done."""

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


class OrderPlay:
    """One order; it begins when nobody is killed any more, since each of its steps fails a known number of times."""

    def __init__(self, connection: Connection[Any], order_id: int) -> None:
        self._connection = connection
        self.run_id: UUID = orders.order.options(conn=connection).start(order_id=order_id, goods=GOODS).id

    def status(self) -> RunResult:
        """See how it stands."""
        (found,) = db.run(self._connection, calls.run_results([self.run_id]))
        return found

    def see_to_it(self) -> None:
        """Do what a person would: resolve the step at customs, once it has failed for good."""
        stuck = demo.stuck_step(self._connection, self.run_id)
        if stuck is not None:
            db.run(self._connection, calls.resolve(str(stuck), REASON, RESULT))

    def wait(self) -> None:
        """Wait until it is over."""
        until = time.monotonic() + PATIENCE
        while self.status().state != "complete" and time.monotonic() < until:
            self.see_to_it()
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Hold what happened against what must have happened."""
        return judged(demo.order_facts(self._connection, self.run_id, REASON), self.status().state)


def judged(facts: OrderFacts, state: str) -> list[Finding]:
    """Say of each figure whether it is what it must be."""
    waited, is_kept = round(facts.waited, 2), facts.waited >= orders.PAUSE
    return [
        Finding("order: parcels", facts.parcels, "a step for each item, joined again", facts.parcels == len(GOODS)),
        Finding("order: card tried again", facts.retried, "declined once", facts.retried == 1),
        Finding("order: Retry-After kept", is_kept, f"waited {waited} s", waited >= orders.PAUSE),
        Finding("order: resolved by hand", facts.resolved, f"customs: {REASON}", facts.resolved == 1),
        Finding("order: done twice", facts.twice, "no step", facts.twice == 0),
        Finding("order: complete", int(state == "complete"), f"its task is {state}", state == "complete"),
    ]
