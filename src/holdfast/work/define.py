"""A task as users define it: a function, and the ways to start it."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, Self

from typing_extensions import TypeVar

from holdfast import tracing
from holdfast.connections.caller.drivers import astart_tasks
from holdfast.connections.caller.lend import check_conn
from holdfast.connections.caller.types import CallerConnection
from holdfast.durations import Duration, duration
from holdfast.errors import BadDefinition, BadInput, InputRefused
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
from holdfast.kernel.schedule_calls import Target
from holdfast.models import Json
from holdfast.spelling import checks_options
from holdfast.work.events import WorkExecutor
from holdfast.work.handle import TaskHandle

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Function_co = TypeVar("Function_co", bound=Callable[..., Any], default=Callable[..., Any], covariant=True)


@dataclass(frozen=True, slots=True)
class StartOptions:
    """Options of a start besides the arguments."""

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
    key_for: timedelta | None = None

    def __post_init__(self) -> None:
        check_names([("queue", self.queue)])
        check_names([("key", self.key), ("unique_key", self.unique_key)], LONGEST_KEY)
        check_due(self.due_at)
        check_priority(self.priority)
        check_tenant(self.tenant)
        check_delay(self.delay, self.due_at)
        check_conn(self.conn)

    def due(self, now: Sequence[datetime]) -> datetime | None:
        """Return when tasks of a bulk start are due; `now` is the time of the database, which is read for a delay."""
        return self.due_at if self.delay is None else now[0] + self.delay


class Task(Generic[P, R, Function_co]):
    """A function that workers run after a start. Calling it runs it directly, like any function.

    A `Task[P, R]` is started with the parameters `P`, the function's own without `ctx`, and its result is an `R`. The
    third parameter is the function as it was written; an annotation may leave it out.
    """

    def __init__(self, handler: Handler, executor: WorkExecutor, options: StartOptions | None = None) -> None:
        self.handler = handler
        self._executor = executor
        self._options = options or StartOptions()
        functools.update_wrapper(self, handler.function)

    if TYPE_CHECKING:
        __call__: Function_co  # the function itself, with its own parameters and return type
    else:

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            """Run its function directly, without the database."""
            return self.handler.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.handler.kind}>"

    @property
    def name(self) -> str:
        """The task's name."""
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
        conn: CallerConnection | None = None,
        delay: Duration | None = None,
        limits: Sequence[str] | None = None,
        weight: float | None = None,
        key_for: Duration | None = None,
    ) -> Self:
        """Return the same task with options for its start.

        `key`: reusing the key with the same arguments returns the existing task, always or, with `key_for`, within
        that time. `unique_key`: the same, but only until the task ends. `delay`: run it after that time, by the
        database's clock. `due_at`: run it no earlier than that. `conn`: start it inside your own connection's
        transaction. `priority`: 0 to 9, higher runs first. `limits` and `weight` replace those of the task: up to
        three limits, and what it takes from their buckets.
        """
        waits = None if delay is None else duration(delay, "delay")
        check_weight("weight", weight, BadInput)
        names = None if limits is None else check_limits(limits, BadInput)
        kept = None if key_for is None else duration(key_for, "key_for")
        options = StartOptions(key, unique_key, due_at, queue, priority, tenant, conn, waits, names, weight, kept)
        task: Self = type(self).__new__(type(self))
        task.__dict__.update(self.__dict__, _options=options)  # a copy: wrapping the function again takes longer
        return task

    def start(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Start it with the function's arguments, without `ctx`."""
        (step_id,) = self._executor.make(self._start(args, kwargs), self._options.conn)
        return self._handle(step_id)

    async def astart(self, *args: P.args, **kwargs: P.kwargs) -> TaskHandle[R]:
        """Start it, as `start` does."""
        (step_id,) = await self._executor.amake(self._start(args, kwargs), self._options.conn)
        return self._handle(step_id)

    def scheduled(self, input: Any) -> Target:  # noqa: A002 - the word is the same in SQL
        """Check the arguments of a schedule's tasks, and return what the schedule is to start."""
        options = self._options
        for option in ("key", "unique_key", "due_at", "delay", "conn"):
            if getattr(options, option) is not None:
                raise BadDefinition(
                    f"a schedule of {self.name} has no option {option}",
                    where=option,
                    next="leave it out: each tick is started once anyway",
                )
        if not isinstance(input, Mapping | None):
            raise BadDefinition(
                f"the input of a schedule must be a mapping of arguments, got {type(input).__name__}",
                where="input",
                next=self.handler.signature.usage(),
            )
        written = self.handler.signature.write(self.handler.signature.check((), input or {}))
        limits = None if options.limits is None else list(options.limits)
        arguments = {
            "queue": options.queue,
            "priority": options.priority or None,
            "limits": limits,
            "weight": options.weight,
        }
        return Target(
            "work",
            self.name,
            written,
            {name: value for name, value in arguments.items() if value is not None},
            options.tenant,
        )

    def start_many(self, arguments: Iterable[Mapping[str, Any]]) -> int:
        """Start one task per mapping of arguments, by COPY, all or none, and return their number."""
        options = self._options
        now = [] if options.delay is None else self._executor.make(calls.clock(), options.conn)
        rows = self._starts(arguments, options.due(now))
        with self._executor.connection(options.conn) as connection:
            return bulk.start_tasks(connection, rows, tenant=options.tenant)

    async def astart_many(self, arguments: Iterable[Mapping[str, Any]]) -> int:
        """Start many, as `start_many` does."""
        options = self._options
        now = [] if options.delay is None else await self._executor.amake(calls.clock(), options.conn)
        rows = self._starts(arguments, options.due(now))
        async with self._executor.aconnection(options.conn) as connection:
            return await astart_tasks(connection, rows, tenant=options.tenant)

    def _starts(self, arguments: Iterable[Mapping[str, Any]], due_at: datetime | None) -> Iterable[bulk.Start]:
        """Raise for options that a bulk start cannot have, and return the rows, which are made as they are sent."""
        options, batching, limited = self._options, self.handler.batching, self.handler.limited
        if not isinstance(arguments, Iterable):
            raise InputRefused(
                f"start_many needs a list, got {type(arguments).__name__}", where="arguments", next="pass [{…}, {…}]"
            )
        for option in ("key", "unique_key", "key_for"):
            if getattr(options, option) is not None:
                raise BadInput(
                    f"start_many does not support {option}",
                    where=option,
                    next="remove it, or start the tasks one by one",
                )
        shared = bulk.Start(self.name, "", options.queue or self.handler.queue, options.priority, due_at)
        is_limited_alike = options.limits is not None or (limited.limits is None and limited.weight is None)
        if is_limited_alike and (batching is None or batching.by is None):
            limits, weight = self._limits("")
            key = None if batching is None else batching.key_of("")
            shared = shared._replace(limits=limits, weight=weight, batch_key=key)
            return bulk.AlikeStarts(shared, self._inputs(arguments))
        return (self._row(shared, text) for text in self._inputs(arguments))

    def _inputs(self, arguments: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        """Yield the JSON of each task's arguments."""
        write, named = self.handler.signature.write_text, self._named
        for place, each in enumerate(arguments):
            yield write(named(place, each))

    def _row(self, shared: bulk.Start, text: str) -> bulk.Start:
        """Return the row of a task whose limits or key depend on its input."""
        batching = self.handler.batching
        limits, weight = self._limits(text)
        key = None if batching is None else batching.key_of(text)
        return shared._replace(input=text, limits=limits, weight=weight, batch_key=key)

    def _named(self, place: int, arguments: Any) -> Any:
        """Check the arguments of one task, or the item of a batch."""
        if self.handler.batching is not None:
            return self.handler.signature.check((arguments,), {})
        if type(arguments) is not dict and not isinstance(arguments, Mapping):  # the second takes ten times as long
            names = ", ".join(f'"{name}": …' for name in self.handler.signature.names())
            raise InputRefused(
                f"start_many needs one mapping per task, got {type(arguments).__name__} at {place}",
                where=f"arguments[{place}]",
                next=f"use {{{names}}}",
            )
        return self.handler.signature.check((), arguments)

    def _traced(self, written: Json) -> Json:
        """Pass the trace to the handler, except with a key, whose input must be the same each time."""
        carrier = None if self._options.key else tracing.carrier()
        if carrier is None:
            return written
        return Json(f'{written[:-1]}{"" if written == "{}" else ","}"{TRACE}":{json.dumps(carrier)}}}')

    def _handle(self, step_id: int) -> TaskHandle[R]:
        return TaskHandle(step_id, self.handler.signature.read_result, self._executor)

    def _start(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call[int]:
        signature, options = self.handler.signature, self._options
        written = self._traced(signature.write(signature.check(args, kwargs)))
        limits, weight = self._limits(written)
        return calls.start_task(
            self.name,
            written,
            queue=options.queue or self.handler.queue,
            key=options.key,
            unique_key=options.unique_key,
            due_at=options.due_at,
            delay=options.delay,
            priority=options.priority,
            tenant=options.tenant,
            limits=limits,
            weight=weight,
            key_for=options.key_for,
            batch_key=None if self.handler.batching is None else self.handler.batching.key_of(written),
        )

    def _limits(self, written: str) -> tuple[list[str] | None, float | None]:
        """Return the limits and the weight of a start: its own options, else the task's."""
        names, weight = self.handler.limited.of(written) if self._options.limits is None else (None, None)
        limits = names if self._options.limits is None else list(self._options.limits)
        return limits, weight if self._options.weight is None else self._options.weight


class BatchTask(Task[[T], R, Function_co], Generic[T, R, Function_co]):
    """A task whose function serves many starts with one call. A start takes one item of its list."""

    def start_many(self, items: Iterable[T]) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Start one task per item, by COPY, all or none, and return their number."""
        return super().start_many(items)  # type: ignore[arg-type]

    async def astart_many(self, items: Iterable[T]) -> int:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Start many, as `start_many` does."""
        return await super().astart_many(items)  # type: ignore[arg-type]
