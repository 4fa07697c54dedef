"""Steps that plan further steps when they run and end when these are done: a map over a list, a sub-flow.

The first execution adds the steps and lets its own wait for them, in the transaction that settles it as continued; the
second finds its cursor set and joins what they gave.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from holdfast.flow.calling import CTX, Parameters, parameter, shaped
from holdfast.flow.context import Context
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.kernel.context import Ctx
from holdfast.models import Continue, Fail

ITEM = "item"  # the parameter by which a mapped step takes its own
PLACE = "holdfast_place"  # the step's name in its run
PLAN = "holdfast_plan"
VERSION = "holdfast_version"
INNER = "holdfast_inner_"  # before the name of a step that a sub-flow ends with

Planned = dict[str, Any]


def mapper(item: Planned, parent: str, function: Callable[..., Any]) -> Any:
    """Give the function of a step that runs `item` once for each item of its parent's list."""

    def expand(**given: Any) -> Any:
        ctx: Ctx = given[CTX]
        if ctx.cursor is not None:
            return ctx.cursor
        items = given[parent]
        if not isinstance(items, list):
            said = f"step {parent} gave {type(items).__name__}, and a map goes over a list; let it give one"
            raise Fail({"type": "NoList", "message": said})
        if not items:
            return []
        shared = {"plan": given[PLAN], "version": given[VERSION]} if given.get(PLAN) else {}
        steps = [
            {**item, "name": f"{given[PLACE]}[{place}]", "input": {**shared, "item": each}}
            for place, each in enumerate(items)
        ]
        _plan(ctx, calls.add_awaited(ctx.step_id, ctx.lease_id, steps))
        raise Continue({"mapped": len(items)})

    parameters = [parameter(CTX, Ctx), parameter(PLACE, str), parameter(parent), *_pinned()]
    return shaped(expand, function, parameters, Any)


def opener(function: Callable[..., Any], context: Callable[[], Context], leaves: Sequence[str]) -> Any:
    """Give the function of a step that opens a sub-flow, whose context is what the step's own function gives."""
    own = Parameters(function)
    ctx_name = own.ctx_name or CTX

    def planned(given: dict[str, Any], made: Any) -> tuple[Call[int], Continue]:
        written = json.loads(context().write(made))
        place, ctx = given[PLACE], given[ctx_name]
        steps = [prefixed(step, place) for step in given[PLAN]]
        awaited = [f"{place}.{leaf}" for leaf in leaves]
        call = calls.add_awaited(ctx.step_id, ctx.lease_id, steps, awaited)
        return call, Continue({"context": written, "version": given[VERSION]})

    def joined(given: dict[str, Any]) -> Any:
        return {leaf: given.get(INNER + leaf) for leaf in leaves}

    async def abegin(**given: Any) -> Any:
        if given[ctx_name].cursor is not None:
            return joined(given)
        call, outcome = planned(given, await function(**own.of(given)))
        await _aplan(given[ctx_name], call)
        raise outcome

    def begin(**given: Any) -> Any:
        if given[ctx_name].cursor is not None:
            return joined(given)
        call, outcome = planned(given, function(**own.of(given)))
        _plan(given[ctx_name], call)
        raise outcome

    made = abegin if inspect.iscoroutinefunction(function) else begin
    inner = [parameter(INNER + leaf, default=None) for leaf in leaves]
    taken = [parameter(ctx_name, Ctx), parameter(PLACE, str), *_pinned(), *inner, *own.named.values()]
    return shaped(made, function, taken, Any)


def prefixed(step: Mapping[str, Any], place: str) -> Planned:
    """Put a step of a sub-flow's plan under the name of the step that opened it."""
    after = [f"{place}.{name}" for name in step.get("after", ())]
    return {**step, "name": f"{place}.{step['name']}", "after": after}


def _pinned() -> list[inspect.Parameter]:
    """What a run keeps of a sub-flow from its start: the plan, so that it ends on the shape it began with."""
    return [parameter(PLAN, list[dict[str, Any]], None), parameter(VERSION, str, None)]


def _plan(ctx: Ctx, call: Call[int]) -> None:
    with ctx.transaction() as transaction:
        db.run(transaction, call)


async def _aplan(ctx: Ctx, call: Call[int]) -> None:
    async with ctx.transaction() as transaction:
        await db.arun(transaction, call)
