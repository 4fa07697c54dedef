"""Drops all that Holdfast keeps in a database and installs it again; tables of others stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import Connection, sql

from holdfast import errors
from holdfast.connections.deadline import connection_to
from holdfast.kernel import migrate, sources

# Schemas of our names that belong to somebody else stay: migrating then says whose they are.
OURS: LiteralString = """
select n.nspname from pg_catalog.pg_namespace n
 where (n.nspname = any (%(schemas)s) and n.nspowner = pg_catalog.to_regrole('hf_owner')) or n.nspname = any (%(also)s)
 order by 1
"""
OF_OTHERS: LiteralString = """
select n.nspname || '.' || c.relname
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = any (%s) and c.relkind in ('r', 'p', 'v', 'm') and c.relowner <> n.nspowner
 order by 1
"""
LOCK_WAIT: LiteralString = "set local lock_timeout = '5s'"


@dataclass(frozen=True)
class Reset:
    """What was dropped, and what was installed after it."""

    database: str
    dropped: list[str]
    applied: list[str]


def database_name(dsn: str) -> str:
    """Ask the server for the name of the database that a DSN leads to."""
    with connection_to(dsn) as connection:
        return connection.info.dbname


def reset(dsn: str, *, also: Sequence[str] = (), progress: migrate.Progress | None = None) -> Reset:
    """Drop our schemas, and those in `also`, with all their rows, and migrate the empty database."""
    with connection_to(dsn) as connection:
        try:
            dropped = _drop(connection, list(also))
        except psycopg.errors.InsufficientPrivilege as error:
            raise errors.PermissionMissing(
                f"the login may not drop Holdfast's schemas: {error.diag.message_primary}",
                next="use a login that is a member of hf_owner",
            ) from error
        except psycopg.errors.LockNotAvailable as error:
            raise errors.WrongState(
                "Holdfast's tables are in use, so nothing was dropped", next="stop the workers and reset it again"
            ) from error
        name = connection.info.dbname
    return Reset(name, dropped, migrate.run(dsn, progress=progress))


def _drop(connection: Connection[Any], also: list[str]) -> list[str]:
    with connection.transaction():
        connection.execute(migrate.LOCK)
        rows = connection.execute(OURS, {"schemas": sources.schemas(), "also": also})
        names = [name for (name,) in rows]
        strangers = [name for (name,) in connection.execute(OF_OTHERS, [names])]
        if strangers:
            raise errors.WrongState(
                f"Holdfast did not make what would be dropped with its schemas: {', '.join(strangers)}",
                where=strangers[0],
                next=f"keep it: alter table {strangers[0]} set schema public; or drop it",
            )
        if names:
            connection.execute(LOCK_WAIT)
            connection.execute(sql.SQL("drop schema {} cascade").format(sql.SQL(", ").join(map(sql.Identifier, names))))
    return names
