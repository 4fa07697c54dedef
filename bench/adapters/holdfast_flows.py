"""Flows as holdfast's users write them, in the shapes that the bench asks for."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import probe
from driver import SHAPE, WIDTH

from holdfast import Holdfast
from holdfast.flow.define import Flow

FLOWS = ("diamond", "chain", "map")
SUBSCRIBES = os.environ.get("BENCH_SUBSCRIBES")  # the events that somebody subscribes to
TAKES = bool(os.environ.get("BENCH_TAKES"))  # whether steps take a field of the context and what their parents gave


def after() -> dict[str, list[str]]:
    """Return for each step of the shape which steps it waits for."""
    names = [f"step_{number}" for number in range(WIDTH + 1)]
    match SHAPE:
        case "diamond":
            middle = dict.fromkeys(names[1:-1], names[:1])
            return {names[0]: [], **middle, names[-1]: list(middle)}
        case "fan":
            return {**{name: [] for name in names[:-1]}, names[-1]: names[:-1]}
        case _:
            return {name: names[:place][-1:] for place, name in enumerate(names[:-1])}


def define(hf: Holdfast) -> Flow:
    """Define the flow of the shape, and subscribe to its events where that is asked for."""
    flow = hf.flow(SHAPE)
    if SUBSCRIBES:
        hf.on(SUBSCRIBES)(lambda _event: None)
    if SHAPE == "map":
        flow.step(name="items")(items)
        flow.step(name="each", each="items")(taking("item") if TAKES else one)
        flow.step(name="last", after="each")(noop)
        return flow
    for name, parents in after().items():
        flow.step(name=name, after=parents)(taking(*parents) if TAKES else noop)
    return flow


def context() -> dict[str, Any]:
    """Return the context of its start."""
    return {"order_id": 7} if TAKES else {}


def noop() -> None:
    """Do nothing."""
    probe.hit()


def one(item: int) -> None:
    """Do nothing with an item."""
    probe.hit()


def items() -> list[int]:
    """Return as many as the shape is wide."""
    probe.hit()
    return list(range(WIDTH))


def taking(*parents: str) -> Callable[..., int]:
    """Make a function that takes a field of the context and its parents' results, by their names."""

    def given(**arguments: int) -> int:
        probe.hit()
        return arguments["order_id"]

    names = ("order_id", *parents)
    taken = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=int) for name in names]
    given.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    given.__annotations__ = {**dict.fromkeys(names, int), "return": int}
    return given
