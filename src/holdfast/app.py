"""Holdfast, the app: registers handlers, loads the APIs of faces, and lends connections."""

from __future__ import annotations

import difflib
import fnmatch
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload
from uuid import UUID

from holdfast import faces, handles
from holdfast.durations import Duration
from holdfast.engine import Engine
from holdfast.errors import BadDefinition, BadInput
from holdfast.handlers.context import Ctx
from holdfast.handlers.limits import limit_definition
from holdfast.handlers.registry import RetryPolicy
from holdfast.handlers.schedules import schedule_definition
from holdfast.handlers.untyped import Untyped
from holdfast.kernel.handle import Handle, afollow, follow
from holdfast.kernel.schedule_calls import Missed, Overlap, Schedulable
from holdfast.notify import Subscriber
from holdfast.spelling import checks_options

if TYPE_CHECKING:
    from holdfast.flow.api import Backoff, Coordinator, Flow, Flows, Strategy
    from holdfast.ingest.api import Ingest
    from holdfast.ops.api import Ops
    from holdfast.rules.api import Rules
    from holdfast.work.api import Async, BatchDecorator, Task, TaskDecorator, Tasks

P = ParamSpec("P")
R = TypeVar("R")
Observer = TypeVar("Observer", bound=Subscriber)


class Holdfast:
    """An app: its tasks and flows, and their database (HOLDFAST_DSN, or the embedded PostgreSQL).

    It opens no connection and starts no server before the first use.
    """

    work: Tasks  # the shipped faces, each loaded from FACES when it is first used
    flow: Flows
    rules: Rules
    ops: Ops
    ingest: Ingest

    def __init__(self, dsn: str | None = None, *, backoff: Backoff | None = None) -> None:
        self._engine = Engine(dsn)
        self._faces: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._schedules: set[tuple[str, str]] = set()
        if backoff is not None:
            self.flow.backoff = backoff

    @overload  # in the order of TaskDecorator, which explains it
    def task(self, function: Callable[..., Untyped], /) -> Task[..., Any]: ...
    @overload
    def task(self, function: Async[Concatenate[Untyped, P], R], /) -> Task[..., R, Async[..., R]]: ...
    @overload
    def task(self, function: Callable[Concatenate[Untyped, P], R], /) -> Task[..., R, Callable[..., R]]: ...
    @overload
    def task(self, function: Async[Concatenate[Ctx, P], R], /) -> Task[P, R, Async[Concatenate[Ctx, P], R]]: ...
    @overload
    def task(self, function: Async[P, R], /) -> Task[P, R, Async[P, R]]: ...
    @overload
    def task(self, function: Callable[Concatenate[Ctx, P], R], /) -> Task[P, R, Callable[Concatenate[Ctx, P], R]]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R, Callable[P, R]]: ...
    @overload
    def task(
        self, *, name: str | None = None, queue: str = "default", retry: int | RetryPolicy | None = None,
        timeout: Duration | None = None, lease: Duration | None = None, cpu: bool = False,
        limits: Sequence[str] | None = None, weight: float | str | None = None, call_weight: float | None = None,
    ) -> TaskDecorator: ...  # fmt: skip
    @overload
    def task(
        self, *, batch: int, by: str | None = None, batch_wait: Duration | None = None, name: str | None = None,
        queue: str = "default", retry: int | RetryPolicy | None = None, timeout: Duration | None = None,
        lease: Duration | None = None, cpu: bool = False, limits: Sequence[str] | None = None,
        weight: float | str | None = None, call_weight: float | None = None,
    ) -> BatchDecorator: ...  # fmt: skip
    def task(self, *functions: Callable[..., Any], **options: Any) -> Any:
        """Register a function as a task: `@hf.task`, or `@hf.task(queue="mail", retry=5)`.

        A plain function runs in a thread, with `cpu=True` in a process, and an async one on a loop. The task's name is
        the function's by default. `retry` is the total number of executions, or a RetryPolicy. Without it, or with
        False, an exception is final; a task whose worker died is still executed up to three times. `limits` names up
        to three limits (`hf.limit`), and `weight` is what a task takes from their buckets. Both may use fields of the
        input: `limits=["shop:{shop}"]`. `call_weight` is what each call of the function takes in addition. With
        `batch` one call serves up to so many tasks, with the same value in the field `by` of their items: it takes a
        `Batch` and a list, and returns a list. A call that is not full waits `batch_wait` for more.
        """
        for function in functions:
            return self.work.task(function)
        return lambda function: self.work.task(function, **options)

    @checks_options(BadDefinition)
    def limit(
        self,
        name: str,
        *,
        concurrency: int | None = None,
        rate: float | None = None,
        per: Duration | None = None,
        burst: float | None = None,
        breaker_after: int | None = None,
        breaker_for: Duration | None = None,
        breaker_counts: Sequence[str] | None = None,
        tenant: str | None = None,
    ) -> None:
        """Limit steps that name it, shared by all workers: `hf.limit("shop:*", concurrency=2, rate=40, per=1)`.

        A worker defines it when it connects; what an operator sets later stays until the rule here changes. `shop:*`
        is a family, of which each value is counted by itself; `queue:…`, `kind:…` and `tenant:…` apply without being
        named. `burst` is what a bucket holds, by default what comes in one `per`. The breaker opens for `breaker_for`
        after so many failures in a row of the error types `breaker_counts`, by default RateLimited and Unavailable.
        """
        definition = limit_definition(
            name,
            concurrency=concurrency,
            rate=rate,
            per=per,
            burst=burst,
            breaker_after=breaker_after,
            breaker_for=breaker_for,
            breaker_counts=breaker_counts,
            tenant=tenant,
        )
        self._engine.registry.add_definition(lambda: definition)

    @checks_options(BadDefinition)
    def schedule(
        self,
        name: str,
        target: Schedulable,
        input: Any = None,  # noqa: A002 - the word is the same in SQL
        *,
        cron: str | None = None,
        every: Duration | None = None,
        at: datetime | None = None,
        timezone: str = "UTC",
        starts_at: datetime | None = None,
        ends_at: datetime | None = None,
        missed: Missed = "one",
        missed_window: Duration | None = None,
        overlap: Overlap = "allow",
        spread: Duration = 0,
        tenant: str | None = None,
    ) -> None:
        """Start a task or a flow by the clock: `hf.schedule("report", report, {"region": "eu"}, cron="0 2 * * *")`.

        A worker defines it when it connects, and any worker fires its ticks, each once. `every` repeats at an
        interval, and `at` fires once. `missed` is for ticks that no worker fired in time: "skip", "one" (the newest)
        or "all", up to 100 no older than `missed_window`. `overlap` is for a tick while the work of the previous one
        is not over: "allow", "skip" or "cancel" (that work). `spread` shifts all ticks by a fixed time below it. Set
        the options of the start on the target: `report.options(queue="night")`.
        """
        definition = schedule_definition(
            name, target, input, cron=cron, every=every, at=at, timezone=timezone, starts_at=starts_at, ends_at=ends_at,
            missed=missed, missed_window=missed_window, overlap=overlap, spread=spread, tenant=tenant,
        )  # fmt: skip
        key = (definition.arguments["tenant"], name)
        if key in self._schedules:
            raise BadDefinition(f"schedule {name} is defined twice", where="name", next="give one of them another name")
        self._schedules.add(key)
        self._engine.registry.add_definition(lambda: definition)

    def on(self, name: str) -> Callable[[Observer], Observer]:
        """Call a function with each event of a name or pattern: `@hf.on("flow.step.completed")`, `@hf.on("work.*")`.

        It takes an Event, may be async, and runs in its own thread: best effort, and no run waits for it.
        """
        names = self._event_names(name)

        def add(function: Observer) -> Observer:
            self._engine.subscribers.add([each for of_face in names.values() for each in of_face], function)
            for face in names:
                self._engine.hooks.watch(self.face(face).watcher)
            return function

        return add

    def off(self, function: Subscriber) -> None:
        """Stop calling a function that was passed to `on`."""
        if not self._engine.subscribers.remove(function):
            raise BadInput(
                f"{function!r} does not listen to any event", next="pass the function that was passed to `on`"
            )

    def _event_names(self, name: str) -> dict[str, list[str]]:
        """Find the events of a name or pattern, by face; warn about an old name."""
        catalogue = faces.events()
        names = {face: fnmatch.filter(entries, name) for face, entries in catalogue.items()}
        if not any(names.values()):
            names = {
                face: [each for each, entry in entries.items() if entry.was and fnmatch.fnmatchcase(entry.was, name)]
                for face, entries in catalogue.items()
            }
            renamed = [each for of_face in names.values() for each in of_face]
            if not renamed:
                raise _unknown_event(name, [each for entries in catalogue.values() for each in entries])
            warnings.warn(f"{name}: events carry their face now, listen to {', '.join(renamed)}", DeprecationWarning, 3)
        return {face: of_face for face, of_face in names.items() if of_face}

    def flow_from(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        environment: str | None = None,
    ) -> Flow:
        """Define the flow of a YAML document: its path, its text, or the values read from it.

        Its functions are imported (`module:function`) unless `handlers` has them by name. `environment` chooses one of
        the overrides that it lists.
        """
        return self.flow.load(source, handlers=handlers, environment=environment)

    @property
    def flows(self) -> Flows:
        """All flows of the app: iterate over them, or find one by its name with `hf.flows.find`."""
        return self.flow

    @property
    def backoff(self) -> Backoff:
        """The backoff of flows without their own."""
        return self.flow.backoff

    def coordinator(self, strategy: Strategy | None = None) -> Coordinator:
        """Record the decision about each run after every settle of this app's workers; return the coordinator.

        A strategy is called with each decision that a run continues. It need not do anything, because the rows already
        have their due times.
        """
        return self.flow.coordinator(strategy)

    if not TYPE_CHECKING:  # type checkers read the annotations above

        def __getattr__(self, name: str) -> Any:
            """Load the API of a shipped face when it is first used."""
            if name in faces.FACES and faces.face(name).api is not None:
                return self.face(name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def face(self, name: str) -> Any:
        """Return the Python API of a face by its name, the same object each time."""
        with self._lock:
            if name not in self._faces:
                make = faces.face(name).load("api")
                if make is None:
                    raise BadInput(f"the face {name} has no Python API", where=name, next="use its SQL functions")
                self._faces[name] = make(self._engine)
            return self._faces[name]

    def handle(self, id: int | UUID | str) -> Handle[Any]:  # noqa: A002 - the word is the same in SQL
        """Return the handle of a task or run that was started elsewhere, by its id."""
        return follow(self._engine, handles.find(self._engine, id))

    async def ahandle(self, id: int | UUID | str) -> Handle[Any]:  # noqa: A002
        """Return the handle of a task or run, as `handle` does."""
        return await afollow(self._engine, handles.find(self._engine, id))

    @property
    def dsn(self) -> str:
        """Return the database's DSN; start and migrate the embedded one if there is no other."""
        return self._engine.dsn

    def use(self, dsn: str | None) -> None:
        """Use another database from now on, or the configured one; close the connections to the previous one.

        An async caller first awaits `aclose`, which closes the connections of its event loop.
        """
        self._engine.use(dsn)

    def close(self) -> None:
        """Close the connections; the app may be used again."""
        self._engine.executor.close()

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._engine.executor.aclose()


def _unknown_event(name: str, known: list[str]) -> BadDefinition:
    groups = dict.fromkeys(f"{each.rpartition('.')[0]}.*" for each in known)
    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or groups
    return BadDefinition(f"there is no event {name}", where=name, next=f"use one of: {', '.join(near)}")
