"""The connections that contexts write through: a small pool, apart from those that claim, settle and renew."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

from holdfast.connections.deadline import within
from holdfast.connections.handler_tx import Spares
from holdfast.kernel import db, pooled
from holdfast.kernel.call import Call

SIZE = 4


class PoolDesk:
    """A pool that is opened with its first use, and used from any thread; `deadline` is how long an answer may take."""

    def __init__(self, dsn: str, worker: str, lease: timedelta | None, deadline: timedelta) -> None:
        self.dsn = dsn
        self.worker = worker
        self.lease = lease
        self.spares = Spares(dsn, deadline)
        self._deadline = deadline
        self._pool: pooled.Pool | None = None
        self._lock = threading.Lock()

    def make(self, call: Call[Any]) -> list[Any]:
        """Make a call."""
        with pooled.lent(self._opened(), self._deadline) as connection, within(connection, self._deadline):
            return db.run(connection, call)

    def close(self) -> None:
        """Close what was opened."""
        self.spares.close()
        with self._lock:
            if self._pool is not None:
                self._pool.close(timeout=1)
                self._pool = None

    def _opened(self) -> pooled.Pool:
        with self._lock:
            if self._pool is None:
                self._pool = pooled.pool(self.dsn, SIZE)
            return self._pool
