"""Tasks in Python: registers the functions that serve them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from holdfast.durations import Duration
from holdfast.errors import BadDefinition
from holdfast.handlers.batch import read_batching
from holdfast.handlers.batch_signature import BatchSignature
from holdfast.handlers.limits import read_limits
from holdfast.handlers.registry import Handler, RetryPolicy, read_duration, read_retry
from holdfast.handlers.signature import Signature
from holdfast.spelling import checks_options
from holdfast.work.decorator import Async, BatchDecorator, TaskDecorator
from holdfast.work.define import BatchTask, Task
from holdfast.work.events import TaskWatcher, WorkExecutor

__all__ = ["Async", "BatchDecorator", "Task", "TaskDecorator", "Tasks"]  # what annotations of the app name


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
        batch: int | None = None,
        by: str | None = None,
        batch_wait: Duration | None = None,
    ) -> Task[..., Any]:
        """Register a function as a task."""
        span = read_duration("lease", lease)
        batching = read_batching(batch, by, batch_wait, lease=span)
        signature = Signature(function) if batching is None else BatchSignature(function, batching)
        handler = Handler(
            kind=function.__name__ if name is None else name,
            function=function,
            signature=signature,
            is_async=inspect.iscoroutinefunction(function),
            uses_cpu=cpu,
            queue=queue,
            retry=read_retry(retry),
            lease=span,
            timeout=read_duration("timeout", timeout),
            limited=read_limits(limits, weight, call_weight),
            batching=batching,
        )
        self._engine.registry.add(handler)
        return _task(handler, self._engine)

    def __iter__(self) -> Iterator[Task[..., Any]]:
        """Iterate over the tasks of the app, without the steps of its flows."""
        return (_task(handler, self._engine) for handler in self._engine.registry if handler.face == "work")


def _task(handler: Handler, engine: WorkExecutor) -> Task[..., Any]:
    if handler.batching is None:
        return Task(handler, engine)
    return BatchTask(handler, engine)
