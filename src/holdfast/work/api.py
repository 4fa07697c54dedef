"""Tasks in Python: registers the functions that serve them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

from holdfast.handlers.registry import Handler, Registry, RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.kernel.call import Executor
from holdfast.models import Span, span
from holdfast.work.decorator import Async, TaskDecorator
from holdfast.work.define import Task

__all__ = ["Async", "Task", "TaskDecorator", "Tasks"]  # what annotations of the app name


class Engine(Protocol):
    """The inside of an app, as its tasks see it."""

    registry: Registry

    @property
    def executor(self) -> Executor: ...


class Tasks:
    """The tasks of an app."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def task(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str = "default",
        retry: RetryPolicy | None = None,
        timeout: Span | None = None,
        lease: Span | None = None,
        cpu: bool = False,
    ) -> Task[..., Any]:
        """Register a function as a task."""
        signature = Signature(function)
        handler = Handler(
            kind=name or function.__name__,
            function=function,
            signature=signature,
            is_async=inspect.iscoroutinefunction(function),
            uses_cpu=cpu,
            queue=queue,
            retry=retry,
            lease=None if lease is None else span(lease),
            timeout=None if timeout is None else span(timeout),
        )
        self._engine.registry.add(handler)
        return Task(handler, self._engine.executor)
