"""Holdfast: registers handlers, starts what they serve, and lends connections; the one place that wires."""

from __future__ import annotations

import inspect
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection

from holdfast import config, embedded, faces
from holdfast.connections.pool import PoolExecutor
from holdfast.errors import BadInput
from holdfast.flow.backoff import Backoff
from holdfast.flow.coordinate import Coordinator
from holdfast.flow.define import Flow
from holdfast.flow.finalize import Strategy
from holdfast.flow.flows import Flows
from holdfast.flow.options import NAMESPACE, VERSION, Title
from holdfast.flow.subscribers import Subscriber, Subscribers
from holdfast.flow.yaml.extra import needs_extra
from holdfast.handlers.context import Ctx
from holdfast.handlers.registry import Handler, Registry, RetryPolicy
from holdfast.handlers.signature import Signature
from holdfast.kernel import migrate
from holdfast.kernel.call import Call
from holdfast.models import Span, span
from holdfast.work.define import Task
from holdfast.work.handle import Handle
from holdfast.worker.hooks import Hook, Hooks

P = ParamSpec("P")
R = TypeVar("R")
Observer = TypeVar("Observer", bound=Subscriber)


class Holdfast:
    """An app: its tasks, and the database they live in (HOLDFAST_DSN, or the embedded PostgreSQL).

    Nothing is connected, and no server started, before the first use.
    """

    def __init__(self, dsn: str | None = None, *, backoff: Backoff | None = None) -> None:
        self.backoff = backoff or Backoff()  # of flows that say none of their own
        self.registry = Registry()
        self.flows = Flows()
        self.hooks = Hooks()
        self.subscribers = Subscribers()
        self._coordinator = Coordinator(self.subscribers, self.flows.backoff_of, self)
        self._dsn = None if dsn is None else config.to_writer(dsn)
        self._faces: dict[str, Any] = {}
        self._lock = threading.RLock()
        self._executor = PoolExecutor(lambda: self.dsn)

    @overload
    def task(self, function: Callable[Concatenate[Ctx, P], R], /) -> Task[P, R]: ...
    @overload
    def task(self, function: Callable[P, R], /) -> Task[P, R]: ...
    @overload
    def task(
        self,
        *,
        name: str | None = None,
        queue: str = "default",
        retry: RetryPolicy | None = None,
        timeout: Span | None = None,
        lease: Span | None = None,
        cpu: bool = False,
    ) -> Callable[[Callable[P, R]], Task[P, R]]: ...
    def task(self, *functions: Callable[..., Any], **options: Any) -> Any:
        """Register a function as a task: `@hf.task`, or `@hf.task(queue="mail", retry=RetryPolicy(limit=5))`.

        A plain function runs in a thread, with `cpu=True` in a process, an async one on a loop. Its name is the
        function's unless given. Without a policy an exception is final; a dead worker is forgiven up to three tries.
        """
        for function in functions:
            return self._register(function)
        return lambda given: self._register(given, **options)

    def _register(
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
        self.registry.add(handler)
        return Task(handler, self._executor)

    def flow(
        self,
        name: str,
        *,
        namespace: str = NAMESPACE,
        version: str = VERSION,
        context: Any = None,
        backoff: Backoff | None = None,
        description: str | None = None,
    ) -> Flow:
        """Define a flow, whose steps are added with `@flow.step`; `context` is the type of what its start takes.

        Without it the context is what the steps take. A new version stands beside those that the app still defines:
        each run goes on with the handlers of its own, and with the newest where its own is gone. `backoff` says how
        long its failed steps wait.
        """
        flow = Flow(Title(name, namespace, version, description), self, context, backoff or self.backoff)
        self.flows.add(flow)
        self.registry.add_definition(flow.definition)
        return flow

    def flow_from(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        environment: str | None = None,
    ) -> Flow:
        """Define a flow as a YAML document has it: the path of one, its text, or what was read from it.

        Its functions are imported (`module:function`) unless `handlers` has them by name. `environment` chooses among
        the overrides that it lists.
        """
        with needs_extra():
            from holdfast.flow.yaml.load import Loading
        return Loading(self, handlers or {}, environment).load(source)

    def on_ending(self, hook: Hook) -> Hook:
        """Have a function told what became of each step that a worker of this app settles; best effort."""
        self.hooks.add(hook)
        return hook

    def on(self, name: str) -> Callable[[Observer], Observer]:
        """Have a function told of an event of flows, or of several: `@hf.on("step.completed")`, `@hf.on("task.*")`.

        It takes an Event, may be async, and runs in a thread of its own: best effort, and never in a run's way.
        """

        def add(function: Observer) -> Observer:
            self.subscribe(name, function)
            return function

        return add

    def subscribe(self, name: str, function: Subscriber) -> Callable[[], None]:
        """Have a function told of events, as `on` does; gives the way to end it."""
        ended = self.subscribers.add(name, function)
        self.hooks.watch(self._coordinator)
        return ended

    def coordinator(self, strategy: Strategy | None = None) -> Coordinator:
        """Have the decisions about tasks taken down after each settle of this app's workers, and give who does it.

        A strategy is called with each decision that a task goes on. It need not do anything: the rows are due already.
        """
        if strategy is not None:
            self._coordinator.strategy = strategy
        self._coordinator.is_deciding = True
        self.hooks.watch(self._coordinator)
        return self._coordinator

    def started(self, step_id: int) -> Handle[Any]:
        """Take hold of a task that was started elsewhere, by its number."""
        return Handle(step_id, lambda result, _: result, self._executor)

    def face(self, name: str) -> Any:
        """Give the Python API of a face by its name; the same one each time."""
        with self._lock:
            if name not in self._faces:
                make = faces.face(name).load("api")
                if make is None:
                    raise BadInput(f"the face {name} has no Python API", where=name)
                self._faces[name] = make(self)
            return self._faces[name]

    def handle(self, id: int | UUID | str) -> Any:  # noqa: A002 - the word is the same in SQL
        """Take hold of what was started elsewhere, by its id; the form of the id says which face it is of."""
        for face in faces.all_faces():
            if face.id_form is not None and re.fullmatch(face.id_form, str(id)):
                return face.load("handle")(self, str(id))
        raise BadInput(f"no face has ids such as {id!r}", where=str(id), next="a task's is a number, a run's a UUID")

    @property
    def dsn(self) -> str:
        """The address of the database; the embedded one is started, and its schema brought up to date."""
        with self._lock:
            if self._dsn is None:
                settings = config.load()
                self._dsn = embedded.address(settings)
                if settings.dsn is None:
                    migrate.run(self._dsn)
            return self._dsn

    def use(self, dsn: str | None) -> None:
        """Work on another database from now on, or on that of the settings; connections to the last one are closed.

        Those of an event loop are closed by `aclose`, which an async caller awaits before.
        """
        self.close()
        with self._lock:
            self._dsn = None if dsn is None else config.to_writer(dsn)

    def make(self, call: Call[Any], conn: Connection[Any] | None = None) -> list[Any]:
        """Make a call, on a connection of ours or in the transaction of yours."""
        return self._executor.make(call, conn)

    async def amake(self, call: Call[Any], conn: AsyncConnection[Any] | None = None) -> list[Any]:
        """Make a call, as `make` does."""
        return await self._executor.amake(call, conn)

    @contextmanager
    def connection(self, conn: Connection[Any] | None = None) -> Iterator[Connection[Any]]:
        """Lend a connection: yours if you give one, else one of the app's pool."""
        with self._executor.connection(conn) as connection:
            yield connection

    def close(self) -> None:
        """Close the connections; the app may be used again."""
        self._executor.close()

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self._executor.aclose()
