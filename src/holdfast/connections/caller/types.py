"""The types of `conn`, as protocols: type checkers accept each library's objects without the library installed."""

from __future__ import annotations

from collections.abc import AsyncIterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

from psycopg import AsyncConnection, Connection


class SQLAlchemyConnection(Protocol):
    """SQLAlchemy's Session, Connection, AsyncSession or AsyncConnection, or a scoped session."""

    def begin_nested(self) -> Any: ...


class DjangoConnection(Protocol):
    """Django's connection: `django.db.connection`, or one of `django.db.connections`."""

    @property
    def in_atomic_block(self) -> bool: ...


class AsyncpgConnection(Protocol):
    """asyncpg's Connection, or the one that its pool lends."""

    def is_in_transaction(self) -> bool: ...


class ConnectionProxy(Protocol):
    """What stands for a connection: asyncpg's pool lends one, and `django.db.connection` is one."""

    def __getattr__(self, name: str, /) -> Any: ...


class AsyncpgDriver(AsyncpgConnection, Protocol):
    """What we use of asyncpg's connection."""

    def is_closed(self) -> bool: ...

    async def fetch(self, query: str, *args: Any) -> Sequence[Sequence[Any]]: ...

    async def execute(self, query: str) -> str: ...

    def transaction(self) -> AbstractAsyncContextManager[Any]: ...

    async def copy_to_table(
        self, table_name: str, *, source: AsyncIterable[bytes], columns: Sequence[str], schema_name: str
    ) -> str: ...


CallerConnection: TypeAlias = (
    Connection[Any]
    | AsyncConnection[Any]
    | AsyncpgConnection
    | SQLAlchemyConnection
    | DjangoConnection
    | ConnectionProxy
)
AsyncDriver: TypeAlias = AsyncConnection[Any] | AsyncpgDriver  # what an async connection of the caller's comes down to
