"""Wrappers of a step's function: a condition, a map over a list, a sub-flow.

The last two plan further steps when they run and end when these are done. The first execution adds the steps and makes
its own step wait for them, in the transaction that settles it as continued. The second finds its cursor set and joins
the results.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_type_hints

from holdfast.errors import BadDefinition, BadInput
from holdfast.flow import graph
from holdfast.flow.context import Context
from holdfast.flow.limits import filled, of_item
from holdfast.handlers.context import Ctx
from holdfast.handlers.limits import KindLimits
from holdfast.handlers.signature import ResultRefused, Signature
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.models import Continue, Fail

OURS = "holdfast_"  # the prefix of the wrappers' own parameters
CTX = f"{OURS}ctx"
ITEM = "item"  # the parameter of a mapped step that receives its item
PLACE = f"{OURS}place"  # the step's name in its run
PLAN = f"{OURS}plan"
VERSION = f"{OURS}version"
INNER = f"{OURS}inner"  # results of the last steps of a sub-flow
CONTEXT = f"{OURS}context"  # the whole context, for limits that name its fields

Planned = dict[str, Any]


class Parameters:
    """The parameters of a function by name, without its `Ctx`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise BadDefinition(
                f"an annotation of {getattr(function, '__qualname__', function)} cannot be read: {error}",
                next="import what it names at the top of the module, not under TYPE_CHECKING",
            ) from error
        taken = inspect.signature(function).parameters
        self.ctx_name = next((name for name in taken if hints.get(name) is Ctx), None)
        self.returns = hints.get("return", Any)
        self.named = {
            name: parameter.replace(annotation=hints.get(name, Any))
            for name, parameter in taken.items()
            if name != self.ctx_name
        }

    def of(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Select the function's arguments from those of its wrapper."""
        own = {name: value for name, value in arguments.items() if name in self.named}
        return own if self.ctx_name is None else {**own, self.ctx_name: arguments[CTX]}


def shaped(
    function: Callable[..., Any], like: Callable[..., Any], parameters: Iterable[inspect.Parameter], returns: Any
) -> Any:
    """Give a function the name and module of another, and these parameters and types."""
    taken = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    shape: Any = function
    shape.__signature__ = inspect.Signature(taken)
    shape.__annotations__ = {**{p.name: p.annotation for p in taken}, "return": returns}
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(shape, name, getattr(like, name, None))
    return shape


def parameter(name: str, hint: Any = Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Return a keyword parameter."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def conditional(function: Callable[..., Any], condition: Callable[..., Any], step: str) -> Any:
    """Run a function only when a condition over its step's arguments holds; otherwise skip the step."""
    if inspect.iscoroutinefunction(condition):
        raise BadDefinition(
            f"step {step}: `when` must be a plain function, got an async one",
            where="when",
            next="make the condition a plain def",
        )
    Signature(condition)  # raises for a function that cannot be called with keywords
    own, of_condition = Parameters(function), Parameters(condition)
    taken = {CTX: parameter(CTX, Ctx), **of_condition.named, **own.named}

    def holds(arguments: dict[str, Any]) -> bool:
        ctx: Ctx = arguments[CTX]
        if ctx.cursor is not None or condition(**of_condition.of(arguments)):  # a step that has begun must finish
            return True
        ctx.skipped(f"{getattr(condition, '__name__', 'when')} returned false")
        return False

    async def arun(**arguments: Any) -> Any:
        return await function(**own.of(arguments)) if holds(arguments) else None

    def run(**arguments: Any) -> Any:
        return function(**own.of(arguments)) if holds(arguments) else None

    wrapper = arun if inspect.iscoroutinefunction(function) else run
    return shaped(wrapper, function, taken.values(), Any if own.returns is Any else own.returns | None)


def mapper(
    item: Planned,
    parent: str,
    function: Callable[..., Any],
    *,
    limited: KindLimits,
    batch_key: str | None,
    may_be_skipped: bool,
) -> Any:
    """Return the function of a step that plans `item` once per item of its parent's list."""

    def expand(**arguments: Any) -> Any:
        ctx: Ctx = arguments[CTX]
        if ctx.cursor is not None:
            return ctx.cursor
        items = [] if arguments[parent] is None and may_be_skipped else arguments[parent]
        if not isinstance(items, list):
            message = f"a map needs a list, but step {parent} returned {type(items).__name__}; return a list there"
            raise Fail({"type": "NoList", "message": message})
        if not items:
            return []
        shared = {"plan": arguments[PLAN], "version": arguments[VERSION]} if arguments.get(PLAN) else {}
        steps = [
            {**item, "name": f"{arguments[PLACE]}[{place}]", "input": {**shared, "item": each}, **of_one}
            for place, (each, of_one) in enumerate(of_item(limited, batch_key, arguments.get(CONTEXT), items))
        ]
        _plan(ctx, calls.add_awaited(ctx.step_id, ctx.lease_id, steps))
        raise Continue({"mapped": len(items)})

    parameters = [parameter(CTX, Ctx), parameter(PLACE, str), parameter(parent), *_pinned()]
    if limited.fields() or batch_key:
        parameters.append(parameter(CONTEXT, dict[str, Any]))
    return shaped(expand, function, parameters, Any)


def opener(function: Callable[..., Any], context: Callable[[], Context]) -> Any:
    """Return the function of a step that opens a sub-flow with the result of the step's own function as its context."""
    own = Parameters(function)

    def planned(arguments: dict[str, Any], result: Any) -> tuple[Call[int], Continue]:
        place, ctx = arguments[PLACE], arguments[CTX]
        try:
            written = json.loads(context().write(result))
            steps = [prefixed(filled(step, written), place) for step in arguments[PLAN]]
        except BadInput as error:
            raise ResultRefused(str(error)) from None
        awaited = [f"{place}.{leaf}" for leaf in _leaves(arguments[PLAN])]
        call = calls.add_awaited(ctx.step_id, ctx.lease_id, steps, awaited)
        return call, Continue({"context": written, "version": arguments[VERSION]})

    def joined(arguments: dict[str, Any]) -> Any:
        return {leaf: arguments[INNER].get(leaf) for leaf in _leaves(arguments[PLAN])}

    async def abegin(**arguments: Any) -> Any:
        if arguments[CTX].cursor is not None:
            return joined(arguments)
        with _no_continue():
            result = await function(**own.of(arguments))
        call, outcome = planned(arguments, result)
        await _aplan(arguments[CTX], call)
        raise outcome

    def begin(**arguments: Any) -> Any:
        if arguments[CTX].cursor is not None:
            return joined(arguments)
        with _no_continue():
            result = function(**own.of(arguments))
        call, outcome = planned(arguments, result)
        _plan(arguments[CTX], call)
        raise outcome

    wrapper = abegin if inspect.iscoroutinefunction(function) else begin
    inner = parameter(INNER, dict[str, Any], None)
    taken = [parameter(CTX, Ctx), parameter(PLACE, str), *_pinned(), inner, *own.named.values()]
    return shaped(wrapper, function, taken, Any)


def prefixed(step: Mapping[str, Any], place: str) -> Planned:
    """Prefix a step of a sub-flow's plan with the name of the step that opened it."""
    after = [f"{place}.{name}" for name in step.get("after", ())]
    return {**step, "name": f"{place}.{step['name']}", "after": after}


def _leaves(plan: Sequence[Mapping[str, Any]]) -> list[str]:
    """List the last steps of a sub-flow, from the plan that the run stores: the definition may have changed since."""
    return graph.leaves({step["name"]: step.get("after", ()) for step in plan})


@contextmanager
def _no_continue() -> Iterator[None]:
    """Reject a Continue: the cursor marks that the sub-flow's steps are planned."""
    try:
        yield
    except Continue:
        message = "the function of a sub-flow returns its context and cannot continue; page in an earlier step"
        raise Fail({"type": "OutcomeRefused", "message": message}) from None


def _pinned() -> list[inspect.Parameter]:
    """List the parameters for what a run stores about a sub-flow at its start, so that its shape does not change."""
    return [parameter(PLAN, list[dict[str, Any]], None), parameter(VERSION, str, None)]


def _plan(ctx: Ctx, call: Call[int]) -> None:
    with ctx.transaction() as transaction:
        db.run(transaction, call)


async def _aplan(ctx: Ctx, call: Call[int]) -> None:
    async with ctx.transaction() as transaction:
        await db.arun(transaction, call)
