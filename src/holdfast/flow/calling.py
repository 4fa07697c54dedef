"""Functions put around a step's own, with parameters of their own making: what a handler's signature is read from."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_type_hints

from holdfast.errors import BadTask
from holdfast.handlers.context import Ctx
from holdfast.handlers.signature import Signature

OURS = "holdfast_"  # begins the names of what wrappers take for themselves
CTX = f"{OURS}ctx"


class Parameters:
    """What a function takes, by name, its context apart."""

    def __init__(self, function: Callable[..., Any]) -> None:
        try:
            hints = get_type_hints(function, include_extras=True)
        except (NameError, TypeError, AttributeError) as error:
            raise BadTask(
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
            f"step {step}: `when` is async",
            where="when",
            next="a condition only looks at what it is given, so make it a plain def",
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
