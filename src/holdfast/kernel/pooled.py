"""Whether a connection of a pool can be lent out, told without a trip to the server."""

from __future__ import annotations

import select
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool


def check(connection: Connection[Any]) -> None:
    """Raise if the connection is no longer there. It is asked only where it has said something by itself."""
    if _has_something_to_read(connection):
        ConnectionPool.check_connection(connection)


async def acheck(connection: AsyncConnection[Any]) -> None:
    """Do as `check` does."""
    if _has_something_to_read(connection):
        await AsyncConnectionPool.check_connection(connection)


def _has_something_to_read(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """A server that closes an idle connection says so; one that says nothing is there, or will not answer either."""
    if connection.closed:
        return True
    socket = select.poll()
    socket.register(connection.pgconn.socket, select.POLLIN)
    return bool(socket.poll(0))
