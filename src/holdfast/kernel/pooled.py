"""Makes pools of connections, and lends from them what works, told without a trip to the server."""

from __future__ import annotations

import select
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from holdfast.connections.deadline import AsyncBounded, Bounded
from holdfast.errors import DatabaseError, TooManyConnections, Unreachable
from holdfast.kernel import db

Pool = ConnectionPool[Bounded]
AsyncPool = AsyncConnectionPool[AsyncBounded]
LAST_TRY = 2  # seconds to learn why there was no connection; the driver allows no less


def pool(dsn: str, size: int) -> Pool:
    """Make a pool that is empty until it is used."""
    kwargs = db.options()
    return ConnectionPool(
        dsn, min_size=0, max_size=size, kwargs=kwargs, connection_class=Bounded, check=check, open=True
    )


async def apool(dsn: str, size: int) -> AsyncPool:
    """Make a pool for the loop that is running, as `pool` does."""
    kwargs = db.aoptions()
    made: AsyncPool = AsyncConnectionPool(
        dsn, min_size=0, max_size=size, kwargs=kwargs, connection_class=AsyncBounded, check=acheck, open=False
    )
    await made.open()
    return made


@contextmanager
def lent(pool: Pool, patience: timedelta) -> Iterator[Bounded]:
    """Lend a connection, or say that none was to be had."""
    try:
        connection = pool.getconn(timeout=patience.total_seconds())
    except PoolTimeout as error:
        raise _why_none(pool, patience) from error
    try:
        with connection:
            yield connection
    finally:
        pool.putconn(connection)


@asynccontextmanager
async def alent(pool: AsyncPool, patience: timedelta) -> AsyncIterator[AsyncBounded]:
    """Do as `lent` does."""
    try:
        connection = await pool.getconn(timeout=patience.total_seconds())
    except PoolTimeout as error:
        raise await _awhy_none(pool, patience) from error
    try:
        async with connection:
            yield connection
    finally:
        await pool.putconn(connection)


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


def _why_none(pool: Pool, patience: timedelta) -> DatabaseError:
    """Find out why the pool has none: it keeps that to itself, and a connection apart tells."""
    try:
        db.connect(str(pool.conninfo), timeout=LAST_TRY).close()
    except DatabaseError as error:
        return _counted(pool, error)
    return _all_lent(pool, patience)


async def _awhy_none(pool: AsyncPool, patience: timedelta) -> DatabaseError:
    try:
        await (await db.aconnect(str(pool.conninfo), timeout=LAST_TRY)).close()
    except DatabaseError as error:
        return _counted(pool, error)
    return _all_lent(pool, patience)


def _counted(pool: Pool | AsyncPool, error: DatabaseError) -> DatabaseError:
    if isinstance(error, TooManyConnections):
        error.add_note(f"this app alone may open up to {pool.max_size} connections")
    return error


def _all_lent(pool: Pool | AsyncPool, patience: timedelta) -> DatabaseError:
    return Unreachable(
        f"none of the app's {pool.max_size} connections was to be had within {patience.total_seconds():g} s; "
        "see that what borrows connections gives them back"
    )
