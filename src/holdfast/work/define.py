"""A task as users write it down: a function, and the ways to start it."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Generic, ParamSpec, TypeVar

from psycopg import AsyncConnection, Connection

from holdfast import tracing
from holdfast.durations import Duration, duration
from holdfast.errors import BadInput, InputRefused
from holdfast.handlers.limits import check_limits, check_weight
from holdfast.handlers.registry import Handler
from holdfast.handlers.signature import TRACE
from holdfast.kernel import bulk, calls
from holdfast.kernel.call import (
    LONGEST_KEY,
    Call,
    check_delay,
    check_due,
    check_names,
    check_priority,
    check_tenant,
)
from holdfast.spelling import checks_options
from holdfast.work.events import WorkExecutor
from holdfast.work.handle import TaskHandle

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Options of a start beside the arguments."""

    key: str | None = None
    unique_key: str | None = None
    due_at: datetime | None = None
    queue: str | None = None
    priority: int = 0
    tenant: str = "default"
    conn: Any = None
    delay: timedelta | None = None
    limits: tuple[str, ...] | None = None
    weight: float | None = None

    def __post_init__(self) -> None:
        check_names([("queue", self.queue)])
        check_names([("key", self.key), ("unique_key", self.unique_key)], LONGEST_KEY)
        check_due(self.due_at)
        check_priority(self.priority)
        check_tenant(self.tenant)
        check_delay(self.delay, self.due_at)

    def due(self, now: Sequence[datetime]) -> datetime | None:
        """Return when the task is due; `now` is the time of the database, which is read only for a delay."""
        return self.due_at if self.delay is None else now[0] + self.delay


class Task(Generic[P, R]):
    """A function that is started to be run by a worker. Calling it runs it here and now, as any function."""

    def __init__(self, handler: Handler, executor: WorkExecutor, options: StartOptions | None = None) -> None:
        self.handler = handler
        self._executor = executor
        self._options = options or StartOptions()
        functools.update_wrapper(self, handler.function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run it here, without the database."""
        return self.handler.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.handler.kind}>"

    @property
    def name(self) -> str:
        """The name that it is started and claimed by."""
        return self.handler.kind

    @checks_options(BadInput)
    def options(
        self,
        *,
        key: str | None = None,
        unique_key: str | None = None,
        due_at: datetime | None = None,
        queue: str | None = None,
        priority: int = 0,
        tenant: str = "default",
        conn: Connection[Any] | AsyncConnection[Any] | None = None,
        delay: Duration | None = None,
        limits: Sequence[str] | None = None,
        weight: float | None = None,
    ) -> Task[P, R]:
        """Give the same task with options for its start.

        `key`: the same key with the same arguments starts it once, for good. `unique_key`: once while it is not over.
        `delay`: not before that much time has passed, by the database's clock. `due_at`: not before that moment.
        `conn`: inside your own transaction. `priority`: 0 to 9, higher goes first. `limits` and `weight` replace those
        of the task: up to three limits, and what it takes from their buckets.
        """
        waits = None if delay is None else duration(delay, "delay")
        check_weight("weight", weight, BadInput)
        names = None if limits is None else check_limits(limits, BadInput)
        options = StartOptions(key, unique_key, due_at, queue, priority, tenant, conn, waits, names, weight)
        return Task(self.handler, self._executor, options)

    def start(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Start it, with arguments as the function types them."""
        options = self._options
        now = [] if options.delay is None else self._executor.make(calls.clock(), options.conn)
        (step_id,) = self._executor.make(self._start(args, kwargs, options.due(now)), options.conn)
        return self._handle(step_id)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Start it, as `start` does."""
        options = self._options
        now = [] if options.delay is None else await self._executor.amake(calls.clock(), options.conn)
        (step_id,) = await self._executor.amake(self._start(args, kwargs, options.due(now)), options.conn)
        return self._handle(step_id)

    def start_many(self, arguments: Iterable[Mapping[str, Any]]) -> int:
        """Start one task for each set of named arguments, by COPY, all or none, and return their number."""
        signature, options = self.handler.signature, self._options
        for option in ("key", "unique_key"):
            if getattr(options, option) is not None:
                raise BadInput(
                    f"start_many takes no {option}", where=option, next="leave it out, or start the tasks one by one"
                )
        queue = options.queue or self.handler.queue
        now = [] if options.delay is None else self._executor.make(calls.clock(), options.conn)
        due_at = options.due(now)
        written = (signature.write(self._named(place, each)) for place, each in enumerate(arguments))
        rows = (
            bulk.Start(self.name, text, queue, options.priority, due_at, *self._limits(text)) for text in written
        )
        with self._executor.connection(options.conn) as connection:
            return bulk.start_tasks(connection, rows, tenant=options.tenant)

    def _named(self, place: int, arguments: Any) -> dict[str, Any]:
        """Check the arguments of one of many."""
        if not isinstance(arguments, Mapping):
            names = ", ".join(f'"{name}": …' for name in self.handler.signature.names())
            raise InputRefused(
                f"start_many takes one mapping per task, got {type(arguments).__name__} at {place}",
                where=f"arguments[{place}]",
                next=f"use {{{names}}}",
            )
        return self.handler.signature.check((), arguments)

    def _traced(self, checked: dict[str, Any]) -> dict[str, Any]:
        """Let the trace go on in the handler; not under a key, whose input has to be the same each time."""
        carrier = None if self._options.key else tracing.carrier()
        return checked if carrier is None else {**checked, TRACE: carrier}

    def _handle(self, step_id: int) -> TaskHandle[R]:
        return TaskHandle(step_id, self.handler.signature.read_result, self._executor)

    def _start(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], due_at: datetime | None) -> Call[int]:
        signature, options = self.handler.signature, self._options
        written = signature.write(self._traced(signature.check(args, kwargs)))
        limits, weight = self._limits(written)
        return calls.start_task(
            self.name,
            written,
            queue=options.queue or self.handler.queue,
            key=options.key,
            unique_key=options.unique_key,
            due_at=due_at,
            priority=options.priority,
            tenant=options.tenant,
            limits=limits,
            weight=weight,
        )

    def _limits(self, written: str) -> tuple[list[str] | None, float | None]:
        """Return the limits and the weight of a start: its own options, else the task's."""
        names, weight = self.handler.limited.of(written) if self._options.limits is None else (None, None)
        given = names if self._options.limits is None else list(self._options.limits)
        return given, weight if self._options.weight is None else self._options.weight
