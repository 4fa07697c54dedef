"""Hints that something is due, as statements: one connection listens on a channel, another notifies it."""

from __future__ import annotations

from psycopg import sql


def listen(channel: str) -> sql.Composed:
    """Listen on a channel."""
    return sql.SQL("listen {}").format(sql.Identifier(channel))


def notify(channel: str) -> sql.Composed:
    """Send an empty hint on a channel."""
    return sql.SQL("select pg_catalog.pg_notify({}, '')").format(sql.Literal(channel))
