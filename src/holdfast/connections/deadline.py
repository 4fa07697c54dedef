"""Opens connections whose waits can be given an end: a proxy may keep a dead one open, and no answer ever comes."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import AsyncConnection, Connection

from holdfast import errors
from holdfast.config import Config, check_dsn
from holdfast.errors import Unreachable
from holdfast.kernel import db, self_test_schema

R = TypeVar("R")
CONNECT_WITHIN = 10  # seconds
PREPARE_AFTER = 5  # uses of a statement on one connection, as psycopg has it
FAREWELL = 1.0  # seconds to tell the server that nobody waits any more
open_connections: WeakSet[Connection[Any] | AsyncConnection[Any]] = WeakSet()  # for forks, which must not share them

_REFUSED_LOGIN = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|not permitted to log in|"
    r"role \".*\" does not exist"
)
_NO_DATABASE = re.compile(r"database \".*\" does not exist")
_NO_WRITER = re.compile(r"session is read-only|server is in hot standby mode")  # of several, none that was asked for
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

    def wait(self, gen: Generator[Any, Any, R], *how: Any, **more: Any) -> R:
        """Wait for the server, as psycopg does for each statement."""
        if self.patience is None:
            return super().wait(gen, *how, **more)
        try:
            return super().wait(_ended(gen, self.patience), *how, **more)
        except Unreachable:
            with suppress(psycopg.Error):  # where only this statement is held up, it need not wait on for nobody
                self.cancel_safe(timeout=FAREWELL)
            self.pgconn.finish()  # its answer may still come, and would be taken for another's
            raise


class AsyncDeadlineConnection(AsyncConnection[Any]):
    """The async twin of `DeadlineConnection`."""

    patience: float | None = None

    def __init__(self, *parts: Any, **more: Any) -> None:
        super().__init__(*parts, **more)
        open_connections.add(self)

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


@contextmanager
def within(connection: Connection[Any] | AsyncConnection[Any], patience: timedelta) -> Iterator[None]:
    """Let no statement in the block wait longer for its answer. A caller's own connection is the caller's to bound."""
    if not isinstance(connection, (DeadlineConnection, AsyncDeadlineConnection)):
        yield
        return
    connection.patience = patience.total_seconds()
    try:
        yield
    finally:
        connection.patience = None


def connect(dsn: str, *, timeout: int = CONNECT_WITHIN) -> DeadlineConnection:
    """Open a connection in autocommit; raises an error that tells why there is none."""
    with _translated_connect(dsn):
        return DeadlineConnection.connect(dsn, **options(timeout))


async def aconnect(dsn: str, *, timeout: int = CONNECT_WITHIN) -> AsyncDeadlineConnection:
    """Open a connection, as `connect` does."""
    with _translated_connect(dsn):
        return await AsyncDeadlineConnection.connect(dsn, **aoptions(timeout))


@contextmanager
def connection_to(dsn: str) -> Iterator[DeadlineConnection]:
    """Open a connection for statements of the caller's own, and raise our errors for those of the driver."""
    with connect(dsn) as connection:
        try:
            yield connection
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            if db.is_lost(connection, error):
                raise db.gone(error) from error
            raise db.translate(error) or db.gave_up(error) from error


def options(timeout: int = CONNECT_WITHIN) -> dict[str, Any]:
    """How each connection of ours is opened, wherever that is done."""
    return {
        "autocommit": True,
        "connect_timeout": timeout,
        "prepare_threshold": PREPARE_AFTER if _prepares() else None,
        **self_test_schema.connects(),
    }


def aoptions(timeout: int = CONNECT_WITHIN) -> dict[str, Any]:
    """How each async one is."""
    return options(timeout) | self_test_schema.aconnects()


@cache
def _prepares() -> bool:
    return Config().prepare_statements


@contextmanager
def _translated_connect(dsn: str) -> Iterator[None]:
    check_dsn(dsn)
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:  # a handshake that breaks off is either
        raise why_not_connected(str(error).strip()) from error


def why_not_connected(message: str) -> errors.DatabaseError:
    """Find our error for a failed connect by its text; the driver gives no code."""
    if _REFUSED_LOGIN.search(message):
        return errors.LoginRefused(
            f"the server refused the login: {message}",
            where="HOLDFAST_DSN",
            next="check user and password in HOLDFAST_DSN",
        )
    if _NO_DATABASE.search(message):
        return errors.BadAddress(message, next="create the database, or name another in HOLDFAST_DSN")
    if _NO_WRITER.search(message):
        return errors.ReadOnly(f"no server takes writes: {message}", next="see which is to be the primary, or name it")
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
            f"the server takes no connections now: {message}", next="wait until it is up, and try again"
        )
    return errors.Unreachable(
        f"no PostgreSQL answered: {message}", where="HOLDFAST_DSN", next="check HOLDFAST_DSN, and that the server runs"
    )


def _ended(gen: Generator[Any, Any, R], patience: float) -> Generator[Any, Any, R]:
    """Give what psycopg waits by, which it looks at ten times a second, an end."""
    until = time.monotonic() + patience
    try:
        asked = next(gen)
        while True:
            ready = yield asked
            if not ready and time.monotonic() >= until:
                raise Unreachable(
                    f"the database did not answer within {patience:g} s", next="see what holds it up: pg_stat_activity"
                )
            asked = gen.send(ready)
    except StopIteration as end:
        result: R = end.value
        return result
