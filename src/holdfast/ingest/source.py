"""What a source of records is: an object with `key`, `page` and optional methods."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
import weakref
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from holdfast.errors import BadDefinition

PLAIN = frozenset({str, int, bool, type(None), datetime, list})


@dataclass(frozen=True, slots=True)
class Window:
    """The records that a run asks for: updated after `since` (None: ever) and not after `until`."""

    since: datetime | None
    until: datetime


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a source that one partition reads: from `low`, included, to `high`, excluded; None is open."""

    low: Any = None
    high: Any = None
    estimated: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Records, and where the next page begins. Without `has_more`, a full page means that there are more."""

    records: Sequence[Any]
    cursor: Any = None
    has_more: bool | None = None


class Source(Protocol):
    """The methods that every source has; each may be async.

    It may also have `count(window, part)`, `now()`, `updated_at(record)`, `deleted(record)`, `lookup(keys)`,
    `render(record)` (its JSON as text), `span(window)` (the whole numbers that partitions divide),
    `partitions(window, most, least)` and `check()`, and the attributes `name`, `paging`, `page_size` and `precision`.
    """

    def key(self, record: Any, /) -> Any:
        """Return the key of a record as text."""

    def page(self, window: Window, part: Part, cursor: Any, limit: int, /) -> Any:
        """Return a Page or a list. `cursor` is None for the first page; with offset paging it is a number."""


class Reader:
    """A source as handlers use it: each optional method under its name, async ones run to their end."""

    def __init__(self, source: Any, feed: str) -> None:
        for method in ("key", "page"):
            if not callable(getattr(source, method, None)):
                raise BadDefinition(
                    f"the source of {feed} has no method {method}", where="source", next="see docs/guides/ingest.md"
                )
        self.source = source
        self.name: str = getattr(source, "name", None) or feed
        self.paging: str = getattr(source, "paging", "token")
        if self.paging not in ("offset", "key", "token"):
            raise BadDefinition(
                f"paging must be offset, key or token, got {self.paging!r}", where="paging", next='use "key"'
            )
        self.page_size: int = getattr(source, "page_size", 30)
        self.precision: timedelta = getattr(source, "precision", timedelta(microseconds=1))
        self._loop = SourceLoop()

    def has(self, method: str) -> bool:
        """Return whether the source has a method."""
        return callable(getattr(self.source, method, None))

    def call(self, method: str, *arguments: Any) -> Any:
        """Call a method of the source, async or not, and return its result."""
        return self._answered(getattr(self.source, method), *arguments)

    def method(self, name: str, otherwise: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return a method of the source that is called per record, or `otherwise` if it has none of that name."""
        return partial(self._answered, getattr(self.source, name)) if self.has(name) else otherwise

    def _answered(self, function: Callable[..., Any], *arguments: Any) -> Any:
        answer = function(*arguments)
        if type(answer) in PLAIN:  # most are, and to ask whether one is awaitable costs more than the rest
            return answer
        return self._loop.result(answer) if inspect.isawaitable(answer) else answer


class SourceLoop:
    """The event loop of a source's async methods: one for all calls, because a client belongs to its loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0

    def result(self, answer: Awaitable[Any]) -> Any:
        """Wait for a result in the loop's own thread, and return it."""
        return asyncio.run_coroutine_threadsafe(_awaited(answer), self._running()).result()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._process != os.getpid():  # a fork has no copy of the thread
                loop = self._loop = asyncio.new_event_loop()
                self._process = os.getpid()
                threading.Thread(target=_serve, args=[loop], name="holdfast-source", daemon=True).start()
                weakref.finalize(self, loop.call_soon_threadsafe, loop.stop)
            return self._loop


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    loop.run_forever()
    loop.close()


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer
