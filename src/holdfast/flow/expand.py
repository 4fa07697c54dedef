"""Steps that plan further steps when they run and end when these are done: a map over a list, a sub-flow.

The first execution adds the steps and lets its own wait for them, in the transaction that settles it as continued; the
second finds its cursor set and joins what they gave.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from holdfast.errors import BadInput
from holdfast.flow import graph
from holdfast.flow.calling import CTX, OURS, Parameters, parameter, shaped
from holdfast.flow.context import Context
from holdfast.handlers.context import Ctx
from holdfast.handlers.signature import ResultRefused
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.models import Continue, Fail

ITEM = "item"  # the parameter by which a mapped step takes its own
PLACE = f"{OURS}place"  # the step's name in its run
PLAN = f"{OURS}plan"
VERSION = f"{OURS}version"
INNER = f"{OURS}inner"  # what the steps gave that a sub-flow ends with

Planned = dict[str, Any]


def mapper(item: Planned, parent: str, function: Callable[..., Any], *, may_be_skipped: bool) -> Any:
    """Give the function of a step that runs `item` once for each item of its parent's list."""

    def expand(**given: Any) -> Any:
        ctx: Ctx = given[CTX]
        if ctx.cursor is not None:
            return ctx.cursor
        items = [] if given[parent] is None and may_be_skipped else given[parent]
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


def opener(function: Callable[..., Any], context: Callable[[], Context]) -> Any:
    """Give the function of a step that opens a sub-flow, whose context is what the step's own function gives."""
    own = Parameters(function)

    def planned(given: dict[str, Any], made: Any) -> tuple[Call[int], Continue]:
        try:
            written = json.loads(context().write(made))
        except BadInput as error:
            raise ResultRefused(str(error)) from None
        place, ctx = given[PLACE], given[CTX]
        steps = [prefixed(step, place) for step in given[PLAN]]
        awaited = [f"{place}.{leaf}" for leaf in _leaves(given[PLAN])]
        call = calls.add_awaited(ctx.step_id, ctx.lease_id, steps, awaited)
        return call, Continue({"context": written, "version": given[VERSION]})

    def joined(given: dict[str, Any]) -> Any:
        return {leaf: given[INNER].get(leaf) for leaf in _leaves(given[PLAN])}

    async def abegin(**given: Any) -> Any:
        if given[CTX].cursor is not None:
            return joined(given)
        with _one_go():
            made = await function(**own.of(given))
        call, outcome = planned(given, made)
        await _aplan(given[CTX], call)
        raise outcome

    def begin(**given: Any) -> Any:
        if given[CTX].cursor is not None:
            return joined(given)
        with _one_go():
            made = function(**own.of(given))
        call, outcome = planned(given, made)
        _plan(given[CTX], call)
        raise outcome

    made = abegin if inspect.iscoroutinefunction(function) else begin
    inner = parameter(INNER, dict[str, Any], None)
    taken = [parameter(CTX, Ctx), parameter(PLACE, str), *_pinned(), inner, *own.named.values()]
    return shaped(made, function, taken, Any)


def prefixed(step: Mapping[str, Any], place: str) -> Planned:
    """Put a step of a sub-flow's plan under the name of the step that opened it."""
    after = [f"{place}.{name}" for name in step.get("after", ())]
    return {**step, "name": f"{place}.{step['name']}", "after": after}


def _leaves(plan: Sequence[Mapping[str, Any]]) -> list[str]:
    """List what a sub-flow ends with, by the plan that the run keeps: the flow may look otherwise by now."""
    return graph.leaves({step["name"]: step.get("after", ()) for step in plan})


@contextmanager
def _one_go() -> Iterator[None]:
    """Refuse a Continue: the cursor says that the sub-flow's steps are planned."""
    try:
        yield
    except Continue:
        said = "the function of a sub-flow gives its context, and cannot continue; page in a step before it"
        raise Fail({"type": "OutcomeRefused", "message": said}) from None


def _pinned() -> list[inspect.Parameter]:
    """What a run keeps of a sub-flow from its start: the plan, so that it ends on the shape it began with."""
    return [parameter(PLAN, list[dict[str, Any]], None), parameter(VERSION, str, None)]


def _plan(ctx: Ctx, call: Call[int]) -> None:
    with ctx.transaction() as transaction:
        db.run(transaction, call)


async def _aplan(ctx: Ctx, call: Call[int]) -> None:
    async with ctx.transaction() as transaction:
        await db.arun(transaction, call)
