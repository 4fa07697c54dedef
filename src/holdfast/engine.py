"""What the faces, workers and tests of an app share: its handlers, those who listen to them, and its database."""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from psycopg import Connection

from holdfast import config, embedded
from holdfast.connections.caller.types import AsyncDriver, CallerConnection
from holdfast.connections.pool import PoolExecutor
from holdfast.handlers.registry import Registry
from holdfast.kernel import migrate
from holdfast.kernel.call import Call
from holdfast.notify import Subscribers
from holdfast.worker.hooks import Hooks


class Engine:
    """The inside of an app. A face's API and handles receive it, and declare what they use of it as a protocol."""

    def __init__(self, dsn: str | None) -> None:
        self.registry = Registry()
        self.hooks = Hooks()
        self.subscribers = Subscribers()
        self.executor = PoolExecutor(lambda: self.dsn)
        self._dsn = None if dsn is None else config.to_writer(dsn)
        self._lock = threading.RLock()

    @property
    def dsn(self) -> str:
        """The address of the database; starts the embedded one and migrates it."""
        with self._lock:
            if self._dsn is None:
                settings = config.load()
                self._dsn = embedded.address(settings)
                if settings.dsn is None:
                    migrate.run(self._dsn)
            return self._dsn

    def use(self, dsn: str | None) -> None:
        """Use another database from now on, or that of the settings; close the connections to the last one."""
        self.executor.close()
        with self._lock:
            self._dsn = None if dsn is None else config.to_writer(dsn)

    def make(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call, on a connection of the app or in the caller's transaction."""
        return self.executor.make(call, conn)

    async def amake(self, call: Call[Any], conn: CallerConnection | None = None) -> list[Any]:
        """Make a call, as `make` does."""
        return await self.executor.amake(call, conn)

    def connection(self, conn: CallerConnection | None = None) -> AbstractContextManager[Connection[Any]]:
        """Lend a connection: that of the caller's if it passes one, else one of the app's pool."""
        return self.executor.connection(conn)

    def aconnection(self, conn: CallerConnection | None = None) -> AbstractAsyncContextManager[AsyncDriver]:
        """Lend an async connection, as `connection` does."""
        return self.executor.aconnection(conn)
