"""Pools of connections: runs calls on them, and lends those that work, found without a trip to the server."""

from __future__ import annotations

import asyncio
import select
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any
from weakref import WeakKeyDictionary

from psycopg import AsyncConnection, Connection
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from holdfast.config import Config
from holdfast.connections.caller import drivers, lend
from holdfast.connections.caller.types import AsyncDriver, CallerConnection
from holdfast.connections.deadline import (
    AsyncDeadlineConnection,
    DeadlineConnection,
    aconnect,
    aoptions,
    connect,
    options,
    within,
)
from holdfast.errors import DatabaseError, TooManyConnections, Unreachable
from holdfast.kernel import db
from holdfast.kernel.call import Call

Pool = ConnectionPool[DeadlineConnection]
AsyncPool = AsyncConnectionPool[AsyncDeadlineConnection]
POOL_SIZE = 10  # of the app
LAST_TRY = 2  # seconds to learn why there was no connection; the driver allows no less


class PoolExecutor:
    """Runs calls on pooled connections, one pool per event loop and one for threads, or on the caller's connection.

    `address` is called with the first use, and after `close`.
    """

    def __init__(self, address: Callable[[], str]) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._call_deadline: timedelta | None = None
        self._pool: Pool | None = None
        self._pools: WeakKeyDictionary[Any, AsyncPool] = WeakKeyDictionary()

    def make(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call, on a connection of ours or in the transaction of the caller's."""
        with self.connection(conn) as connection, within(connection, self._deadline()):
            return db.run(connection, call)

    async def amake(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call, as `make` does."""
        if conn is not None:
            async with lend.alend(conn) as driver:
                return await drivers.arun(driver, call)
        async with alent(await self._async_pool(), self._deadline()) as connection:
            with within(connection, self._deadline()):
                return await db.arun(connection, call)

    def connection(self, conn: CallerConnection | None = None) -> AbstractContextManager[Connection[Any]]:
        """Lend a connection: the driver's of the caller's if it passes one, else one of the pool."""
        return lent(self._sync_pool(), self._deadline()) if conn is None else lend.lend(conn)

    @asynccontextmanager
    async def aconnection(self, conn: CallerConnection | None = None) -> AsyncIterator[AsyncDriver]:
        """Lend an async connection, as `connection` does."""
        async with (
            alent(await self._async_pool(), self._deadline()) if conn is None else lend.alend(conn) as connection
        ):
            yield connection

    def close(self) -> None:
        """Close the pool of threads; the next use opens another."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    async def aclose(self) -> None:
        """Close the pool of the running loop."""
        pool = self._pools.pop(asyncio.get_running_loop(), None)
        if pool is not None:
            await pool.close()

    def _deadline(self) -> timedelta:
        if self._call_deadline is None:
            self._call_deadline = Config().call_deadline
        return self._call_deadline

    def _sync_pool(self) -> Pool:
        if (pool := self._pool) is not None:
            return pool
        dsn = self._address()
        with self._lock:
            if self._pool is None:
                with connect(dsn):  # so that a wrong address raises at once, and an error of ours
                    self._pool = open_pool(dsn, POOL_SIZE)
            return self._pool

    async def _async_pool(self) -> AsyncPool:
        loop = asyncio.get_running_loop()
        if loop not in self._pools:
            dsn = await asyncio.to_thread(self._address)
            async with await aconnect(dsn):
                self._pools[loop] = await open_async_pool(dsn, POOL_SIZE)
        return self._pools[loop]


def open_pool(dsn: str, size: int) -> Pool:
    """Make a pool that is empty until it is used."""
    kwargs = options()
    return ConnectionPool(
        dsn, min_size=0, max_size=size, kwargs=kwargs, connection_class=DeadlineConnection, check=check, open=True
    )


async def open_async_pool(dsn: str, size: int) -> AsyncPool:
    """Make a pool for the loop that is running, as `open_pool` does."""
    kwargs = aoptions()
    pool: AsyncPool = AsyncConnectionPool(
        dsn,
        min_size=0,
        max_size=size,
        kwargs=kwargs,
        connection_class=AsyncDeadlineConnection,
        check=acheck,
        open=False,
    )
    await pool.open()
    return pool


@contextmanager
def lent(pool: Pool, patience: timedelta) -> Iterator[DeadlineConnection]:
    """Lend a connection; raises an error that tells why none is free."""
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
async def alent(pool: AsyncPool, patience: timedelta) -> AsyncIterator[AsyncDeadlineConnection]:
    """The async twin of `lent`."""
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
    """Raise if the connection is gone. The server is asked only if it has sent something by itself."""
    if _has_something_to_read(connection):
        ConnectionPool.check_connection(connection)


async def acheck(connection: AsyncConnection[Any]) -> None:
    """The async twin of `check`."""
    if _has_something_to_read(connection):
        await AsyncConnectionPool.check_connection(connection)


def _has_something_to_read(connection: Connection[Any] | AsyncConnection[Any]) -> bool:
    """A server that closes an idle connection sends a message; one that is silent lives, or will not answer either."""
    if connection.closed:
        return True
    socket = select.poll()
    socket.register(connection.pgconn.socket, select.POLLIN)
    return bool(socket.poll(0))


def _why_none(pool: Pool, patience: timedelta) -> DatabaseError:
    """Find out why the pool has none: it keeps that to itself, and a connection apart tells."""
    try:
        connect(str(pool.conninfo), timeout=LAST_TRY).close()
    except DatabaseError as error:
        return _counted(pool, error)
    return _all_lent(pool, patience)


async def _awhy_none(pool: AsyncPool, patience: timedelta) -> DatabaseError:
    try:
        await (await aconnect(str(pool.conninfo), timeout=LAST_TRY)).close()
    except DatabaseError as error:
        return _counted(pool, error)
    return _all_lent(pool, patience)


def _counted(pool: Pool | AsyncPool, error: DatabaseError) -> DatabaseError:
    if isinstance(error, TooManyConnections):
        error.add_note(f"this app alone may open up to {pool.max_size} connections")
    return error


def _all_lent(pool: Pool | AsyncPool, patience: timedelta) -> DatabaseError:
    return Unreachable(
        f"none of the app's {pool.max_size} connections was to be had within {patience.total_seconds():g} s",
        next="see that what borrows connections gives them back",
    )
