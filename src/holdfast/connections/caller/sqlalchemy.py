"""SQLAlchemy 2: its connections and sessions hold one of psycopg's or asyncpg's, which the call is made on.

SQLAlchemy begins a transaction with its own first statement and commits only one that it knows of. A statement that
goes past it must not be the first: it would be rolled back or, by asyncpg, committed at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from psycopg import AsyncConnection, Connection

from holdfast.connections.caller.types import AsyncDriver
from holdfast.errors import BadInput


@contextmanager
def lend(conn: Any) -> Iterator[Connection[Any]]:
    """Lend psycopg's connection of a SQLAlchemy Connection."""
    driver = conn.connection.driver_connection
    if not isinstance(driver, Connection):
        raise _wrong_driver(driver, "use an engine of postgresql+psycopg://, or astart with an AsyncSession")
    if not conn.in_transaction():
        conn.begin()
    try:
        yield driver
    except Exception as error:
        if driver.closed:
            conn.invalidate(error)  # as after a statement of its own, so that the pool does not lend it again
        raise


@asynccontextmanager
async def alend(conn: Any) -> AsyncIterator[AsyncDriver]:
    """Lend the driver's connection of an AsyncConnection."""
    driver = (await conn.get_raw_connection()).driver_connection
    is_asyncpg = type(driver).__module__.startswith("asyncpg.")
    if not is_asyncpg and not isinstance(driver, AsyncConnection):
        raise _wrong_driver(driver, "use an engine of postgresql+asyncpg:// or postgresql+psycopg://")
    if not conn.in_transaction():
        await conn.begin()
    if is_asyncpg and not driver.is_in_transaction():
        await conn.exec_driver_sql("select 1")  # sends the BEGIN, unless it is in autocommit
    try:
        yield driver
    except Exception as error:
        if driver.is_closed() if is_asyncpg else driver.closed:
            await conn.invalidate(error)
        raise


@asynccontextmanager
async def alend_session(session: Any) -> AsyncIterator[AsyncDriver]:
    """Lend the driver's connection of an AsyncSession."""
    async with alend(await session.connection()) as driver:
        yield driver


def driver_of(conn: Any) -> Any:
    """Return the driver's connection that a call was made on."""
    if hasattr(conn, "registry"):  # a scoped session, sync or async
        conn = conn()
    conn = getattr(conn, "sync_session", getattr(conn, "sync_connection", conn))
    if callable(conn.connection):  # a session's is a method
        conn = conn.connection()
    return conn.connection.driver_connection


def _wrong_driver(driver: Any, then: str) -> BadInput:
    library = type(driver).__module__.partition(".")[0]
    return BadInput(f"conn is SQLAlchemy's over {library}", where="conn", next=then)
