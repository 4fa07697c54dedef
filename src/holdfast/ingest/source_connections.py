"""Connections to the database of a source: a few, shared by the handlers' threads, each read-only."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import Connection, conninfo

from holdfast.env import Env
from holdfast.errors import BadDefinition, Rejected, Unavailable

CONNECTS_IN = 15  # seconds, unless the DSN says otherwise
READ_ONLY = "-c default_transaction_read_only=on"


class SourceConnections:
    """Idle connections to one database, in autocommit: after a statement no transaction is open."""

    def __init__(self, dsn: Env | str) -> None:
        if isinstance(dsn, str) and conninfo.conninfo_to_dict(dsn).get("password"):
            raise BadDefinition(
                "the DSN of a source must not contain a password", where="dsn", next='use Table(Env("SHOP_DSN"), …)'
            )
        self._dsn = dsn
        self._idle: deque[Connection[Any]] = deque()
        weakref.finalize(self, _close_all, self._idle)

    @contextmanager
    def lent(self) -> Iterator[Connection[Any]]:
        """Lend an idle connection, or a new one; one that failed is closed."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = self._connect()
        try:
            yield connection
        except BaseException:
            connection.close()
            _close_all(self._idle)  # after a restart of the server each of them would fail a page
            raise
        self._idle.append(connection)

    def close(self) -> None:
        """Close the idle connections."""
        _close_all(self._idle)

    def _connect(self) -> Connection[Any]:
        dsn = self._dsn.read() if isinstance(self._dsn, Env) else self._dsn
        given = conninfo.conninfo_to_dict(dsn)
        options = f"{given.get('options') or ''} {READ_ONLY}".strip()
        waits = given.get("connect_timeout") or CONNECTS_IN
        try:
            return psycopg.connect(conninfo.make_conninfo(dsn, options=options, connect_timeout=waits), autocommit=True)
        except psycopg.OperationalError as error:
            if "authentication failed" in str(error) or "no password supplied" in str(error):
                raise Rejected("the source database refused the login", where="dsn") from None
            raise Unavailable("the source database cannot be reached") from None


def _close_all(connections: deque[Connection[Any]]) -> None:
    while connections:
        connections.pop().close()
