"""Calls functions in threads of their own, among them those that subscribed to events: bounded and best effort."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import queue
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from holdfast import log

T = TypeVar("T")
Count = Callable[[bool], None]  # told of each delivery whether it went well
MOST_WAITING = 10_000
Fields = Mapping[str, type | UnionType]
LAST_WORDS = 1.0  # seconds that a process which ends leaves to what was not told yet


class BackgroundNotifier(Generic[T]):
    """Calls a function, plain or async, with what is passed to `tell`. One that raises or hangs harms nobody else.

    The thread starts with the first call. `sort` is what the function is called in the log.
    """

    def __init__(self, function: Callable[[T], Any], sort: str) -> None:
        self.function = function
        self._sort = sort
        self._waiting: queue.Queue[tuple[T, Count]] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._log = log.get(f"{sort}s")

    def tell(self, thing: T, count: Count) -> None:
        """Pass something on; returns at once."""
        if self._thread is None:
            self._start()
        try:
            self._waiting.put_nowait((thing, count))
        except queue.Full:
            count(False)
            self._log.warning(f"{self._sort}.dropped", why=f"{MOST_WAITING} are waiting", **_about(thing))

    def flush(self, seconds: float) -> None:
        """Wait for what is under way, but not for ever: the function may hang."""
        if self._thread is None:
            return
        done = threading.Thread(target=self._waiting.join, daemon=True)
        done.start()
        done.join(seconds)

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, name=f"holdfast-{self._sort}", daemon=True)
            self._thread.start()
        atexit.register(_flush_last, weakref.ref(self))

    def _work(self) -> None:
        with asyncio.Runner() as runner:
            while True:
                thing, count = self._waiting.get()
                try:
                    answer = self.function(thing)
                    if inspect.iscoroutine(answer):
                        runner.run(answer)
                except Exception as error:  # noqa: BLE001 - what is told aside changes nothing
                    count(False)
                    self._log.warning(f"{self._sort}.failed", error=f"{type(error).__name__}: {error}", **_about(thing))
                else:
                    count(True)
                self._waiting.task_done()


class Flushed(Protocol):
    """Something with deliveries under way."""

    def flush(self, seconds: float) -> None: ...


def flush_all(notifiers: Iterable[Flushed], seconds: float) -> None:
    """Wait for several, for that long in all."""
    until = monotonic() + seconds
    for each in notifiers:
        each.flush(max(0.0, until - monotonic()))


def _flush_last(itself: weakref.ref[BackgroundNotifier[Any]]) -> None:
    if (notifier := itself()) is not None:
        notifier.flush(LAST_WORDS)


def uncounted(_ok: bool, /) -> None:
    """Count nothing: outside a worker there are no meters."""


def _about(thing: Any) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in ("name", "step_id", "run_id") if hasattr(thing, name)}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run, to one of its steps or to a task.

    A task has no run: its number is `step_id`. `step_id` is None where the event is about a run as a whole.
    """

    name: str
    at: datetime
    run_id: UUID | None
    step_id: int | None
    payload: Mapping[str, Any]

    @property
    def id(self) -> UUID | int | None:
        """The id of the run, or the number of the task: `hf.handle(event.id)`."""
        return self.step_id if self.run_id is None else self.run_id


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in a face's catalogue: when it is published, and the fields of its payload."""

    published_when: str
    fields: Fields
    was: str | None = None  # its name before events carried their face; it still subscribes, with a warning


Subscriber = Callable[[Event], Any]


class Subscribers:
    """The subscribers of an app, by the names of events. Each has its own thread, so that none delays another."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[BackgroundNotifier[Event]]] = {}
        self._later: BackgroundNotifier[Callable[[], None]] = BackgroundNotifier(lambda publish: publish(), "telling")

    @property
    def are_there(self) -> bool:
        """Whether there is a subscriber."""
        return bool(self._by_name)

    def want(self, names: Collection[str]) -> bool:
        """Whether one of these events has a subscriber."""
        return not self._by_name.keys().isdisjoint(names)

    def add(self, names: Iterable[str], function: Subscriber) -> None:
        """Call a function with each event of these names."""
        notifier = BackgroundNotifier(function, "subscriber")
        for each in names:
            self._by_name[each] = [*self._by_name.get(each, []), notifier]

    def remove(self, function: Subscriber) -> bool:
        """Call a function no more; return whether it was called before."""
        before = self._by_name
        kept = {name: [each for each in notifiers if each.function != function] for name, notifiers in before.items()}
        self._by_name = {name: notifiers for name, notifiers in kept.items() if notifiers}
        return kept != before

    def publish(self, event: Event, count: Count = uncounted) -> None:
        """Send an event to its subscribers; return at once."""
        for each in self._by_name.get(event.name, ()):
            each.tell(event, count)

    def publish_now(self, name: str, run_id: UUID | None, step_id: int | None = None, /, **payload: Any) -> None:
        """Publish an event that has just happened in this process."""
        self.publish(Event(name, datetime.now(UTC), run_id, step_id, payload))

    def call_later(self, publish: Callable[[], None]) -> None:
        """Call a function in a thread, because it has to look up what it publishes; do nothing without subscribers."""
        if self.are_there:
            self._later.tell(publish, uncounted)

    def flush(self, seconds: float) -> None:
        """Wait until all is delivered, at most that long."""
        flush_all([self._later, *self._notifiers()], seconds)

    def _notifiers(self) -> list[BackgroundNotifier[Event]]:
        return list({id(each): each for notifiers in self._by_name.values() for each in notifiers}.values())
