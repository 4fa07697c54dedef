"""A worker that was told to wait sends nothing more before all workers know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import Holdfast
from holdfast.errors import RateLimited
from holdfast.rules import Item, Price, Refusal, Rule, everything, percent
from holdfast.rules.channel import ChannelCall, Health, Write, Wrote
from holdfast.worker.claimer import Claimer
from kernel.steps import value
from worker.running import until, working

SALE = Rule("sale", where=everything, change=percent(-10))


class Busy:
    """A shop that rejects each call, and has locked the target by then: its outcome has to wait."""

    kind = "memory"
    compares = True
    in_transaction = False

    def __init__(self, lock: Connection[Any]) -> None:
        self._lock = lock
        self.calls = 0

    def about(self) -> Mapping[str, Any]:
        return {}

    def items(self, call: ChannelCall) -> Iterator[Item | Refusal]:  # noqa: ARG002
        yield from (Item(f"M{n}", 1000, "EUR") for n in range(1, 4))

    def read(self, ids: Sequence[str], call: ChannelCall) -> Mapping[str, Price | Refusal]:  # noqa: ARG002
        return {name: Price(1000, None, "EUR") for name in ids}

    def write(self, writes: Sequence[Write], call: ChannelCall) -> Sequence[Wrote]:  # noqa: ARG002
        self.calls += 1
        self._lock.execute("select from holdfast.steps where lease_id is not null for update")
        raise RateLimited("slow down")

    def health(self) -> Health:
        return Health(ok=True, detail="")


def test_a_worker_claims_nothing_before_a_rate_limit_is_settled(
    hf: Holdfast, db: Connection[Any], dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A-59: the claim would overlap the settle that closes the limit, and one more call would go out"""
    looks: list[int] = []  # how many outcomes were not settled, at each claim
    claim = Claimer.claim

    async def counted(self: Claimer, connection: Any) -> Any:
        looks.append(self._settler.waiting)
        return await claim(self, connection)

    monkeypatch.setattr(Claimer, "claim", counted)
    with psycopg.connect(dsn) as lock:
        shop = Busy(lock)
        hf.rules.channel("shop", shop, batch=1, breaker_after=1)
        run = hf.rules.preview(SALE, channel="shop", apply=True)
        with working(hf, queues=("rules:shop",), concurrency=1):
            until(lambda: sum(left > 0 for left in looks) >= 3, "a claim beside the settle")
            tried = value(db, "select count(*) from holdfast.steps where run_id = %s and attempt > 0", run.id)
            lock.rollback()
            until(lambda: value(db, "select open_until is not null from holdfast.limit_states"), "the breaker")

    assert (tried, shop.calls) == (1, 1)
