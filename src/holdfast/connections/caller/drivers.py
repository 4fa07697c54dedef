"""Makes calls on either driver that an async connection comes down to; asyncpg is imported by its users alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from psycopg import AsyncConnection

from holdfast.connections.caller.types import AsyncDriver
from holdfast.kernel import bulk, db
from holdfast.kernel.call import Call

Row = TypeVar("Row")


async def arun(connection: AsyncDriver, call: Call[Row]) -> list[Row]:
    """Make a call, in the transaction that is open on the connection, else in one of its own."""
    if isinstance(connection, AsyncConnection):
        return await db.arun(connection, call)
    from holdfast.connections.caller import asyncpg

    return await asyncpg.run(connection, call)


async def astart_tasks(connection: AsyncDriver, tasks: Iterable[bulk.Start], *, tenant: str = "default") -> int:
    """Start many tasks by COPY, all or none, and return their number."""
    if isinstance(connection, AsyncConnection):
        return await bulk.astart_tasks(connection, tasks, tenant=tenant)
    from holdfast.connections.caller import asyncpg

    return await asyncpg.start_tasks(connection, tasks, tenant=tenant)
