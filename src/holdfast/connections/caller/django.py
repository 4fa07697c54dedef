"""Django: its connection holds one of psycopg's, which the call is made on by Django's own rules."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from psycopg import Connection

from holdfast.errors import BadInput, DatabaseError


@contextmanager
def lend(conn: Any) -> Iterator[Connection[Any]]:
    """Lend psycopg's connection; what the driver raises becomes Django's, as for a query."""
    conn.validate_thread_sharing()
    conn.validate_no_broken_transaction()
    conn.ensure_connection()
    driver = conn.connection
    if not isinstance(driver, Connection):
        raise BadInput(
            f"conn is Django's over {type(driver).__module__.partition('.')[0]}",
            where="conn",
            next="use the backend django.db.backends.postgresql with psycopg 3",
        )
    try:
        with conn.wrap_database_errors:
            yield driver
    except DatabaseError:
        conn.errors_occurred = True  # Django then looks whether it still works before the next request
        raise
