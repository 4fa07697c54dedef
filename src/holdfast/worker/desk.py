"""The connections that contexts write through: a small pool, apart from those that claim, settle and renew."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from psycopg import Connection
from psycopg_pool import ConnectionPool

from holdfast.kernel import db, pooled, schema
from holdfast.kernel.calls import Call
from holdfast.kernel.spares import Spares

SIZE = 4
WAIT = 10.0


class PoolDesk:
    """A pool that is opened with its first use, and used from any thread."""

    def __init__(self, dsn: str, worker: str, lease: timedelta | None = None) -> None:
        self.dsn = dsn
        self.worker = worker
        self.lease = lease
        self.spares = Spares(dsn)
        self._pool: ConnectionPool[Connection[Any]] | None = None
        self._lock = threading.Lock()

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call."""
        with self._opened().connection(timeout=WAIT) as connection:
            return db.run(connection, call)

    def close(self) -> None:
        """Close what was opened."""
        self.spares.close()
        with self._lock:
            if self._pool is not None:
                self._pool.close(timeout=1)
                self._pool = None

    def _opened(self) -> ConnectionPool[Connection[Any]]:
        with self._lock:
            if self._pool is None:
                self._pool = ConnectionPool(
                    self.dsn,
                    min_size=0,
                    max_size=SIZE,
                    kwargs={"autocommit": True, **schema.connects()},
                    check=pooled.check,
                    open=True,
                )
            return self._pool
