"""A flow whose steps run in processes of their own: these find them here by name."""

from __future__ import annotations

import os
import time
from typing import Any

from holdfast import Ctx, Holdfast
from holdfast.flow.define import Flow


def is_even(number: int) -> bool:
    return number % 2 == 0


def defined(hf: Holdfast) -> Flow:
    """Define it on an app."""
    flow = hf.flow("burn")
    flow.step(name="square", cpu=True, config={"power": 2})(square)
    flow.step(name="items", after="square", cpu=True)(items)
    flow.step(name="each_apart", each="items", cpu=True)(each_apart)
    return flow


def square(number: int, config: dict[str, int]) -> dict[str, int]:
    return {"pid": os.getpid(), "is": number ** config["power"]}


def items(square: dict[str, int]) -> list[int]:
    return [square["is"], square["is"] + 1]


def each_apart(ctx: Ctx, item: int, number: int) -> list[Any]:
    with ctx.transaction() as tx:
        tx.execute("insert into effects values (%s)", [item])
    return [item, number, os.getpid()]


def forever() -> None:
    while True:
        time.sleep(0.01)


apart = Holdfast("postgresql:///none")  # a child imports the module, and finds what it needs on it
conditional = apart.flow("conditional")


@conditional.step(cpu=True, when=is_even)
def halve(number: int) -> list[int]:
    return [number // 2, os.getpid()]
