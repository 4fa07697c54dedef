"""Real logins: made for a test, in the groups and for the tenants that it names, and dropped after it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

DB = Connection[Any]
Login = Callable[..., DB]
NUMBERS = count(1)


@pytest.fixture
def login(dsn: str, db: DB) -> Iterator[Login]:
    """Give a function that connects as a new login: `login("hf_worker", tenants=["a"])`."""
    with ExitStack() as stack:

        def connect(*groups: str, tenants: list[str] | None = None) -> DB:
            name = f"hf_test_{os.getpid()}_{next(NUMBERS)}"  # roles are the server's: other processes test there too
            role = sql.Identifier(name)
            db.execute(sql.SQL("create role {} login").format(role))
            stack.callback(_drop, db, role)
            for group in groups:
                db.execute(sql.SQL("grant {} to {}").format(sql.Identifier(group), role))
            for tenant in tenants or []:
                db.execute("insert into holdfast.role_tenants values (%s, %s)", [name, tenant])
            return stack.enter_context(psycopg.connect(make_conninfo(dsn, user=name), autocommit=True))

        yield connect


def _drop(db: DB, role: sql.Identifier) -> None:
    db.execute(sql.SQL("drop owned by {} cascade").format(role))
    db.execute(sql.SQL("drop role {}").format(role))
