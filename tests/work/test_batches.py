"""Tasks whose handler serves many steps with one call."""

from __future__ import annotations

from typing import Any

from typing_extensions import TypedDict

from holdfast import Batch, Holdfast
from holdfast.testing import drain


class Price(TypedDict):
    product: str
    amount: int


def test_one_call_serves_the_steps_of_a_key(hf: Holdfast) -> None:
    calls: list[list[Price]] = []

    @hf.task(batch=3, by="product")
    def push(batch: Batch, prices: list[Price]) -> list[Any]:
        calls.append(prices)
        assert {price["product"] for price in prices} == {batch.key}
        return [price["amount"] * 2 for price in prices]

    push.start_many([{"product": "ab"[n % 2], "amount": n} for n in range(8)])
    handle = push.start({"product": "c", "amount": 50})

    assert drain(hf) == 9
    assert sorted(map(len, calls)) == [1, 1, 1, 3, 3]
    assert handle.result() == 100
