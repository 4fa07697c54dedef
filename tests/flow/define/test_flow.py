"""Flows as users write them: context and parents' results by name, maps, sub-flows, conditions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from holdfast import Ctx, Fail, Holdfast, RunFailed
from holdfast.errors import BadInput
from holdfast.testing import drain

pytestmark = pytest.mark.one_server


@dataclass
class Reserved:
    number: int
    places: list[str]


class Order(BaseModel):
    order_id: int
    express: bool = False


def states(run: Any) -> dict[str, str]:
    return {step.name: step.state for step in run.steps()}


def test_a_step_gets_the_context_and_its_parents_results_by_name(hf: Holdfast) -> None:
    """T-16, T-47, T-48, T-53: as their types say"""
    order = hf.flow("order_process")
    seen: list[Any] = []

    @order.step
    def reserve(order_id: int) -> Reserved:
        return Reserved(order_id * 10, ["a", "b"])

    @order.step(after=reserve)
    def charge(ctx: Ctx, order_id: int, reserve: Reserved) -> str:
        seen.append((order_id, reserve, ctx.attempt))
        return f"paid {reserve.number}"

    run = order.start(order_id=7)
    drain(hf)

    assert run.result(1) == {"reserve": Reserved(70, ["a", "b"]), "charge": "paid 70"}
    assert seen == [(7, Reserved(70, ["a", "b"]), 1)]
    assert run.result_of(reserve) == Reserved(70, ["a", "b"])


def test_a_flow_may_say_the_type_of_its_context(hf: Holdfast) -> None:
    order = hf.flow("order", context=Order)

    @order.step
    def look(order: Order, order_id: int) -> list[Any]:
        return [order.order_id, order.express, order_id]

    run = order.start(Order(order_id=3))
    drain(hf)

    assert run.result_of("look") == [3, False, 3]


def test_a_map_has_one_step_for_each_item_and_joins_them_again(hf: Holdfast) -> None:
    order = hf.flow("order")

    @order.step
    def items(order_id: int) -> list[str]:
        return [f"{order_id}-{n}" for n in range(5)]

    @order.step(each=items)
    def ship(item: str, order_id: int) -> dict[str, int]:
        return {item: order_id}

    @order.step(after=ship)
    def report(ship: list[dict[str, int]]) -> int:
        return len(ship)

    run = order.start(order_id=4)
    drain(hf)

    assert run.result(1)["report"] == 5
    assert run.result_of(ship) == [{f"4-{n}": 4} for n in range(5)]
    assert [name for name in states(run) if "[" in name] == [f"ship[{n}]" for n in range(5)]


def test_a_map_over_nothing_is_over_at_once(hf: Holdfast) -> None:
    order = hf.flow("order")

    @order.step
    def items() -> list[str]:
        return []

    @order.step(each=items)
    def ship(item: str) -> str:
        return item

    @order.step(after=ship)
    def report(ship: list[str]) -> list[str]:
        return ship

    run = order.start()
    drain(hf)

    assert run.result_of(report) == []


def test_a_step_may_be_a_flow_of_its_own(hf: Holdfast) -> None:
    billing = hf.flow("billing")

    @billing.step
    def draw(invoice: int) -> str:
        return f"invoice {invoice}"

    @billing.step(after=draw)
    def send(draw: str, invoice: int) -> str:
        return f"{draw} sent"

    order = hf.flow("order")

    @order.step
    def reserve(order_id: int) -> int:
        return order_id + 1

    @order.subflow(billing, after=reserve)
    def bill(reserve: int) -> dict[str, int]:
        return {"invoice": reserve}

    @order.step(after=bill)
    def close(bill: dict[str, str], order_id: int) -> str:
        return f"{order_id}: {bill['send']}"

    run = order.start(order_id=1)
    drain(hf)

    assert run.result(1)["close"] == "1: invoice 2 sent"
    assert set(states(run)) == {"reserve", "bill", "close", "bill.draw", "bill.send"}


def test_a_map_of_sub_flows(hf: Holdfast) -> None:
    parcel = hf.flow("parcel")

    @parcel.step
    def pack(what: str) -> str:
        return f"packed {what}"

    @parcel.step(after=pack)
    async def hand_over(pack: str) -> str:
        return f"{pack}, gone"

    order = hf.flow("order")

    @order.step
    def items() -> list[str]:
        return ["cup", "pot"]

    @order.subflow(parcel, each=items)
    async def ship(item: str) -> dict[str, str]:
        return {"what": item}

    run = order.start()
    drain(hf)

    assert run.result_of("ship") == [{"hand_over": "packed cup, gone"}, {"hand_over": "packed pot, gone"}]


def test_a_condition_that_does_not_hold_skips_its_step(hf: Holdfast) -> None:
    order = hf.flow("order")

    @order.step
    def total(prices: list[int]) -> int:
        return sum(prices)

    @order.step(after=total, when=lambda total: total > 100)
    def approve(total: int) -> str:
        return f"approved {total}"

    @order.step(after=approve)
    def ship(approve: str | None) -> str:
        return approve or "not asked"

    small, large = order.start(prices=[3]), order.start(prices=[70, 80])
    drain(hf)

    assert (small.result_of(ship), large.result_of(ship)) == ("not asked", "approved 150")
    with hf._engine.connection() as connection:
        skipped = connection.execute("select task_id, name from flow.steps where skipped").fetchall()
    assert skipped == [(small.id, "approve")]


def test_steps_that_may_be_skipped_are_when_the_start_says_so(hf: Holdfast) -> None:
    order = hf.flow("order")
    called: list[str] = []

    @order.step
    def charge() -> None:
        called.append("charge")

    @order.step(after=charge, skippable=True)
    def notify() -> str:
        called.append("notify")
        return "sent"

    @order.step(after=notify)
    def close(notify: str | None) -> str:
        return notify or "silent"

    run = order.options(skip=["notify"], reason="a test order").start()
    drain(hf)

    assert (run.result_of(close), called) == ("silent", ["charge"])
    assert states(run)["notify"] == "resolved_manually"
    with pytest.raises(BadInput, match=r"charge .*notify"):
        order.options(skip=["charge"]).start()


def test_a_step_that_fails_for_good_ends_its_task_and_is_named(hf: Holdfast) -> None:
    """T-11, T-51, T-59, C-52"""
    order = hf.flow("order")

    @order.step
    def reserve() -> None:
        raise Fail("sold out")

    @order.step(after=reserve)
    def charge() -> None: ...

    run = order.start()
    drain(hf)

    with pytest.raises(RunFailed, match="reserve: Fail: sold"):
        run.result(1)
    assert states(run) == {"reserve": "error", "charge": "pending"}
