"""What `flow.step(...)` returns, for type checkers: a step whose result is what its function returns.

A type checker takes the first overload that fits, so their order matters.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, Protocol, TypeVar, overload

from holdfast.flow.step import Step
from holdfast.handlers.untyped import Untyped

P = ParamSpec("P")
R = TypeVar("R")
Async = Callable[P, Coroutine[Any, Any, R]]  # an async function


class StepDecorator(Protocol):
    """Makes a function a step."""

    @overload
    def __call__(self, function: Callable[P, Untyped], /) -> Step[Any, Callable[P, Any]]: ...
    @overload
    def __call__(self, function: Async[P, R], /) -> Step[R, Async[P, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[R, Callable[P, R]]: ...


class StepsDecorator(Protocol):
    """Makes a function a step that runs once per item; its result is the list of what the items gave."""

    @overload
    def __call__(self, function: Callable[P, Untyped], /) -> Step[list[Any], Callable[P, Any]]: ...
    @overload
    def __call__(self, function: Async[P, R], /) -> Step[list[R], Async[P, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[list[R], Callable[P, R]]: ...


class SubflowDecorator(Protocol):
    """Makes a flow a step; its result holds those of that flow's last steps, by name."""

    def __call__(self, function: Callable[P, R], /) -> Step[dict[str, Any], Callable[P, R]]: ...


class SubflowsDecorator(Protocol):
    """Makes a flow a step that runs once per item; its result is the list of what a subflow's would be."""

    def __call__(self, function: Callable[P, R], /) -> Step[list[dict[str, Any]], Callable[P, R]]: ...
