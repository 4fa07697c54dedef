"""Calls functions in background threads, such as subscribers to events: bounded and best effort."""

from __future__ import annotations

import asyncio
import atexit
import inspect
import queue
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from time import monotonic
from types import UnionType
from typing import Any, Generic, Protocol, TypeVar
from uuid import UUID

from holdfast import log, masking

T = TypeVar("T")
Count = Callable[[bool], None]  # called after each delivery with whether it succeeded
MOST_WAITING = 10_000
Fields = Mapping[str, type | UnionType]
LAST_WORDS = 1.0  # seconds that an ending process waits for open deliveries


class BackgroundNotifier(Generic[T]):
    """Calls a function, plain or async, with each value passed to `tell`. If it raises or hangs, it delays nobody else.

    The thread starts with the first call. `sort` names the function in the log.
    """

    def __init__(self, function: Callable[[T], Any], sort: str) -> None:
        self.function = function
        self._sort = sort
        self._waiting: queue.Queue[tuple[T, Count]] = queue.Queue(MOST_WAITING)
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._log = log.get(f"{sort}s")

    def tell(self, thing: T, count: Count) -> None:
        """Queue a value for the function and return at once."""
        if self._thread is None:
            self._start()
        try:
            self._waiting.put_nowait((thing, count))
        except queue.Full:
            count(False)
            self._log.warning(f"{self._sort}.dropped", why=f"{MOST_WAITING} are waiting", **_about(thing))

    def flush(self, seconds: float) -> None:
        """Wait for open deliveries up to a limit, because the function may hang."""
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
                except Exception as error:  # noqa: BLE001 - a background delivery must not change anything
                    count(False)
                    self._log.warning(f"{self._sort}.failed", error=f"{type(error).__name__}: {error}", **_about(thing))
                else:
                    count(True)
                self._waiting.task_done()


class Flushed(Protocol):
    """Something with open deliveries."""

    def flush(self, seconds: float) -> None: ...


def flush_all(notifiers: Iterable[Flushed], seconds: float) -> None:
    """Wait for several, within one common limit."""
    until = monotonic() + seconds
    for each in notifiers:
        each.flush(max(0.0, until - monotonic()))


def _flush_last(itself: weakref.ref[BackgroundNotifier[Any]]) -> None:
    if (notifier := itself()) is not None:
        notifier.flush(LAST_WORDS)


def uncounted(_ok: bool, /) -> None:
    """Count nothing: outside a worker there are no meters."""


def failures_only(count: Count) -> Count:
    """Count only failures on the way to subscribers, which count the deliveries."""
    return lambda ok: None if ok else count(False)


def _about(thing: Any) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in ("name", "step_id", "run_id") if hasattr(thing, name)}


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run, of one of its steps or of a task.

    A task has no run; its number is `step_id`. `step_id` is None if the event is about a whole run. The id of an ops
    run is text, `run-…`.
    """

    name: str
    at: datetime
    run_id: UUID | str | None
    step_id: int | None
    payload: Mapping[str, Any]

    @property
    def id(self) -> UUID | str | int | None:
        """The id of the run or task, for `hf.handle(event.id)`."""
        return self.step_id if self.run_id is None else self.run_id


@dataclass(frozen=True, slots=True)
class Entry:
    """An event in a face's catalogue: when it is published, and the fields of its payload."""

    published_when: str
    fields: Fields
    was: str | None = None  # its name before events carried their face; subscribing to it still works, with a warning


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
        """Stop calling a function; return whether it was subscribed."""
        before = self._by_name
        kept = {name: [each for each in notifiers if each.function != function] for name, notifiers in before.items()}
        self._by_name = {name: notifiers for name, notifiers in kept.items() if notifiers}
        return kept != before

    def publish(self, event: Event, count: Count = uncounted) -> None:
        """Send an event to its subscribers, with secrets masked; return at once."""
        if (payload := masking.known.value(event.payload)) is not event.payload:
            event = replace(event, payload=payload)
        for each in self._by_name.get(event.name, ()):
            each.tell(event, count)

    def publish_now(self, name: str, run_id: UUID | str | None, step_id: int | None = None, /, **payload: Any) -> None:
        """Publish an event that has just happened in this process."""
        self.publish(Event(name, datetime.now(UTC), run_id, step_id, payload))

    def call_later(self, publish: Callable[[], None]) -> None:
        """Call a function in a thread, because it reads what it publishes; do nothing without subscribers."""
        if self.are_there:
            self._later.tell(publish, uncounted)

    def flush(self, seconds: float) -> None:
        """Wait until all events are delivered, up to the timeout."""
        flush_all([self._later, *self._notifiers()], seconds)

    def _notifiers(self) -> list[BackgroundNotifier[Event]]:
        return list({id(each): each for notifiers in self._by_name.values() for each in notifiers}.values())
