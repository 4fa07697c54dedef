"""Suggests the name that was probably meant, and rejects keywords that a function does not have."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from holdfast.errors import HoldfastError

P = ParamSpec("P")
R = TypeVar("R")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the closest known name, or with all names."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"use one of: {', '.join(names)}"


def checks_options(
    error: type[HoldfastError], *, more: Iterable[str] = ()
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function reject an unknown keyword with `error`, which names the closest known one.

    `more` are the keywords that the function takes as `**options`.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        parameters = inspect.signature(function).parameters.values()
        named = [each.name for each in parameters if each.kind is not each.VAR_KEYWORD and each.name != "self"]
        known = [*named, *more]

        def check(options: Iterable[str]) -> None:
            for name in options:
                if name not in known:
                    raise error(f"there is no option {name}", where=name, next=did_you_mean(name, known))

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            check(options)
            return function(*args, **options)

        @functools.wraps(function)
        async def achecked(*args: P.args, **options: P.kwargs) -> Any:
            check(options)
            return await cast("Awaitable[Any]", function(*args, **options))

        return cast("Callable[P, R]", achecked) if inspect.iscoroutinefunction(function) else checked

    return decorate
