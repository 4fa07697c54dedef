"""The schema that this process works in: `holdfast`, unless the process is part of a self-test.

Every statement is written for `holdfast` and sent unchanged. A self-test installs the same kernel a second time, in its
own schema, and each face in one beside it. Only there do connections use a cursor that replaces the schema names in
each statement.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from psycopg import AsyncCursor, Cursor, sql

from holdfast import faces
from holdfast.errors import BadInput

PLAIN = "holdfast"
OF_A_SELF_TEST = re.compile(r"holdfast_selftest_[0-9a-f]{8}")
VARIABLE = "HOLDFAST_SELF_TEST_SCHEMA"
_KERNEL = re.compile(rb"\bholdfast\b")
_NAMED_SCHEMAS = re.compile(rb"\bschema (?:if not exists )?\w+(?:, \w+)*")


def _checked(name: str) -> str:
    """Return the name, which is put into statements unquoted; raise BadInput if no self-test could have chosen it."""
    if not OF_A_SELF_TEST.fullmatch(name):
        raise BadInput(
            f"{VARIABLE} must be a name that a self-test sets for its workers, got {name!r}",
            where=VARIABLE,
            next="unset it",
        )
    return name


_renamed_to: list[str] = []  # the last one counts


def name() -> str:
    """Return the schema's name, which hints and connections also use."""
    if _renamed_to:
        return _renamed_to[-1]
    return _checked(os.environ[VARIABLE]) if VARIABLE in os.environ else PLAIN


@contextmanager
def renamed(to: str) -> Iterator[None]:
    """Let connections that are opened inside the block use the schema of a self-test."""
    _renamed_to.append(_checked(to))
    try:
        yield
    finally:
        _renamed_to.pop()


def connects() -> dict[str, Any]:
    """Return the arguments for opening a connection."""
    return {"application_name": name(), **({} if name() == PLAIN else {"cursor_factory": Renaming})}


def aconnects() -> dict[str, Any]:
    """Return the arguments for opening an async connection."""
    return {"application_name": name(), **({} if name() == PLAIN else {"cursor_factory": AsyncRenaming})}


def reworded(query: Any, connection: Any = None) -> bytes:
    """Replace the schema names in a statement by the current ones."""
    if isinstance(query, sql.Composable):
        query = query.as_bytes(connection)
    return _reworded(query.encode() if isinstance(query, str) else query, name().encode())


@lru_cache(maxsize=1000)
def _reworded(statement: bytes, to: bytes) -> bytes:
    names = "|".join(faces.names()).encode()
    moved = to + rb"_\g<1>"
    statement = _NAMED_SCHEMAS.sub(lambda named: re.sub(rb"\b(" + names + rb")\b", moved, named[0]), statement)
    # The faces' objects are renamed too. After a quote such a word is the name of a machine ('work.task'), which stays.
    return _KERNEL.sub(to, re.sub(rb"(?<!['\"\w.])(" + names + rb")(?=\.[a-z_])", moved, statement))


class Renaming(Cursor[Any]):
    """Sends each statement with the renamed schemas."""

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Execute a statement with the renamed schemas."""
        return super().execute(reworded(query, self.connection), params, **options)

    def copy(self, statement: Any, params: Any = None, **options: Any) -> Any:
        """Copy, renamed."""
        return super().copy(reworded(statement, self.connection), params, **options)


class AsyncRenaming(AsyncCursor[Any]):
    """The async twin of `Renaming`."""

    async def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Execute a statement with the renamed schemas."""
        return await super().execute(reworded(query, self.connection), params, **options)
