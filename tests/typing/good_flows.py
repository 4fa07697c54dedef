"""Flows as a typed team writes them: steps know their results, and neither tool finds anything."""

from __future__ import annotations

from typing import Any, assert_type
from uuid import UUID

from holdfast import Ctx, Event, Holdfast, RunFailed
from holdfast.errors import LeaseLost
from holdfast.flow import Backoff, Decision, Flow, FlowRun, Step, StepRetry
from holdfast.testing import failing

hf = Holdfast(backoff=Backoff(max_backoff_seconds=60))
order: Flow = hf.flow("order")
packing = hf.flow("packing")


@packing.step
def pack(parcel: str) -> str:
    return f"{parcel}, packed"


@order.step
def reserve(goods: list[str]) -> list[str]:
    return goods


@order.step(after=reserve, retry=5, limits=("bank",), weight=2.5)
async def charge(ctx: Ctx, goods: list[str], reserve: list[str]) -> int:
    return len(goods) + len(reserve) + ctx.attempt


@order.step(each=reserve, retry=StepRetry(limit=2), limits=["shop:{item}"], weight="{item}", call_weight=1)
def ship(item: str) -> tuple[str, int]:
    return item, 1


@order.step(each="reserve", name="praise")
async def praise_item(item: str) -> bool:
    return bool(item)


@order.step(after=[ship, charge, "praise"], when=lambda charge: charge > 1)
@failing(times=1, error=ConnectionError("away"))
def close(ship: list[tuple[str, int]], charge: int) -> str:
    return f"{len(ship)} parcels for {charge}"


@order.subflow(packing, after=reserve)
def packed(reserve: list[str]) -> dict[str, str]:
    return {"parcel": reserve[0]}


@order.subflow(packing, each=reserve)
def packed_apart(item: str) -> dict[str, str]:
    return {"parcel": item}


@order.step(after=reserve)
def anything(reserve: Any) -> Any:
    return reserve


def start() -> None:
    run = order.options(key="order:7").start(goods=["cup"])
    assert_type(run, FlowRun)
    assert_type(run.id, UUID)
    assert_type(run.result(), dict[str, Any])
    assert_type(run.result_of(reserve), list[str])
    assert_type(run.result_of(charge), int)
    assert_type(run.result_of(ship), list[tuple[str, int]])
    assert_type(run.result_of(praise_item), list[bool])
    assert_type(run.result_of(close), str)
    assert_type(run.result_of(packed), dict[str, Any])
    assert_type(run.result_of(packed_apart), list[dict[str, Any]])
    assert_type(run.result_of("reserve"), Any)


async def astart() -> None:
    run = await order.astart(goods=["cup"])
    assert_type(await run.aresult_of(charge), int)
    assert_type(await run.aresult_of("charge"), Any)


async def call(ctx: Ctx) -> None:
    """A step is still the function that it was."""
    assert_type(ship("cup"), tuple[str, int])
    assert_type(await charge(ctx, goods=["cup"], reserve=["shelf"]), int)
    anything([])["a"]


def annotate() -> None:
    """The function as it was written may be left out of an annotation."""
    step: Step[str] = close
    steps: list[Step[Any]] = [reserve, charge, ship]
    print(step.name, steps)


class Calendar:
    """A strategy."""

    def reenqueue(self, decision: Decision) -> None:
        print(decision.status)


hf.coordinator(strategy=Calendar())


@hf.on("flow.step.*")
async def report(event: Event) -> None:
    print(event.name, event.payload)


def careful(run: FlowRun) -> str | None:
    try:
        return run.result_of(close)
    except (RunFailed, LeaseLost) as error:
        return error.next
