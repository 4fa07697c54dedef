"""Plays the demo's shops: starts their price updates, waits for them, and judges whether every limit was kept."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from psycopg import Connection

from holdfast.demo import shops
from holdfast.demo.judge import Finding
from holdfast.demo.shops import SLOTS
from holdfast.reads import demo_shops
from holdfast.reads.demo_shops import ShopFacts, Span

UPDATES = 12  # per shop
SECONDS = 0.15  # that a call takes: the other shops are still called while one is closed
PATIENCE = 30.0
LOOK_EACH = 0.1


class ShopPlay:
    """The updates of one demo, in its own queue."""

    def __init__(self, connection: Connection[Any], queue: str) -> None:
        self._connection = connection
        self._batch = queue
        demo_shops.make_calls(connection)
        update = shops.update_price.options(queue=queue, conn=connection, priority=9)  # beside the tasks, not after
        self._ids = [
            int(update.start(batch=queue, shop=shop, number=number, seconds=SECONDS).id)
            for number in range(1, UPDATES + 1)
            for shop in shops.SHOPS
        ]

    def wait(self) -> None:
        """Wait until all of them are done."""
        until = time.monotonic() + PATIENCE
        while demo_shops.done(self._connection, self._ids) < len(self._ids) and time.monotonic() < until:
            time.sleep(LOOK_EACH)

    def findings(self) -> list[Finding]:
        """Compare what happened with what must have happened."""
        return judged(demo_shops.facts(self._connection, self._batch, shops.LIMIT, shops.SHOPS, self._ids))


def judged(facts: ShopFacts) -> list[Finding]:
    """Judge each figure."""
    asked = UPDATES * len(shops.SHOPS)
    held, called = most_at_once(facts.leases), most_at_once(facts.calls)
    refused = sum(call.status == 429 for call in facts.calls)
    closed = [pause for pause in facts.pauses if pause.shop == shops.BUSY]
    early = sum(_is_within(lease, pause) for pause in closed for lease in facts.leases if lease.shop == pause.shop)
    others = [call for call in facts.calls if call.shop != shops.BUSY]
    meanwhile = sum(any(_overlap(call, pause) for pause in closed) for call in others)
    is_kept = bool(closed) and all(_is_long(pause, facts.calls) for pause in closed) and early == 0
    return [
        Finding("shops: prices updated", facts.done, f"{UPDATES} in each of three shops", facts.done == asked),
        Finding("shops: claims at once", held, f"at most {SLOTS} per shop, by the journal", 0 < held <= SLOTS),
        Finding("shops: calls at once", called, "the same, by the handlers' own record", 0 < called <= SLOTS),
        Finding("shops: 429 with Retry-After", refused, f"from {shops.BUSY}, which was then closed", refused > 0),
        Finding("shops: claims while closed", early, f"none for {shops.PAUSE:g} s", is_kept),
        Finding("shops: others meanwhile", meanwhile, "calls to the two other shops", meanwhile > 0),
    ]


def most_at_once(spans: Iterable[Span]) -> int:
    """Return the largest number of spans of one shop that overlap; one that has not ended overlaps all later ones."""
    moments: dict[str, list[tuple[datetime, int]]] = {}
    for span in spans:
        of_shop = moments.setdefault(span.shop, [])
        of_shop.append((span.began_at, 1))
        if span.ended_at is not None:
            of_shop.append((span.ended_at, -1))
    return max((_highest(sorted(of_shop)) for of_shop in moments.values()), default=0)


def _highest(moments: Sequence[tuple[datetime, int]]) -> int:
    """Return the highest sum; at the same moment an end counts before a beginning."""
    now = most = 0
    for _, change in moments:
        now += change
        most = max(most, now)
    return most


def _is_within(span: Span, pause: Span) -> bool:
    return pause.began_at < span.began_at and (pause.ended_at is None or span.began_at < pause.ended_at)


def _overlap(call: Span, pause: Span) -> bool:
    begins_before = pause.ended_at is None or call.began_at < pause.ended_at
    return begins_before and (call.ended_at is None or pause.began_at < call.ended_at)


def _is_long(pause: Span, calls: Iterable[Span]) -> bool:
    """Whether a pause lasted as long as the shop asked for when it refused a call."""
    answers = (call.ended_at for call in calls if call.shop == pause.shop and call.status == 429)
    until, asked = pause.ended_at, timedelta(seconds=shops.PAUSE)
    return until is None or any(at is not None and at <= pause.began_at and at + asked <= until for at in answers)
