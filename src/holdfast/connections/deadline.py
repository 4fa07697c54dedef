"""Connections whose waits can be given an end: a proxy may keep a dead one open, and then no answer ever comes."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast.errors import Unreachable

R = TypeVar("R")
FAREWELL = 1.0  # seconds to tell the server that nobody waits any more
opened: WeakSet[Connection[Any] | AsyncConnection[Any]] = WeakSet()  # for forks, which must not share them


class Bounded(Connection[Any]):
    """A connection that is closed when an answer takes longer than its patience."""

    patience: float | None = None  # seconds

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        opened.add(self)

    def wait(self, gen: Generator[Any, Any, R], *how: Any, **more: Any) -> R:
        """Wait for the server, as psycopg does for each statement."""
        if self.patience is None:
            return super().wait(gen, *how, **more)
        try:
            return super().wait(_ended(gen, self.patience), *how, **more)
        except Unreachable:
            with suppress(psycopg.Error):  # where only this statement is held up, it need not wait on for nobody
                self.cancel_safe(timeout=FAREWELL)
            self.pgconn.finish()  # its answer may still come, and would be taken for another's
            raise


class AsyncBounded(AsyncConnection[Any]):
    """Does as `Bounded` does."""

    patience: float | None = None

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        opened.add(self)

    async def wait(self, gen: Generator[Any, Any, R], *how: Any, **more: Any) -> R:
        """Wait for the server, as psycopg does for each statement."""
        if self.patience is None:
            return await super().wait(gen, *how, **more)
        try:
            return await super().wait(_ended(gen, self.patience), *how, **more)
        except Unreachable:
            with suppress(psycopg.Error):
                await self.cancel_safe(timeout=FAREWELL)
            self.pgconn.finish()
            raise


@contextmanager
def within(connection: Connection[Any] | AsyncConnection[Any], patience: timedelta) -> Iterator[None]:
    """Let no statement in the block wait longer for its answer. A caller's own connection is the caller's to bound."""
    if not isinstance(connection, (Bounded, AsyncBounded)):
        yield
        return
    connection.patience = patience.total_seconds()
    try:
        yield
    finally:
        connection.patience = None


def _ended(gen: Generator[Any, Any, R], patience: float) -> Generator[Any, Any, R]:
    """Give what psycopg waits by, which it looks at ten times a second, an end."""
    until = time.monotonic() + patience
    try:
        asked = next(gen)
        while True:
            ready = yield asked
            if not ready and time.monotonic() >= until:
                raise Unreachable(
                    f"the database did not answer within {patience:g} s; see what holds it up: pg_stat_activity"
                )
            asked = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result
