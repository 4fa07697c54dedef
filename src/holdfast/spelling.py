"""Suggests the name that was probably meant, and refuses keywords that a function does not have."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

from holdfast.errors import HoldfastError

P = ParamSpec("P")
R = TypeVar("R")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Suggest the closest known name, or list all."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {close[0]}?" if close else f"there are: {', '.join(names)}"


def checks_options(error: type[HoldfastError]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a function refuse an unknown keyword with `error` and the closest one that it has."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        known = [name for name in inspect.signature(function).parameters if name != "self"]

        @functools.wraps(function)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            for name in options:
                if name not in known:
                    raise error(f"there is no option {name}", where=name, next=did_you_mean(name, known))
            return function(*args, **options)

        return checked

    return decorate
