"""A pool lends out what works, and does not ask the server each time."""

from __future__ import annotations

import asyncio

from psycopg_pool import AsyncConnectionPool, ConnectionPool

from holdfast.connections.pool import acheck, check

WORDS = "select 'the last that it was asked'"


def test_a_connection_that_the_server_closed_is_not_lent_out(dsn, db):
    """R9."""
    with ConnectionPool(dsn, min_size=1, max_size=1, check=check, open=True) as pool:
        with pool.connection() as connection:
            backend = connection.info.backend_pid
        db.execute("select pg_terminate_backend(%s, 5000)", [backend])

        with pool.connection() as connection:
            assert connection.execute("select 1").fetchone() == (1,)
            assert connection.info.backend_pid != backend


def test_an_async_one_is_not_lent_out_either(dsn, db):
    """R9."""

    async def backends():
        async with AsyncConnectionPool(dsn, min_size=1, max_size=1, check=acheck, open=False) as pool:
            async with pool.connection() as connection:
                first = connection.info.backend_pid
            db.execute("select pg_terminate_backend(%s, 5000)", [first])
            async with pool.connection() as connection:
                await connection.execute("select 1")
                return first, connection.info.backend_pid

    first, second = asyncio.run(backends())

    assert first != second


def test_one_that_has_said_nothing_is_not_asked(dsn, db):
    kwargs = {"autocommit": True}
    with ConnectionPool(dsn, min_size=1, max_size=1, check=check, kwargs=kwargs, open=True) as pool:
        with pool.connection() as connection:
            connection.execute(WORDS)
            backend = connection.info.backend_pid
        with pool.connection():
            asked = db.execute("select query from pg_stat_activity where pid = %s", [backend]).fetchone()

    assert asked == (WORDS,)
