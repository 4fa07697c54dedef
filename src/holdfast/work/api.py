"""Tasks in Python: registers the functions that serve them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.durations import Duration
from holdfast.errors import BadDefinition
from holdfast.handlers.limits import read_limits
from holdfast.handlers.registry import Handler, RetryPolicy, read_duration, read_retry
from holdfast.handlers.signature import Signature
from holdfast.spelling import checks_options
from holdfast.work.decorator import Async, TaskDecorator
from holdfast.work.define import Task
from holdfast.work.events import TaskWatcher, WorkExecutor

__all__ = ["Async", "Task", "TaskDecorator", "Tasks"]  # what annotations of the app name


class Tasks:
    """The tasks of an app."""

    def __init__(self, engine: WorkExecutor) -> None:
        self._engine = engine
        self.watcher = TaskWatcher(engine.subscribers)

    @checks_options(BadDefinition)
    def task(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        queue: str = "default",
        retry: int | RetryPolicy | None = None,
        timeout: Duration | None = None,
        lease: Duration | None = None,
        cpu: bool = False,
        limits: Sequence[str] | None = None,
        weight: float | str | None = None,
        call_weight: float | None = None,
    ) -> Task[..., Any]:
        """Register a function as a task."""
        signature = Signature(function)
        handler = Handler(
            kind=function.__name__ if name is None else name,
            function=function,
            signature=signature,
            is_async=inspect.iscoroutinefunction(function),
            uses_cpu=cpu,
            queue=queue,
            retry=read_retry(retry),
            lease=read_duration("lease", lease),
            timeout=read_duration("timeout", timeout),
            limited=read_limits(limits, weight, call_weight),
        )
        self._engine.registry.add(handler)
        return Task(handler, self._engine)

    def __iter__(self) -> Iterator[Task[..., Any]]:
        """Iterate over the tasks of the app, without the steps of its flows."""
        return (Task(handler, self._engine) for handler in self._engine.registry if handler.face == "work")
