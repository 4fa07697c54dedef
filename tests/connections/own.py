"""Connections of every library that `conn` takes, each used through its own API, all by the same few words.

Async ones are driven on a loop of their own, so that one test tells one story for all of them.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import asyncpg
import django
import psycopg
from django.conf import settings
from django.db import connections as django_connections
from django.db import transaction as django_transaction
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import create_engine, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncSession, create_async_engine
from sqlalchemy.orm import Session, scoped_session, sessionmaker
from sqlalchemy.pool import NullPool

Body = Callable[[], Any]


class Own:
    """A connection in the caller's hands: `conn` is what is passed to `options`."""

    is_async = False

    def __init__(self, dsn: str, stack: ExitStack) -> None:
        self.dsn = dsn
        self.stack = stack
        self.runner = stack.enter_context(asyncio.Runner())
        self.conn: Any = self.do(self.opened())

    def do(self, result: Any) -> Any:
        """Await what has to be awaited; a handle, which can be, has not."""
        return self.runner.run(result) if inspect.iscoroutine(result) else result

    def start(self, task: Any, *args: Any, **fields: Any) -> Any:
        """Start a task or a flow, on the connection, by the form that fits it."""
        return self.do((task.astart if self.is_async else task.start)(*args, **fields))

    def start_many(self, task: Any, arguments: Any) -> Any:
        return self.do((task.astart_many if self.is_async else task.start_many)(arguments))

    def opened(self) -> Any:
        """Open it."""
        raise NotImplementedError

    def begin(self) -> None:
        """Begin a transaction, where the library does not with the first statement."""

    def execute(self, statement: str) -> Any:
        """Run a statement, and give its first row's first column."""
        raise NotImplementedError

    def commit(self) -> None:
        self.do(self.conn.commit())

    def rollback(self) -> None:
        self.do(self.conn.rollback())

    def undone(self, body: Body) -> None:
        """Do something inside a savepoint, and undo it."""
        self.execute("savepoint mine")
        body()
        self.execute("rollback to savepoint mine")


class Psycopg(Own):
    def opened(self) -> Any:
        return self.stack.enter_context(psycopg.connect(self.dsn))

    def execute(self, statement: str) -> Any:
        cursor = self.conn.execute(statement)
        return cursor.fetchone()[0] if cursor.description else None

    def undone(self, body: Body) -> None:
        with self.conn.transaction(force_rollback=True):
            body()


class AsyncPsycopg(Own):
    is_async = True

    async def opened(self) -> Any:
        conn = await psycopg.AsyncConnection.connect(self.dsn)
        self.stack.callback(lambda: self.do(conn.close()))
        return conn

    def execute(self, statement: str) -> Any:
        cursor = self.do(self.conn.execute(statement))
        return self.do(cursor.fetchone())[0] if cursor.description else None


class Asyncpg(Own):
    is_async = True
    transaction: Any

    async def opened(self) -> Any:
        conn = await asyncpg.connect(**where(self.dsn))
        self.stack.callback(lambda: self.do(conn.close()))
        return conn

    def begin(self) -> None:
        self.transaction = self.conn.transaction()
        self.do(self.transaction.start())

    def execute(self, statement: str) -> Any:
        return self.do(self.conn.fetchval(statement))

    def commit(self) -> None:
        self.do(self.transaction.commit())

    def rollback(self) -> None:
        self.do(self.transaction.rollback())

    def undone(self, body: Body) -> None:
        inner = self.conn.transaction()
        self.do(inner.start())
        try:
            body()
        finally:
            self.do(inner.rollback())


class AsyncpgPool(Asyncpg):
    async def opened(self) -> Any:
        pool = await asyncpg.create_pool(**where(self.dsn), min_size=1, max_size=1)
        self.stack.callback(lambda: self.do(pool.close()))
        conn = await pool.acquire()
        self.stack.callback(lambda: self.do(pool.release(conn)))
        return conn


class AsyncpgByHand(Asyncpg):
    """In a transaction that asyncpg was not told of."""

    def begin(self) -> None:
        self.do(self.conn.execute("begin"))

    def commit(self) -> None:
        self.do(self.conn.execute("commit"))

    def rollback(self) -> None:
        self.do(self.conn.execute("rollback"))

    def undone(self, body: Body) -> None:
        Own.undone(self, body)


class SqlalchemySession(Own):
    def opened(self) -> Any:
        engine = create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(self.dsn))
        self.stack.callback(engine.dispose)
        return self.stack.enter_context(self.made(engine))

    def made(self, engine: Any) -> Any:
        return Session(engine)

    def execute(self, statement: str) -> Any:
        result = self.conn.execute(text(statement))
        return result.scalar() if result.returns_rows else None

    def undone(self, body: Body) -> None:
        inner = self.conn.begin_nested()
        try:
            body()
        finally:
            inner.rollback()


class SqlalchemyConnection(SqlalchemySession):
    def made(self, engine: Any) -> Any:
        return engine.connect()


class SqlalchemyScoped(SqlalchemySession):
    @contextmanager
    def made(self, engine: Any) -> Iterator[Any]:
        session = scoped_session(sessionmaker(engine))
        yield session
        session.remove()


class AsyncSqlalchemySession(Own):
    is_async = True
    driver = "psycopg"
    sort: Any = AsyncSession

    async def opened(self) -> Any:
        def creator() -> Any:
            if self.driver == "asyncpg":
                return asyncpg.connect(**where(self.dsn))
            return psycopg.AsyncConnection.connect(self.dsn)

        engine = create_async_engine(f"postgresql+{self.driver}://", async_creator=creator, poolclass=NullPool)
        self.stack.callback(lambda: self.do(engine.dispose()))
        conn = AsyncSession(engine) if self.sort is AsyncSession else await engine.connect()
        self.stack.callback(lambda: self.do(conn.close()))
        return conn

    def execute(self, statement: str) -> Any:
        result = self.do(self.conn.execute(text(statement)))
        return result.scalar() if result.returns_rows else None

    def undone(self, body: Body) -> None:
        inner = self.conn.begin_nested()
        self.do(inner.start())
        try:
            body()
        finally:
            self.do(inner.rollback())


class AsyncSqlalchemySessionOverAsyncpg(AsyncSqlalchemySession):
    driver = "asyncpg"


class AsyncSqlalchemyConnection(AsyncSqlalchemySession):
    sort = AsyncConnection


class AsyncSqlalchemyConnectionOverAsyncpg(AsyncSqlalchemyConnection):
    driver = "asyncpg"


class Django(Own):
    atomic: Any

    def opened(self) -> Any:
        set_up_django(self.dsn)
        self.stack.callback(django_connections["default"].close)
        return django_connections["default"]

    def begin(self) -> None:
        self.atomic = django_transaction.atomic()
        self.atomic.__enter__()

    def execute(self, statement: str) -> Any:
        with self.conn.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchone()[0] if cursor.description else None

    def commit(self) -> None:
        self.atomic.__exit__(None, None, None)

    def rollback(self) -> None:
        django_transaction.set_rollback(True)
        self.commit()

    def undone(self, body: Body) -> None:
        with django_transaction.atomic():
            try:
                body()
            finally:
                django_transaction.set_rollback(True)


ALL = {
    "psycopg": Psycopg,
    "psycopg, async": AsyncPsycopg,
    "asyncpg": Asyncpg,
    "asyncpg, of a pool": AsyncpgPool,
    "asyncpg, begun by hand": AsyncpgByHand,
    "SQLAlchemy, session": SqlalchemySession,
    "SQLAlchemy, scoped session": SqlalchemyScoped,
    "SQLAlchemy, connection": SqlalchemyConnection,
    "SQLAlchemy, async session, psycopg": AsyncSqlalchemySession,
    "SQLAlchemy, async session, asyncpg": AsyncSqlalchemySessionOverAsyncpg,
    "SQLAlchemy, async connection, psycopg": AsyncSqlalchemyConnection,
    "SQLAlchemy, async connection, asyncpg": AsyncSqlalchemyConnectionOverAsyncpg,
    "Django": Django,
}


def where(dsn: str) -> dict[str, Any]:
    """Split an address into what asyncpg takes."""
    parts = conninfo_to_dict(dsn)
    names = {"host": "host", "port": "port", "user": "user", "password": "password", "dbname": "database"}
    return {theirs: parts[ours] for ours, theirs in names.items() if parts.get(ours)}


def set_up_django(dsn: str, **more: Any) -> None:
    """Point Django's default database to an address."""
    if not settings.configured:
        settings.configure(DATABASES={}, USE_TZ=True)
        django.setup()
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    parts = {theirs: conninfo_to_dict(dsn).get(ours) or "" for ours, theirs in names.items()}
    database = {"ENGINE": "django.db.backends.postgresql", **parts, **more}
    if hasattr(django_connections._connections, "default"):
        del django_connections["default"]
    django_connections.settings = django_connections.configure_settings({"default": database})
