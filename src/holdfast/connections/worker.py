"""The worker's own connection: every call on it has a deadline, and a call that fails in transit closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from holdfast import log, tracing
from holdfast.connections.deadline import aconnect, within
from holdfast.errors import CommitUnknown, HoldfastError, ReadOnly, Unreachable
from holdfast.kernel import db
from holdfast.kernel.call import Call

Row = TypeVar("Row")
Answers = dict[str, list[Any] | None]  # by name of the query; None if the database rejected it


class WorkerConnection:
    """One connection, opened when it is needed and reopened after it broke."""

    def __init__(self, dsn: str, deadline: timedelta) -> None:
        self._dsn = dsn
        self._deadline = deadline
        self._connection: AsyncConnection[Any] | None = None
        self._log = log.get("link")

    @property
    def is_open(self) -> bool:
        """Return whether the connection is open, as far as can be known without using it."""
        return self._connection is not None and not self._connection.closed

    async def open(self) -> AsyncConnection[Any]:
        """Connect, unless it is connected."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            await self.close()
            try:
                async with asyncio.timeout(self._deadline.total_seconds()):
                    self._connection = await aconnect(self._dsn)
            except TimeoutError:
                raise Unreachable(
                    f"no PostgreSQL answered within {self._deadline.total_seconds():g} s",
                    next="check that the server runs",
                ) from None
        return self._connection

    async def make(self, call: Call[Row]) -> list[Row]:
        """Make a call within the deadline. One that is cut off closes the connection: its answer may still come."""
        connection = await self.open()
        try:
            with tracing.span(call.function), within(connection, self._deadline):
                return await db.arun(connection, call)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if db.is_lost(connection, error):
                await self.close()
            raise
        except (Unreachable, CommitUnknown, ReadOnly, asyncio.CancelledError):
            await self.close()  # a new one may find the server again, or the primary among several
            raise

    async def make_and_query(self, call: Call[Row], queries: Mapping[str, Call[Any]]) -> tuple[list[Row], Answers]:
        """Make a call, and run queries in its transaction, which see its changes."""
        for last in range(1 - db.TRIES, 1):
            connection = await self.open()
            try:
                async with connection.transaction():
                    return await self.make(call), await self.query_all(queries)
            except db.DEADLOCK:
                if last == 0:
                    raise
        raise AssertionError("not reached")

    async def query_all(self, queries: Mapping[str, Call[Any]]) -> Answers:
        """Run one query after the other, as `query` does."""
        return {name: await self.query(query) for name, query in queries.items()}

    async def query(self, call: Call[Any]) -> list[Any] | None:
        """Make a call that only reads. If the database rejects it, log that and return None."""
        connection = await self.open()
        try:
            async with connection.transaction():
                return await self.make(call)
        except (psycopg.DatabaseError, HoldfastError) as error:
            if connection.closed:
                raise
            self._log.warning("question.refused", function=call.function, error=str(error))
            return None

    async def close(self) -> None:
        """Close the connection without waiting for it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()
