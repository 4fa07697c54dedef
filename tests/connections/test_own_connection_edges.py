"""What `conn` refuses, and how its libraries fare outside a transaction, with their own codecs, and when it breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from datetime import UTC, datetime
from typing import Any

import asyncpg
import django.db
import psycopg
import pytest
from django.db import connections as django_connections
from psycopg import Connection
from sqlalchemy import create_engine, text
from sqlalchemy.exc import PendingRollbackError
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine
from sqlalchemy.orm import Session

from connections import own as libraries
from connections.own import ALL, Own, set_up_django, where
from holdfast import Holdfast
from holdfast.errors import BadInput, CommitUnknown, KeyConflict, Unreachable
from holdfast.flow.events import Event

pytestmark = pytest.mark.one_server
DB = Connection[Any]
LATER = datetime(2100, 1, 1, tzinfo=UTC)


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()


@pytest.fixture
def send(hf: Holdfast) -> Any:
    @hf.task
    def send(number: int) -> int:
        return number

    return send


def started(db: DB) -> list[int]:
    return [row[0] for row in db.execute("select (input->>'number')::int from holdfast.steps order by id").fetchall()]


@pytest.mark.parametrize("library", ALL)
def test_a_sync_call_on_an_async_connection_is_refused_and_the_other_way_round(
    dsn: str, db: DB, send: Any, library: str
) -> None:
    with ExitStack() as stack:
        own = ALL[library](dsn, stack)
        task = send.options(conn=own.conn)
        for wrong in ("start", "start_many") if own.is_async else ("astart", "astart_many"):
            with pytest.raises(BadInput) as refused:
                own.do(getattr(task, wrong)([] if "many" in wrong else 1))
            assert refused.value.where == "conn"
            assert library.partition(",")[0].lower() in refused.value.what
            assert ("astart" in str(refused.value.next)) is own.is_async

    assert started(db) == []


@pytest.mark.parametrize("named", ["str", "Engine", "AsyncEngine", "Cursor", "Handler"])
def test_what_is_not_a_connection_is_refused_where_it_is_given(dsn: str, db: DB, send: Any, named: str) -> None:
    """By its type: an address may hold a password."""
    given = {
        "str": "postgresql://me:secret@host/db",
        "Engine": create_engine("postgresql+psycopg://"),
        "AsyncEngine": create_async_engine("postgresql+asyncpg://"),
        "Cursor": db.cursor(),
        "Handler": django_connections,
    }[named]

    with pytest.raises(BadInput) as refused:
        send.options(conn=given)

    assert refused.value.where == "conn"
    assert named in refused.value.what
    assert "secret" not in str(refused.value)


def test_a_driver_that_is_not_known_is_refused(dsn: str, db: DB, send: Any) -> None:
    set_up_django(dsn, ENGINE="django.db.backends.sqlite3", NAME=":memory:")
    engine = create_engine("sqlite://")
    with Session(engine) as session:
        for conn in (session, django_connections["default"]):
            with pytest.raises(BadInput, match="sqlite3") as refused:
                send.options(conn=conn).start(1)
            assert "psycopg" in str(refused.value.next)
    engine.dispose()
    django_connections["default"].connection.close()


def test_a_sync_session_over_an_async_driver_is_refused(dsn: str, db: DB, send: Any) -> None:
    """As `run_sync` gives one."""

    async def start() -> None:
        engine = create_async_engine("postgresql+asyncpg://", async_creator=lambda: asyncpg.connect(**where(dsn)))
        async with AsyncSession(engine) as session:
            with pytest.raises(BadInput, match="asyncpg") as refused:
                await session.run_sync(lambda inner: send.options(conn=inner).start(1))
        await engine.dispose()
        assert "astart" in str(refused.value.next)

    asyncio.run(start())


class Autocommit:
    """Each library without a transaction: what is started is stored at once."""

    @staticmethod
    def psycopg(own: Own) -> Any:
        own.conn.autocommit = True
        return own.conn

    @staticmethod
    def sqlalchemy(own: Own) -> Any:
        engine = own.conn.get_bind()
        return own.stack.enter_context(Session(engine.execution_options(isolation_level="AUTOCOMMIT")))

    @staticmethod
    def async_sqlalchemy(own: Own) -> Any:
        session = AsyncSession(own.conn.bind.execution_options(isolation_level="AUTOCOMMIT"))
        own.stack.callback(lambda: own.do(session.close()))
        return session

    @staticmethod
    def as_it_is(own: Own) -> Any:
        return own.conn


@pytest.mark.parametrize(
    ("library", "autocommit"),
    [
        (libraries.Psycopg, Autocommit.psycopg),
        (libraries.Asyncpg, Autocommit.as_it_is),
        (libraries.AsyncpgPool, Autocommit.as_it_is),
        (libraries.SqlalchemySession, Autocommit.sqlalchemy),
        (libraries.AsyncSqlalchemySession, Autocommit.async_sqlalchemy),
        (libraries.AsyncSqlalchemySessionOverAsyncpg, Autocommit.async_sqlalchemy),
        (libraries.Django, Autocommit.as_it_is),
    ],
    ids=lambda given: given.__name__,
)
def test_outside_a_transaction_a_start_is_its_own_and_told_at_once(
    hf: Holdfast, dsn: str, db: DB, send: Any, library: type[Own], autocommit: Callable[[Own], Any]
) -> None:
    """A start inside a transaction is not told: it may be undone."""
    told: list[Event] = []
    order = hf.flow("order")
    order.step(name="pack")(lambda: None)
    hf.on("flow.run.initialized")(told.append)
    with ExitStack() as stack:
        own = library(dsn, stack)
        own.begin()
        own.start(order.options(conn=own.conn))
        own.rollback()

        conn = autocommit(own)
        run = own.start(order.options(conn=conn))
        assert own.start_many(send.options(conn=conn), [{"number": 1}, {"number": 2}]) == 2
        hf._engine.subscribers.flush(5)

        assert [event.run_id for event in told] == [run.id]
        assert db.execute("select count(*) from holdfast.steps").fetchone() == (3,)


def test_codecs_of_the_apps_own_change_nothing_of_what_is_stored(dsn: str, db: DB, send: Any) -> None:
    async def start() -> None:
        conn = await asyncpg.connect(**where(dsn))
        await conn.set_type_codec("jsonb", encoder=json.dumps, decoder=json.loads, schema="pg_catalog")
        await conn.set_type_codec("uuid", encoder=str, decoder=str, schema="pg_catalog")
        await send.options(conn=conn).astart(1)
        await send.options(conn=conn).astart_many([{"number": 2}])
        await send.options(conn=conn, due_at=LATER).astart(3)
        await send.options(conn=conn, due_at=LATER).astart_many([{"number": 4}])
        await send.options(conn=conn, delay="1h").astart(5)
        await conn.close()

    asyncio.run(start())

    assert started(db) == [1, 2, 3, 4, 5]
    due = "select (input->>'number')::int from holdfast.steps where due_at > holdfast.clock() order by id"
    assert db.execute(due).fetchall() == [(3,), (4,), (5,)]


def test_limits_reach_the_steps_of_a_bulk_start_over_asyncpg(dsn: str, db: DB, send: Any) -> None:
    names = ["shop:acme", 'a "quoted", b', "back\\slash"]

    async def start() -> None:
        conn = await asyncpg.connect(**where(dsn))
        await send.options(conn=conn, limits=names, weight=2.5).astart_many([{"number": 1}])
        await conn.close()

    asyncio.run(start())

    assert db.execute("select limits, weight::float from holdfast.steps").fetchall() == [(names, 2.5)]


def test_a_closed_asyncpg_connection_started_nothing(dsn: str, db: DB, send: Any) -> None:
    async def start() -> None:
        conn = await asyncpg.connect(**where(dsn))
        await conn.close()
        await send.options(conn=conn).astart(1)

    with pytest.raises(Unreachable):
        asyncio.run(start())


def test_values_that_the_driver_itself_refuses_are_bad_input(dsn: str, db: DB, send: Any) -> None:
    async def start(key: str) -> None:
        conn = await asyncpg.connect(**where(dsn))
        try:
            await send.options(conn=conn, key=key).astart(1)
        finally:
            await conn.close()

    with pytest.raises(BadInput):
        asyncio.run(start("a lone surrogate: \ud800"))


def test_a_broken_connection_is_theirs_to_tell_and_is_not_lent_again(dsn: str, db: DB, send: Any) -> None:
    """The library learns of it, as if a statement of its own had met it."""
    engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(dsn), pool_size=1)
    with Session(engine) as session:
        end(db, session.execute(text("select pg_backend_pid()")).scalar())
        with pytest.raises(psycopg.OperationalError):
            send.options(conn=session).start(1)
        with pytest.raises(PendingRollbackError):
            session.execute(text("select 1"))
        session.rollback()
        send.options(conn=session).start(2)
        session.commit()
    engine.dispose()

    asyncio.run(_broken_async(dsn, db, send))

    set_up_django(dsn, CONN_MAX_AGE=None)
    conn = django_connections["default"]
    for error, block in ((django.db.OperationalError, django.db.transaction.atomic()), (CommitUnknown, nullcontext())):
        with conn.cursor() as cursor:
            end(db, cursor.execute("select pg_backend_pid()").fetchone()[0])
        with pytest.raises(error), block:
            send.options(conn=conn).start(4)
        conn.close_if_unusable_or_obsolete()
    send.options(conn=django.db.connection).start(5)
    conn.close()

    assert started(db) == [2, 3, 5]


async def _broken_async(dsn: str, db: DB, send: Any) -> None:
    for driver, creator in (
        ("asyncpg", lambda: asyncpg.connect(**where(dsn))),
        ("psycopg", lambda: psycopg.AsyncConnection.connect(dsn)),
    ):
        engine = create_async_engine(f"postgresql+{driver}://", async_creator=creator, pool_size=1)
        async with AsyncSession(engine) as session:
            end(db, (await session.execute(text("select pg_backend_pid()"))).scalar())
            with pytest.raises((psycopg.OperationalError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError)):
                await send.options(conn=session).astart(1)
            await session.rollback()
            await send.options(conn=session, key="once").astart(3)
            await session.commit()
        await engine.dispose()


def end(db: DB, backend: Any) -> None:
    assert db.execute("select pg_terminate_backend(%s, 5000)", [backend]).fetchone() == (True,)


def test_django_keeps_its_rules_on_broken_blocks_and_other_threads(dsn: str, db: DB, send: Any) -> None:
    set_up_django(dsn)
    conn = django_connections["default"]
    with django.db.transaction.atomic():
        send.options(conn=conn).start(1)
        send.options(conn=conn, key="k").start(2)
        with pytest.raises(KeyConflict), django.db.transaction.atomic():
            send.options(conn=conn, key="k").start(3)
        send.options(conn=conn).start(3)  # the inner block was a savepoint
    with django.db.transaction.atomic():
        django.db.transaction.set_rollback(True)
        with pytest.raises(django.db.transaction.TransactionManagementError):
            send.options(conn=conn).start(4)
    with ThreadPoolExecutor(1) as elsewhere, pytest.raises(django.db.DatabaseError):
        elsewhere.submit(send.options(conn=conn).start, 5).result()
    conn.close()

    assert started(db) == [1, 2, 3]
