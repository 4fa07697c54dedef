"""How what users hold (a task, a flow, a handle) reaches the database, without knowing the app that wires it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any, Protocol

from psycopg import AsyncConnection, Connection

from holdfast.kernel.call import Call


class Door(Protocol):
    """How tasks and handles reach the database: on the app's own connections, or on one that they are given."""

    def make(self, call: Call[Any], conn: Connection[Any] | None = None) -> list[Any]:
        """Make a call."""

    async def amake(self, call: Call[Any], conn: AsyncConnection[Any] | None = None) -> list[Any]:
        """Make a call."""

    def connection(self, conn: Connection[Any] | None = None) -> AbstractContextManager[Connection[Any]]:
        """Lend a connection for several calls."""
