"""The types of `flow.step(...)`, for type checkers: a step's result is what its function returns.

A type checker takes the first overload that fits, so their order matters.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from holdfast.flow.step import Step
from holdfast.handlers.batch import Batch
from holdfast.handlers.untyped import Untyped
from holdfast.models import Fail, Retry, Snooze

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
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
    """Makes a function a step that runs once per item; its result is the list of the items' results."""

    @overload
    def __call__(self, function: Callable[P, Untyped], /) -> Step[list[Any], Callable[P, Any]]: ...
    @overload
    def __call__(self, function: Async[P, R], /) -> Step[list[R], Async[P, R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Step[list[R], Callable[P, R]]: ...


Results = Sequence[R | Retry | Fail | Snooze]  # one per item of a batch


class BatchStepDecorator(Protocol):
    """Makes a function a step whose calls serve many steps; a step's result is an element of the returned list."""

    @overload
    def __call__(
        self, function: Async[Concatenate[Batch, P], Results[R]], /
    ) -> Step[R, Async[Concatenate[Batch, P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Batch, P], Results[R]], /
    ) -> Step[R, Callable[Concatenate[Batch, P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[list[T], P], Results[R]], /
    ) -> Step[R, Callable[Concatenate[list[T], P], Results[R]]]: ...


class BatchStepsDecorator(Protocol):
    """Makes a function a step that runs once per item and shares calls; its result is the list of the results."""

    @overload
    def __call__(
        self, function: Async[Concatenate[Batch, P], Results[R]], /
    ) -> Step[list[R], Async[Concatenate[Batch, P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Batch, P], Results[R]], /
    ) -> Step[list[R], Callable[Concatenate[Batch, P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[list[T], P], Results[R]], /
    ) -> Step[list[R], Callable[Concatenate[list[T], P], Results[R]]]: ...


class SubflowDecorator(Protocol):
    """Makes a flow a step; its result maps the names of that flow's last steps to their results."""

    def __call__(self, function: Callable[P, R], /) -> Step[dict[str, Any], Callable[P, R]]: ...


class SubflowsDecorator(Protocol):
    """Makes a flow a step that runs once per item; its result is the list of the subflows' results."""

    def __call__(self, function: Callable[P, R], /) -> Step[list[dict[str, Any]], Callable[P, R]]: ...
