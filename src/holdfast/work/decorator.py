"""The types of `hf.task(...)`, for type checkers: the parameters of `start` and the result of every kind of function.

A type checker takes the first overload that fits, so their order matters: `Callable[P, R]` fits all and comes
last. If a function takes `ctx` and its annotations mention `Any`, two overloads fit for mypy, and it infers
`Task[Any, Any, Any]`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from holdfast.handlers.batch import Batch
from holdfast.handlers.context import Ctx
from holdfast.handlers.untyped import Untyped
from holdfast.models import Fail, Retry, Snooze
from holdfast.work.define import BatchTask, Task

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Async = Callable[P, Coroutine[Any, Any, R]]  # an async function


class TaskDecorator(Protocol):
    """Makes a function a task."""

    @overload
    def __call__(self, function: Callable[..., Untyped], /) -> Task[..., Any]: ...
    @overload
    def __call__(self, function: Async[Concatenate[Untyped, P], R], /) -> Task[..., R, Async[..., R]]: ...
    @overload
    def __call__(self, function: Callable[Concatenate[Untyped, P], R], /) -> Task[..., R, Callable[..., R]]: ...
    @overload
    def __call__(self, function: Async[Concatenate[Ctx, P], R], /) -> Task[P, R, Async[Concatenate[Ctx, P], R]]: ...
    @overload
    def __call__(self, function: Async[P, R], /) -> Task[P, R, Async[P, R]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Ctx, P], R], /
    ) -> Task[P, R, Callable[Concatenate[Ctx, P], R]]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> Task[P, R, Callable[P, R]]: ...


Results = Sequence[R | Retry | Fail | Snooze]  # one per item; covariant, so that a list of anything fits


class BatchDecorator(Protocol):
    """Makes a function a task whose calls serve many steps: it takes a list of items and returns as many results."""

    @overload
    def __call__(
        self, function: Async[Concatenate[Batch, list[T], P], Results[R]], /
    ) -> BatchTask[T, R, Async[Concatenate[Batch, list[T], P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Batch, list[T], P], Results[R]], /
    ) -> BatchTask[T, R, Callable[Concatenate[Batch, list[T], P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Async[Concatenate[list[T], P], Results[R]], /
    ) -> BatchTask[T, R, Async[Concatenate[list[T], P], Results[R]]]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[list[T], P], Results[R]], /
    ) -> BatchTask[T, R, Callable[Concatenate[list[T], P], Results[R]]]: ...
