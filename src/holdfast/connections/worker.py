"""A connection of the worker's own: every call on it has a deadline, and a call that fails in transit closes it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection

from holdfast import log, tracing
from holdfast.connections.deadline import within
from holdfast.errors import CommitUnknown, HoldfastError, ReadOnly, Unreachable
from holdfast.kernel import db, lost
from holdfast.kernel.call import Call

Row = TypeVar("Row")
Answers = dict[str, list[Any] | None]  # by who asked; None where the database gave none


class Link:
    """One connection, made when it is needed and made anew after it broke."""

    def __init__(self, dsn: str, deadline: float) -> None:
        self._dsn = dsn
        self._deadline = deadline
        self._connection: AsyncConnection[Any] | None = None
        self._log = log.get("link")

    @property
    def is_open(self) -> bool:
        """Whether the connection is there, as far as one can tell without using it."""
        return self._connection is not None and not self._connection.closed

    async def open(self) -> AsyncConnection[Any]:
        """Connect, unless it is connected."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            await self.close()
            try:
                async with asyncio.timeout(self._deadline):
                    self._connection = await db.aconnect(self._dsn)
            except TimeoutError:
                raise Unreachable(
                    f"no PostgreSQL answered within {self._deadline:g} s; check that the server runs"
                ) from None
        return self._connection

    async def make(self, call: Call[Row]) -> list[Row]:
        """Make a call within the deadline. One that was cut off leaves no connection: its answer may still come."""
        connection = await self.open()
        try:
            with tracing.span(call.function), within(connection, timedelta(seconds=self._deadline)):
                return await db.arun(connection, call)
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if lost.is_lost(connection, error):
                await self.close()
            raise
        except (Unreachable, CommitUnknown, ReadOnly, asyncio.CancelledError):
            await self.close()  # a new one may find the server again, or of several the writer
            raise

    async def make_and_ask(self, call: Call[Row], questions: Mapping[str, Call[Any]]) -> tuple[list[Row], Answers]:
        """Make a call, and ask in its transaction how things stand by it; see `ask_all`."""
        for last in range(1 - db.TRIES, 1):
            connection = await self.open()
            try:
                async with connection.transaction():
                    return await self.make(call), await self.ask_all(questions)
            except db.DEADLOCK:
                if last == 0:
                    raise
        raise AssertionError("not reached")

    async def ask_all(self, questions: Mapping[str, Call[Any]]) -> Answers:
        """Ask one after the other; see `ask`."""
        return {name: await self.ask(question) for name, question in questions.items()}

    async def ask(self, question: Call[Any]) -> list[Any] | None:
        """Ask, and take no for an answer: what is refused is logged, and costs nothing but the answer."""
        connection = await self.open()
        try:
            async with connection.transaction():
                return await self.make(question)
        except (psycopg.DatabaseError, HoldfastError) as error:
            if connection.closed:
                raise
            self._log.warning("question.refused", function=question.function, error=str(error))
            return None

    async def close(self) -> None:
        """Close the connection without waiting for it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.pgconn.finish()
