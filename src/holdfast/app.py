"""Holdfast, the app: registers handlers, loads the APIs of faces, and lends connections."""

from __future__ import annotations

import difflib
import fnmatch
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, overload
from uuid import UUID

from psycopg import AsyncConnection, Connection

from holdfast import config, embedded, faces
from holdfast.connections.pool import PoolExecutor
from holdfast.errors import BadDefinition, BadInput
from holdfast.handlers.context import Ctx
from holdfast.handlers.registry import Registry, RetryPolicy
from holdfast.kernel import migrate
from holdfast.kernel.call import Call
from holdfast.models import Span
from holdfast.notify import Subscriber, Subscribers
from holdfast.worker.hooks import Hook, Hooks

if TYPE_CHECKING:
    from holdfast.flow.api import Backoff, Coordinator, Flow, Flows, Strategy
    from holdfast.work.api import Task, Tasks

P = ParamSpec("P")
R = TypeVar("R")
Observer = TypeVar("Observer", bound=Subscriber)


class Holdfast:
    """An app: its tasks, and the database they live in (HOLDFAST_DSN, or the embedded PostgreSQL).

    Nothing is connected, and no server started, before the first use.
    """

    work: Tasks  # the shipped faces, each loaded from FACES when it is first used
    flow: Flows

    def __init__(self, dsn: str | None = None, *, backoff: Backoff | None = None) -> None:
        self.registry = Registry()
        self.hooks = Hooks()
        self.subscribers = Subscribers()
        self._dsn = None if dsn is None else config.to_writer(dsn)
        self._faces: dict[str, Any] = {}
        self._lock = threading.RLock()
        self.executor = PoolExecutor(lambda: self.dsn)
        if backoff is not None:
            self.flow.backoff = backoff

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

        A plain function runs in a thread, with `cpu=True` in a process, an async one on a loop. The task's name is the
        function's by default. Without a policy an exception is final, but a dead worker is retried up to three times.
        """
        for function in functions:
            return self.work.task(function)
        return lambda function: self.work.task(function, **options)

    def on_ending(self, hook: Hook) -> Hook:
        """Call `hook` with the outcome of every step that a worker of this app settles; best effort."""
        self.hooks.add(hook)
        return hook

    def on(self, name: str) -> Callable[[Observer], Observer]:
        """Call a function with each event of a name or pattern: `@hf.on("step.completed")`, `@hf.on("task.*")`.

        It takes an Event, may be async, and runs in its own thread: best effort, and no run waits for it.
        """

        def add(function: Observer) -> Observer:
            self.subscribe(name, function)
            return function

        return add

    def subscribe(self, name: str, function: Subscriber) -> Callable[[], None]:
        """Call a function with events, as `on` does; return a function that ends it."""
        published = faces.events()
        matches = {face: fnmatch.filter(names, name) for face, names in published.items()}
        if not any(matches.values()):
            known = [each for names in published.values() for each in names]
            groups = dict.fromkeys(f"{each.partition('.')[0]}.*" for each in known)
            near = difflib.get_close_matches(name, known, n=3, cutoff=0.5) or groups
            raise BadDefinition(f"there is no event {name}", where=name, next=f"near it are: {', '.join(near)}")
        end = self.subscribers.add([each for names in matches.values() for each in names], function)
        for face in (face for face, names in matches.items() if names):
            self.hooks.watch(self.face(face).watcher)
        return end

    def flow_from(
        self,
        source: str | Path | Mapping[str, Any],
        *,
        handlers: Mapping[str, Callable[..., Any]] | None = None,
        environment: str | None = None,
    ) -> Flow:
        """Define the flow of a YAML document: its path, its text, or the values read from it.

        Its functions are imported (`module:function`) unless `handlers` has them by name. `environment` chooses among
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
        """Record the decision about each task after every settle of this app's workers; return who does it.

        A strategy is called with each decision that a task goes on. It need not do anything: the rows are due already.
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
                    raise BadInput(f"the face {name} has no Python API", where=name)
                self._faces[name] = make(self)
            return self._faces[name]

    def handle(self, id: int | UUID | str) -> Any:  # noqa: A002 - the word is the same in SQL
        """Return the handle of what was started elsewhere, by its id; the form of the id tells its face."""
        for face in faces.all_faces():
            if face.id_form is not None and re.fullmatch(face.id_form, str(id)):
                return face.load("handle")(self, str(id))
        raise BadInput(f"no face has ids such as {id!r}", where=str(id), next="a task's is a number, a run's a UUID")

    @property
    def dsn(self) -> str:
        """The address of the database; starts the embedded one and migrates it."""
        with self._lock:
            if self._dsn is None:
                settings = config.load()
                self._dsn = embedded.address(settings)
                if settings.dsn is None:
                    migrate.run(self._dsn)
            return self._dsn

    def use(self, dsn: str | None) -> None:
        """Use another database from now on, or that of the settings; close the connections to the last one.

        `aclose` closes those of an event loop: an async caller awaits it first.
        """
        self.close()
        with self._lock:
            self._dsn = None if dsn is None else config.to_writer(dsn)

    def make(self, call: Call[Any], conn: Connection[Any] | None = None) -> list[Any]:
        """Make a call, on a connection of the app or in your transaction."""
        return self.executor.make(call, conn)

    async def amake(self, call: Call[Any], conn: AsyncConnection[Any] | None = None) -> list[Any]:
        """Make a call, as `make` does."""
        return await self.executor.amake(call, conn)

    @contextmanager
    def connection(self, conn: Connection[Any] | None = None) -> Iterator[Connection[Any]]:
        """Lend a connection: yours if you give one, else one of the app's pool."""
        with self.executor.connection(conn) as connection:
            yield connection

    def close(self) -> None:
        """Close the connections; the app may be used again."""
        self.executor.close()

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        await self.executor.aclose()
