"""Functions put around a step's own: a condition, a map over a list, a sub-flow.

The last two plan further steps when they run and end when these are done. The first execution adds the steps and lets
its own wait for them, in the transaction that settles it as continued. The second finds its cursor set and joins the
results.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, get_type_hints

from holdfast.errors import BadInput, BadTask
from holdfast.flow import graph
from holdfast.flow.context import Context
from holdfast.handlers.context import Ctx
from holdfast.handlers.signature import ResultRefused, Signature
from holdfast.kernel import calls, db
from holdfast.kernel.call import Call
from holdfast.models import Continue, Fail

OURS = "holdfast_"  # begins the names of what wrappers take for themselves
CTX = f"{OURS}ctx"
ITEM = "item"  # the parameter by which a mapped step takes its own
PLACE = f"{OURS}place"  # the step's name in its run
PLAN = f"{OURS}plan"
VERSION = f"{OURS}version"
INNER = f"{OURS}inner"  # what the steps gave that a sub-flow ends with

Planned = dict[str, Any]


class Parameters:
    """What a function takes, by name, its context apart."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise BadTask(
                f"an annotation of {getattr(function, '__qualname__', function)} cannot be read: {error}; "
                "import what it names at the top of the module, not under TYPE_CHECKING"
            ) from error
        taken = inspect.signature(function).parameters
        self.ctx_name = next((name for name in taken if hints.get(name) is Ctx), None)
        self.returns = hints.get("return", Any)
        self.named = {
            name: parameter.replace(annotation=hints.get(name, Any))
            for name, parameter in taken.items()
            if name != self.ctx_name
        }

    def of(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Pick what the function takes out of what its wrapper was given."""
        taken = {name: value for name, value in given.items() if name in self.named}
        return taken if self.ctx_name is None else {**taken, self.ctx_name: given[CTX]}


def shaped(
    function: Callable[..., Any], like: Callable[..., Any], parameters: Iterable[inspect.Parameter], returns: Any
) -> Any:
    """Give a function the name and place of another, and parameters and types that are said here."""
    taken = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in parameters]
    shape: Any = function
    shape.__signature__ = inspect.Signature(taken)
    shape.__annotations__ = {**{p.name: p.annotation for p in taken}, "return": returns}
    for name in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(shape, name, getattr(like, name, None))
    return shape


def parameter(name: str, hint: Any = Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    """Make a parameter."""
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def conditional(function: Callable[..., Any], condition: Callable[..., Any], step: str) -> Any:
    """Let a function run only when a condition over what it may be given holds; else its step is skipped."""
    if inspect.iscoroutinefunction(condition):
        raise BadTask(
            f"step {step}: `when` is async; a condition only looks at what it is given, so make it a plain def"
        )
    Signature(condition)  # refuses what cannot be called by names
    own, asked = Parameters(function), Parameters(condition)
    taken = {**asked.named, **own.named, CTX: parameter(CTX, Ctx)}

    def holds(given: dict[str, Any]) -> bool:
        ctx: Ctx = given[CTX]
        if ctx.cursor is not None or condition(**asked.of(given)):  # what has begun is carried through
            return True
        ctx.skipped(f"{getattr(condition, '__name__', 'when')} said no")
        return False

    async def arun(**given: Any) -> Any:
        return await function(**own.of(given)) if holds(given) else None

    def run(**given: Any) -> Any:
        return function(**own.of(given)) if holds(given) else None

    made = arun if inspect.iscoroutinefunction(function) else run
    return shaped(made, function, taken.values(), Any if own.returns is Any else own.returns | None)


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
