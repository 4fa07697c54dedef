"""A handler's own transaction, which commits together with the completion of its step, or not at all."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any

from psycopg import AsyncConnection, Connection

from holdfast.connections.deadline import AsyncDeadlineConnection, DeadlineConnection, within
from holdfast.connections.handler_tx import TransactionConnections
from holdfast.errors import HoldfastError, TooLarge
from holdfast.failpoints import failpoint
from holdfast.kernel import calls, db
from holdfast.models import Continue, SettledStep, Settlement


class NotOpened(HoldfastError):
    """ctx.transaction() was called and never entered."""


class ResultTooLarge(TooLarge):
    """The handler's result cannot be stored, so its transaction is rolled back; a retry would fail again."""


class Transaction:
    """Used with `with` in a plain handler and `async with` in an async one. Leaving the block keeps it open."""

    def __init__(self, connections: TransactionConnections, name: str = "ctx.transaction()") -> None:
        self._name = name
        self.is_broken = False  # its connection was lost before it was abandoned
        self._connections = connections
        self._sync: DeadlineConnection | None = None
        self._async: AsyncDeadlineConnection | None = None

    def __enter__(self) -> Connection[Any]:
        if self._sync is None:
            self._sync = self._connections.take()
        return self._sync

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Continue):
            self.abandon()

    async def __aenter__(self) -> AsyncConnection[Any]:
        if self._async is None:
            self._async = await self._connections.atake()
        return self._async

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None and not isinstance(error, Continue):
            await self.aabandon()

    def settle(self, settlement: Settlement) -> SettledStep:
        """Settle the step in the same transaction, and commit; a lost lease rolls everything back."""
        with _result_checked():
            return self.settle_all([settlement], must_progress=True)[0]

    async def asettle(self, settlement: Settlement) -> SettledStep:
        """The async twin of `settle`."""
        with _result_checked():
            return (await self.asettle_all([settlement], must_progress=True))[0]

    def settle_all(self, settlements: Sequence[Settlement], *, must_progress: bool = False) -> list[SettledStep]:
        """Settle several steps in the same transaction, and commit; one lost lease rolls everything back."""
        if self._sync is None:
            raise NotOpened(f"{self._name} was not entered", next=f"write `with {self._name} as tx:`")
        try:
            with _answered(self._sync, self._connections.deadline, self._name):
                failpoint("before_commit")
                call = calls.settle_whole(settlements, must_progress=must_progress)
                settled = db.run_and_commit(self._sync, call, self._connections.deadline)
                failpoint("after_commit")
            used, self._sync = self._sync, None
            self._connections.give(used)
        finally:
            self.abandon()
        return settled

    async def asettle_all(self, settlements: Sequence[Settlement], *, must_progress: bool = False) -> list[SettledStep]:
        """The async twin of `settle_all`."""
        if self._async is None:
            raise NotOpened(f"{self._name} was not entered", next=f"write `async with {self._name} as tx:`")
        try:
            with _answered(self._async, self._connections.deadline, self._name):
                failpoint("before_commit")
                call = calls.settle_whole(settlements, must_progress=must_progress)
                settled = await db.arun_and_commit(self._async, call, self._connections.deadline)
                failpoint("after_commit")
            used, self._async = self._async, None
            await self._connections.agive(used)
        finally:
            await self.aabandon()
        return settled

    @property
    def is_open(self) -> bool:
        """Return whether there is something to commit."""
        return self._sync is not None or self._async is not None

    def abandon(self) -> None:
        """Close the connection, which rolls back."""
        if self._sync is not None:
            self.is_broken = self._sync.closed
            self._sync.close()
            self._sync = None

    async def aabandon(self) -> None:
        """The async twin of `abandon`."""
        if self._async is not None:
            self.is_broken = self._async.closed
            await self._async.close()
            self._async = None

    def cut(self) -> None:
        """Close an async connection whose loop is gone, which rolls back."""
        if self._async is not None:
            self._async.pgconn.finish()


@contextmanager
def _answered(connection: Connection[Any] | AsyncConnection[Any], deadline: timedelta, name: str) -> Iterator[None]:
    """Distinguish a broken connection, which is not the handler's fault, from a database that rejected."""
    try:
        with within(connection, deadline):
            yield
    except db.BREAKS as error:
        if not db.is_lost(connection, error):
            raise
        raise db.unknown(error, f"the commit of {name}", "the step's lease decides whether it is repeated") from error


@contextmanager
def _result_checked() -> Iterator[None]:
    """Name what was too large: the handler's result, so that it is not retried."""
    try:
        yield
    except TooLarge as error:
        raise ResultTooLarge(error.what, next=error.next) from error
