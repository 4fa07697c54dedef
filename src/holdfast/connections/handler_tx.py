"""Connections of handlers: a small pool for their calls, and spare ones that their transactions reuse."""

from __future__ import annotations

import threading
from collections import deque
from datetime import timedelta
from typing import Any, TypeVar

import psycopg

from holdfast.connections.deadline import AsyncDeadlineConnection, DeadlineConnection, aconnect, connect, within
from holdfast.connections.pool import Pool, lent, open_pool
from holdfast.errors import Unreachable
from holdfast.kernel import db
from holdfast.kernel.call import Call

C = TypeVar("C")
SIZE = 4  # of the pool
MOST = 16  # spare connections of each sort, if not told how many handlers run at once; more are closed
# As `discard all`, but it keeps the plans, which make a used connection fast. It also proves that the server answers.
CLEAN = (
    "close all; unlisten *; discard temp; discard sequences; "
    "reset session authorization; reset role; reset all; select pg_catalog.pg_advisory_unlock_all()"
)


class HandlerExecutor:
    """Runs the calls of handlers, from any thread, on connections of their own, so that claims and renewals never wait.

    `lease` is the worker's own, if it overrides the kind's; `deadline` is how long an answer may take; `most` is how
    many handlers run at once, and so how many connections of their transactions are kept.
    """

    def __init__(self, dsn: str, worker: str, lease: timedelta | None, deadline: timedelta, most: int = MOST) -> None:
        self.dsn = dsn
        self.worker = worker
        self.lease = lease
        self.connections = TransactionConnections(dsn, deadline, most)
        self._deadline = deadline
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call."""
        with lent(self._opened(), self._deadline) as connection, within(connection, self._deadline):
            return db.run(connection, call)

    def close(self) -> None:
        """Close all connections."""
        self.connections.close()
        with self._lock:
            if self._pool is not None:
                self._pool.close(timeout=1)
                self._pool = None

    def _opened(self) -> Pool:
        with self._lock:
            if self._pool is None:
                self._pool = open_pool(self.dsn, SIZE)
            return self._pool


class TransactionConnections:
    """Idle connections to one database, kept because a new one costs a server process and its plans.

    May be used from any thread, the async ones from one loop.
    """

    def __init__(self, dsn: str, deadline: timedelta, most: int = MOST) -> None:
        self.deadline = deadline
        self._most = most
        self._dsn = dsn
        self._sync: deque[DeadlineConnection] = deque()
        self._async: deque[AsyncDeadlineConnection] = deque()

    def take(self) -> DeadlineConnection:
        """Return a connection in a clean state, inside a transaction.

        It has begun: a `with connection.transaction()` of the handler is a savepoint in it, and commits nothing.
        """
        while (spare := _popped(self._sync)) is not None:
            try:
                with within(spare, self.deadline):
                    spare.begin(CLEAN)
                return spare
            except (psycopg.Error, Unreachable):
                spare.close()
        connection = connect(self._dsn)
        with within(connection, self.deadline):
            connection.begin()
        return connection

    async def atake(self) -> AsyncDeadlineConnection:
        """Return a connection, as `take` does."""
        while (spare := _popped(self._async)) is not None:
            try:
                with within(spare, self.deadline):
                    await spare.begin(CLEAN)
                return spare
            except (psycopg.Error, Unreachable):
                await spare.close()
        connection = await aconnect(self._dsn)
        with within(connection, self.deadline):
            await connection.begin()
        return connection

    def give(self, connection: DeadlineConnection) -> None:
        """Take back a connection whose transaction has ended."""
        if connection.closed or len(self._sync) >= self._most:
            connection.close()
        else:
            self._sync.append(connection)

    async def agive(self, connection: AsyncDeadlineConnection) -> None:
        """Take back a connection, as `give` does."""
        if connection.closed or len(self._async) >= self._most:
            await connection.close()
        else:
            self._async.append(connection)

    def close(self) -> None:
        """Close them all."""
        while (spare := _popped(self._sync)) is not None:
            spare.close()
        while (aspare := _popped(self._async)) is not None:
            aspare.pgconn.finish()  # its loop may be closed


def _popped(connections: deque[C]) -> C | None:
    """Return the connection that was used last, whose plans are the freshest."""
    try:
        return connections.pop()
    except IndexError:
        return None
