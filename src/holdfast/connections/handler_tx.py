"""Connections that handlers' transactions leave behind for the next: a new one costs a process and its plans."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast.connections.deadline import within
from holdfast.errors import Unreachable
from holdfast.kernel import db

C = TypeVar("C")
MOST = 16  # of each sort; what is given back beyond them is closed
# What `discard all` does, but for the plans, which are what makes a used connection fast. It proves too that it lives.
CLEAN = (
    "close all; unlisten *; discard temp; discard sequences; "
    "reset session authorization; reset role; reset all; select pg_catalog.pg_advisory_unlock_all()"
)


class Spares:
    """Connections to one database that nobody uses now; may be used from any thread, the async ones from one loop."""

    def __init__(self, dsn: str, deadline: timedelta) -> None:
        self.deadline = deadline
        self._dsn = dsn
        self._sync: deque[Connection[Any]] = deque()
        self._async: deque[AsyncConnection[Any]] = deque()

    def take(self) -> Connection[Any]:
        """Give a connection that is as good as new, outside autocommit."""
        while (spare := _popped(self._sync)) is not None:
            try:
                with within(spare, self.deadline):
                    spare.autocommit = True
                    spare.execute(CLEAN)
            except (psycopg.Error, Unreachable):
                spare.close()
            else:
                break
        connection = spare or db.connect(self._dsn)
        connection.autocommit = False
        return connection

    async def atake(self) -> AsyncConnection[Any]:
        """Give a connection, as `take` does."""
        while (spare := _popped(self._async)) is not None:
            try:
                with within(spare, self.deadline):
                    await spare.set_autocommit(True)
                    await spare.execute(CLEAN)
            except (psycopg.Error, Unreachable):
                await spare.close()
            else:
                break
        connection = spare or await db.aconnect(self._dsn)
        await connection.set_autocommit(False)
        return connection

    def give(self, connection: Connection[Any]) -> None:
        """Take back a connection whose transaction is over."""
        if connection.closed or len(self._sync) >= MOST:
            connection.close()
        else:
            self._sync.append(connection)

    async def agive(self, connection: AsyncConnection[Any]) -> None:
        """Take back a connection, as `give` does."""
        if connection.closed or len(self._async) >= MOST:
            await connection.close()
        else:
            self._async.append(connection)

    def close(self) -> None:
        """Close them all."""
        while (spare := _popped(self._sync)) is not None:
            spare.close()
        while (aspare := _popped(self._async)) is not None:
            aspare.pgconn.finish()  # its loop may be gone


def _popped(spares: deque[C]) -> C | None:
    """Give the one that was used last: its plans are the freshest."""
    try:
        return spares.pop()
    except IndexError:
        return None
