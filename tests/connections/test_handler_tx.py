"""Connections of handlers' transactions are used again: as good as new, and only when they live."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from holdfast.connections.handler_tx import MOST, TransactionConnections
from holdfast.errors import LeaseLost
from holdfast.handlers.transaction import Transaction
from holdfast.models import Done, Settlement

ADVISORY_LOCKS = "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()"


@pytest.fixture
def connections(dsn):
    connections = TransactionConnections(dsn, timedelta(seconds=30))
    yield connections
    connections.close()


def test_a_connection_that_was_given_back_is_used_again(connections):
    first = connections.take()
    backend = first.info.backend_pid
    first.rollback()
    connections.give(first)

    assert connections.take().info.backend_pid == backend
    first.close()


def test_nothing_of_the_last_session_stays(connections):
    """What a handler set, locked, listened to or kept aside is none of the next one's."""
    used = connections.take()
    used.execute("set statement_timeout = '7s'; set role pg_monitor; create temp table mine (); listen hints")
    used.execute("select pg_advisory_lock(42); declare open cursor with hold for select 1")
    used.commit()
    connections.give(used)

    with connections.take() as connection:
        assert connection.execute("show statement_timeout").fetchone() != ("7s",)
        assert connection.execute("select current_user = session_user, to_regclass('mine')").fetchone() == (True, None)
        assert connection.execute("select count(*) from pg_listening_channels()").fetchone() == (0,)
        assert connection.execute(ADVISORY_LOCKS).fetchone() == (0,)
        assert connection.execute("select count(*) from pg_cursors").fetchone() == (0,)
        assert not connection.autocommit


def test_a_block_of_the_handlers_own_commits_nothing(connections, db):
    """W-60: the transaction has begun, on a new connection and on a used one, so that such a block is a savepoint."""
    db.execute("create table public.written (n int)")
    for number in range(3):
        connection = connections.take()
        with connection.transaction():
            connection.execute("insert into public.written values (%s)", [number])
        assert db.execute("select count(*) from public.written").fetchone() == (0,)
        connection.rollback()
        connection.execute("insert into public.written values (%s)", [number])  # in a transaction again
        connection.rollback()
        connections.give(connection)

    assert db.execute("select count(*) from public.written").fetchone() == (0,)


def test_an_async_block_of_the_handlers_own_commits_nothing(connections, db):
    db.execute("create table public.written (n int)")

    async def write():
        for number in range(3):
            connection = await connections.atake()
            async with connection.transaction():
                await connection.execute("insert into public.written values (%s)", [number])
            await connection.rollback()
            await connection.execute("insert into public.written values (%s)", [number])
            await connection.rollback()
            await connections.agive(connection)

    asyncio.run(write())

    assert db.execute("select count(*) from public.written").fetchone() == (0,)


def test_a_rollback_does_not_bring_the_last_session_back(connections):
    used = connections.take()
    used.execute("set statement_timeout = '7s'")
    used.commit()
    connections.give(used)

    with connections.take() as connection:
        connection.rollback()
        assert connection.execute("show statement_timeout").fetchone() != ("7s",)


def test_one_that_has_died_is_replaced(connections, db):
    used = connections.take()
    used.rollback()
    connections.give(used)
    db.execute("select pg_terminate_backend(%s, 5000)", [used.info.backend_pid])

    with connections.take() as connection:
        assert connection.execute("select 1").fetchone() == (1,)


def test_the_async_ones_are_used_again_too_and_replaced_when_they_died(connections, db):
    async def backends():
        first = await connections.atake()
        await first.rollback()
        await connections.agive(first)
        second = await connections.atake()
        await second.rollback()
        await connections.agive(second)
        db.execute("select pg_terminate_backend(%s, 5000)", [second.info.backend_pid])
        async with await connections.atake() as third:
            return first.info.backend_pid, second.info.backend_pid, third.info.backend_pid

    first, second, third = asyncio.run(backends())

    assert first == second != third


def test_no_more_are_kept_than_are_worth_it(connections):
    taken = [connections.take() for _ in range(MOST + 1)]
    for connection in taken:
        connections.give(connection)

    assert [connection.closed for connection in taken] == [False] * MOST + [True]


def test_a_transaction_whose_lease_was_lost_leaves_no_connection_behind(connections):
    """W-61: what it wrote is undone with it."""
    transaction = Transaction(connections)
    with transaction as connection:
        connection.execute("create table public.written ()")

    with pytest.raises(LeaseLost):
        transaction.settle(Settlement(1, 1, Done()))

    assert connection.closed
    with connections.take() as other:
        assert other.execute("select to_regclass('public.written')").fetchone() == (None,)
