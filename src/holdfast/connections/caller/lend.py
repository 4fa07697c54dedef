"""Unwraps the caller's connection to its driver's, inside the same transaction, and refuses what cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from psycopg import Connection
from psycopg.pq import TransactionStatus

from holdfast.connections.caller import django, sqlalchemy
from holdfast.connections.caller.types import AsyncDriver
from holdfast.errors import BadInput

# By package and class, so that nothing of a library is imported to recognise its objects.
_SYNC: dict[str, Callable[[Any], AbstractContextManager[Connection[Any]]]] = {
    "psycopg.Connection": nullcontext,
    "sqlalchemy.Connection": sqlalchemy.lend,
    "sqlalchemy.Session": lambda session: sqlalchemy.lend(session.connection()),
    "sqlalchemy.scoped_session": lambda session: sqlalchemy.lend(session.connection()),
    "django.BaseDatabaseWrapper": django.lend,
    "django.ConnectionProxy": django.lend,
}
_ASYNC: dict[str, Callable[[Any], AbstractAsyncContextManager[AsyncDriver]]] = {
    "psycopg.AsyncConnection": nullcontext,
    "asyncpg.Connection": nullcontext,
    "asyncpg.PoolConnectionProxy": nullcontext,
    "sqlalchemy.AsyncConnection": sqlalchemy.alend,
    "sqlalchemy.AsyncSession": sqlalchemy.alend_session,
    "sqlalchemy.async_scoped_session": sqlalchemy.alend_session,
}


def check_conn(conn: Any) -> None:
    """Refuse what is not a connection; None means one of the app's."""
    if conn is not None and _kind(conn) is None:
        raise BadInput(
            f"conn must be a connection or a session, got {type(conn).__module__}.{type(conn).__qualname__}",
            where="conn",
            next="pass the psycopg, asyncpg, SQLAlchemy or Django connection of your transaction",
        )


def lend(conn: Any) -> AbstractContextManager[Connection[Any]]:
    """Lend the driver's connection to a sync call."""
    check_conn(conn)
    kind = _kind(conn) or ""
    if kind not in _SYNC:
        raise BadInput(
            f"conn is async, and the call is not: got {kind}",
            where="conn",
            next="use astart or astart_many, or pass a sync connection",
        )
    return _SYNC[kind](conn)


def alend(conn: Any) -> AbstractAsyncContextManager[AsyncDriver]:
    """Lend the driver's connection to an async call."""
    check_conn(conn)
    kind = _kind(conn) or ""
    if kind not in _ASYNC:
        raise BadInput(
            f"conn is not async, and the call is: got {kind}",
            where="conn",
            next="use start or start_many, or pass an async connection",
        )
    return _ASYNC[kind](conn)


def is_committed(conn: Any) -> bool:
    """Whether a start that was made on the connection is stored already: an open transaction may be rolled back."""
    match (_kind(conn) or "").partition(".")[0]:
        case "sqlalchemy":
            return is_committed(sqlalchemy.driver_of(conn))
        case "django":
            return is_committed(conn.connection)
        case "asyncpg":
            return not conn.is_in_transaction()
        case _:
            status: TransactionStatus = conn.info.transaction_status
            return status == TransactionStatus.IDLE


def _kind(conn: object) -> str | None:
    """Name the library's class that an object is of, or inherits from."""
    return _named(type(conn).__mro__)


@cache
def _named(classes: tuple[type, ...]) -> str | None:
    names = (f"{each.__module__.partition('.')[0]}.{each.__name__}" for each in classes)
    return next((name for name in names if name in _SYNC or name in _ASYNC), None)
