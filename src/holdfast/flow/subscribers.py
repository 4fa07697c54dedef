"""Who is told of which events. Each subscriber has a thread of its own: one that raises or hangs is alone with it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, datetime
from fnmatch import filter as matching
from typing import Any
from uuid import UUID

from holdfast.errors import BadTask
from holdfast.flow.events import CATALOGUE, Event
from holdfast.notify import BackgroundNotifier, Count, flush_all, uncounted

Subscriber = Callable[[Event], Any]


class Subscribers:
    """The subscribers of an app, by the names of events."""

    def __init__(self) -> None:
        self._by_name: dict[str, list[BackgroundNotifier[Event]]] = {}
        self._later: BackgroundNotifier[Callable[[], None]] = BackgroundNotifier(lambda tell: tell(), "telling")

    @property
    def are_there(self) -> bool:
        """Whether anybody listens."""
        return bool(self._by_name)

    def want(self, names: Collection[str]) -> bool:
        """Whether anybody listens to one of these events."""
        return not self._by_name.keys().isdisjoint(names)

    def add(self, name: str, function: Subscriber) -> Callable[[], None]:
        """Have a function told of an event, or of all that `task.*` names, say; gives the way to end it."""
        names = matching(CATALOGUE, name)
        if not names:
            near = difflib.get_close_matches(name, CATALOGUE, n=3, cutoff=0.5) or ["task.*", "step.*", "workflow.*"]
            raise BadTask(f"there is no event {name}", where=name, next=f"near it are: {', '.join(near)}")
        notifier = BackgroundNotifier(function, "subscriber")
        for each in names:
            self._by_name[each] = [*self._by_name.get(each, []), notifier]
        return lambda: self._remove(notifier)

    def publish(self, event: Event, count: Count = uncounted) -> None:
        """Tell all who asked; returns at once."""
        for each in self._by_name.get(event.name, ()):
            each.tell(event, count)

    def tell(self, name: str, task_id: UUID, step_id: int | None = None, /, **payload: Any) -> None:
        """Publish an event that happened here and now."""
        self.publish(Event(name, datetime.now(UTC), task_id, step_id, payload))

    def tell_later(self, tell: Callable[[], None]) -> None:
        """Have something told that has to be looked up first, where anybody listens; returns at once."""
        if self.are_there:
            self._later.tell(tell, uncounted)

    def flush(self, seconds: float) -> None:
        """Wait until they are told, but not for ever."""
        flush_all([self._later, *self._notifiers()], seconds)

    def _notifiers(self) -> list[BackgroundNotifier[Event]]:
        return list({id(each): each for notifiers in self._by_name.values() for each in notifiers}.values())

    def _remove(self, notifier: BackgroundNotifier[Event]) -> None:
        kept = {name: [each for each in notifiers if each is not notifier] for name, notifiers in self._by_name.items()}
        self._by_name = {name: notifiers for name, notifiers in kept.items() if notifiers}


def title_of(task: Any) -> Mapping[str, str]:
    """Say what a task is of, as payloads do."""
    return {"flow": task.name, "namespace": task.namespace, "version": task.version}
