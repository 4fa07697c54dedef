"""Plays the demo's sale: a plan, an edit by hand before it is applied, a run that ends in part, and a retry."""

from __future__ import annotations

import time
from typing import Any

from psycopg import Connection

from holdfast.demo import sales
from holdfast.demo.judge import Finding
from holdfast.kernel import db
from holdfast.reads import demo_sale
from holdfast.reads.demo_sale import SaleFacts
from holdfast.rules import calls
from holdfast.rules.channel import ChannelCall
from holdfast.rules.preview import Request, evaluated, stored
from holdfast.rules.sources import items_of

PRODUCTS = 200
EDITED, GONE = 7, 8  # products, by number
PATIENCE = 30.0  # seconds
LOOK_EACH = 0.1


class SalePlay:
    """One sale, on the products of this demo."""

    def __init__(self, connection: Connection[Any], batch: str) -> None:
        self._connection = connection
        self._batch = batch
        self._is_retried = False
        demo_sale.stock(connection, batch, PRODUCTS)
        items = [self._sku(number) for number in range(1, PRODUCTS + 1)]
        call = ChannelCall(connection=connection)
        db.run(connection, calls.define_channel(sales.CHANNEL, "table", batch=10))
        with evaluated(sales.SALE, items_of(items, sales.products, call)) as verdicts:
            self.run_id = stored(connection, verdicts, Request(sales.SALE, sales.CHANNEL)).run_id
        self._planned = self.facts()
        demo_sale.edit_by_hand(connection, self._sku(EDITED))
        demo_sale.take_out(connection, self._sku(GONE))
        db.run(connection, calls.apply(self.run_id))

    def facts(self) -> SaleFacts:
        """Read what became of it."""
        return demo_sale.facts(self._connection, self._batch, self.run_id, self._sku(EDITED))

    def see_to_it(self) -> None:
        """Put the missing product back once the run has ended in part, and retry, as a person would."""
        if not self._is_retried and self.facts().status == "PARTIAL":
            self._is_retried = True
            demo_sale.put_back(self._connection, self._sku(GONE), 10 + GONE)
            db.run(self._connection, calls.retry_failed(self.run_id))

    def wait(self) -> None:
        """Wait until it ends for the second time."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            self.see_to_it()
            if self._is_retried and self.facts().status == "PARTIAL":
                return
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(self._planned, self.facts(), is_retried=self._is_retried)

    def _sku(self, number: int) -> str:
        return f"{self._batch}/{number}"


def judged(planned: SaleFacts, ended: SaleFacts, *, is_retried: bool) -> list[Finding]:
    """Judge each figure."""
    is_planned = planned.targets == PRODUCTS and planned.written == 0
    is_partial = ended.status == "PARTIAL" and is_retried
    return [
        Finding("sale: planned", planned.targets, "a preview changes no price", is_planned),
        Finding("sale: applied", ended.applied, "all but the one edited by hand", ended.applied == PRODUCTS - 1),
        Finding("sale: stale", ended.failed, "its price was not overwritten", ended.failed == 1 and ended.is_edit_kept),
        Finding("sale: retried", int(is_partial), "the run ended in part, twice", is_partial),
        Finding("sale: written twice", ended.twice, "none, by the table's own log", ended.twice == 0),
    ]
