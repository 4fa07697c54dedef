"""Opens connections whose waits can have a deadline: a proxy may keep a dead one open, so that no answer ever comes."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any, LiteralString, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast import errors, masking
from holdfast.config import Config, check_dsn
from holdfast.errors import Unreachable
from holdfast.kernel import db, self_test_schema

R = TypeVar("R")
CONNECT_WITHIN = 10  # seconds
PREPARE_AFTER = 5  # uses of a statement on one connection, psycopg's default
FAREWELL = 1.0  # seconds for cancelling the statement on the server
open_connections: WeakSet[Connection[Any] | AsyncConnection[Any]] = WeakSet()  # forked processes must not share them

_REFUSED_LOGIN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|not permitted to log in|"
    r"role \".*\" does not exist"
)
_NO_DATABASE = re.compile(r"database \".*\" does not exist")
_NO_WRITER = re.compile(r"session is read-only|server is in hot standby mode")  # none of several hosts is writable
_FULL = re.compile(
    r"too many (clients|connections)|remaining connection slots are reserved|no more connections allowed"
)
_NOT_YET = re.compile(r"the database system is \w+|terminating connection due to administrator command")


class DeadlineConnection(Connection[Any]):
    """A connection that is closed when an answer takes longer than its patience."""

    patience: float | None = None  # seconds

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        open_connections.add(self)
        masking.known.add(self.info.password)

    def begin(self, first: LiteralString = "") -> None:
        """Begin a transaction now, in one message with statements that are executed and committed before it."""
        self.autocommit = True  # else the driver would send a BEGIN of its own first
        self.execute(_beginning(first))
        self._autocommit = False  # what the setter does, but it refuses inside a transaction

    def wait(self, gen: Generator[Any, Any, R], *how: Any, **more: Any) -> R:
        """Wait for the server, as psycopg does for each statement."""
        if self.patience is None:
            return super().wait(gen, *how, **more)
        try:
            return super().wait(_ended(gen, self.patience), *how, **more)
        except Unreachable:
            with suppress(psycopg.Error):  # if only this statement is blocked, it need not continue
                self.cancel_safe(timeout=FAREWELL)
            self.pgconn.finish()  # a late answer would be taken for the next statement's
            raise


class AsyncDeadlineConnection(AsyncConnection[Any]):
    """The async twin of `DeadlineConnection`."""

    patience: float | None = None

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        open_connections.add(self)
        masking.known.add(self.info.password)

    async def begin(self, first: LiteralString = "") -> None:
        """Begin a transaction now, as the sync twin does."""
        await self.set_autocommit(True)
        await self.execute(_beginning(first))
        self._autocommit = False

    async def wait(self, gen: Generator[Any, Any, R], *how: Any, **more: Any) -> R:
        """Wait for the server, as psycopg does for each statement."""
        if self.patience is None:
            return await super().wait(gen, *how, **more)
        try:
            return await super().wait(_ended(gen, self.patience), *how, **more)
        except Unreachable:
            with suppress(psycopg.Error):
                await self.cancel_safe(timeout=FAREWELL)
            self.pgconn.finish()
            raise


def _beginning(first: LiteralString) -> LiteralString:
    """Return a message that executes statements in a transaction of their own, and then begins another."""
    return f"begin; {first}; commit; begin" if first else "begin"


@contextmanager
def within(connection: Connection[Any] | AsyncConnection[Any], patience: timedelta) -> Iterator[None]:
    """Set a deadline for each statement in the block, except on a caller's own connection."""
    if not isinstance(connection, (DeadlineConnection, AsyncDeadlineConnection)):
        yield
        return
    connection.patience = patience.total_seconds()
    try:
        yield
    finally:
        connection.patience = None


def connect(dsn: str, *, timeout: int = CONNECT_WITHIN) -> DeadlineConnection:
    """Open a connection in autocommit; raise an error that says why it failed."""
    with _translated_connect(dsn):
        return DeadlineConnection.connect(dsn, **options(timeout))


async def aconnect(dsn: str, *, timeout: int = CONNECT_WITHIN) -> AsyncDeadlineConnection:
    """Open a connection, as `connect` does."""
    with _translated_connect(dsn):
        return await AsyncDeadlineConnection.connect(dsn, **aoptions(timeout))


@contextmanager
def connection_to(dsn: str) -> Iterator[DeadlineConnection]:
    """Open a connection for the caller's own statements, and translate the driver's errors to ours."""
    with connect(dsn) as connection:
        try:
            yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if db.is_lost(connection, error):
                raise db.gone(error) from error
            raise db.translate(error) or db.gave_up(error) from error


def options(timeout: int = CONNECT_WITHIN) -> dict[str, Any]:
    """Return the arguments with which all our connections are opened."""
    return {
        "autocommit": True,
        "connect_timeout": timeout,
        "prepare_threshold": PREPARE_AFTER if _prepares() else None,
        **self_test_schema.connects(),
    }


def aoptions(timeout: int = CONNECT_WITHIN) -> dict[str, Any]:
    """Return the arguments with which all our async connections are opened."""
    return options(timeout) | self_test_schema.aconnects()


@cache
def _prepares() -> bool:
    return Config().prepare_statements


@contextmanager
def _translated_connect(dsn: str) -> Iterator[None]:
    check_dsn(dsn)
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:  # an interrupted handshake raises either
        raise why_not_connected(str(error).strip()) from error


def why_not_connected(message: str) -> errors.DatabaseError:
    """Find our error for a failed connect by its text, because the driver has no code."""
    if _REFUSED_LOGIN.search(message):
        return errors.LoginRefused(
            f"the server refused the login: {message}",
            where="HOLDFAST_DSN",
            next="check the user and password in HOLDFAST_DSN",
        )
    if _NO_DATABASE.search(message):
        return errors.BadAddress(message, next="create the database, or name another in HOLDFAST_DSN")
    if _NO_WRITER.search(message):
        return errors.ReadOnly(
            f"no server accepts writes: {message}", next="name the primary in HOLDFAST_DSN, or promote a standby"
        )
    if _FULL.search(message):
        return errors.TooManyConnections(
            f"too many connections: {message}",
            next=(
                "close some, put a pooler in front, or raise the limit (max_connections, "
                "or CONNECTION LIMIT of the role or database)"
            ),
        )
    if _NOT_YET.search(message):
        return errors.Unreachable(
            f"the server accepts no connections now: {message}", next="wait until it is up, then retry"
        )
    return errors.Unreachable(
        f"no PostgreSQL answered: {message}", where="HOLDFAST_DSN", next="check HOLDFAST_DSN, and that the server runs"
    )


def _ended(gen: Generator[Any, Any, R], patience: float) -> Generator[Any, Any, R]:
    """Add a deadline to psycopg's wait, which wakes ten times per second."""
    until = time.monotonic() + patience
    try:
        asked = next(gen)
        while True:
            ready = yield asked
            if not ready and time.monotonic() >= until:
                raise Unreachable(
                    f"the database did not answer within {patience:g} s", next="see what blocks it in pg_stat_activity"
                )
            asked = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result
