"""Brings a database to the schema of this code: forward only, under load, safe when two run at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import Connection

from holdfast import errors
from holdfast.connections.deadline import connection_to
from holdfast.failpoints import failpoint
from holdfast.kernel import sources
from holdfast.kernel.sources import Migration

OLDEST = 150000
LOCK = "select pg_advisory_xact_lock(hashtextextended('holdfast.migrate', 0))"
# A lock that is not had soon is not waited for: behind a waiting ACCESS EXCLUSIVE every reader would queue.
AS_OWNER = "set local role hf_owner; set local lock_timeout = '1s'; set local check_function_bodies = off"
TRIES = 30
PARTITIONS = "select holdfast.make_partitions()"
CODE = "functions, views and machines"

FOREIGN = """
select n.nspname, pg_catalog.pg_get_userbyid(n.nspowner),
       array(select o.name
               from (select c.relname from pg_catalog.pg_class c where c.relnamespace = n.oid
                      union
                     select p.proname from pg_catalog.pg_proc p where p.pronamespace = n.oid) o (name)
              where n.nspname || '.' || o.name = any (%(names)s)
              order by 1)
  from pg_catalog.pg_namespace n
 where n.nspname = any (%(schemas)s)
   and n.nspowner is distinct from pg_catalog.to_regrole('hf_owner')
 order by array_position(%(schemas)s, n.nspname::text)
"""

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SchemaStatus:
    """Where a database stands beside this code."""

    server_version: str
    schema_version: int | None
    code_version: int
    pending: list[str]


def run(dsn: str, *, progress: Progress | None = None) -> list[str]:
    """Apply what is missing, each part in a transaction of its own, and give the names of what was applied."""
    say = progress or (lambda _: None)
    with connection_to(dsn) as connection:
        _preflight(connection)
        make_roles(connection)
        applied = [m.name for m in sources.migrations() if _apply(connection, m, say)]
        if _install(connection, say):
            applied.append(CODE)
        return applied


def status(dsn: str) -> SchemaStatus:
    """Say how far a database is migrated; changes nothing."""
    with connection_to(dsn) as connection:
        _check_server(connection)
        done = _applied(connection)
        pending = [m.name for m in sources.migrations() if m.number not in done]
        if not pending and _outdated(connection):
            pending.append(CODE)
        version = connection.info.parameter_status("server_version") or "unknown"
        return SchemaStatus(version, max(done, default=None), code_version(), pending)


def check(connection: Connection[Any]) -> None:
    """Refuse a database that this code cannot work on: not migrated, or by a newer release."""
    _check_server(connection)
    done = _applied(connection)
    _check_not_newer(done)
    if set(done) < {m.number for m in sources.migrations()}:
        raise errors.NotMigrated("the database is not migrated to this release", next="run `holdfast db migrate`")


def script(*, after: int = 0) -> str:
    """Write the whole of it as one SQL script for psql; `after` leaves out the migrations that are applied already."""
    parts = [r"\set ON_ERROR_STOP on", "begin;", f"{LOCK};", sources.roles(), f"{AS_OWNER};"]
    for migration in sources.migrations():
        if migration.number > after:
            parts += [migration.text, _record(migration)]
    for part, texts in sources.parts().items():
        parts += [*texts, _record_digest(part, sources.digest(texts))]
    return "\n".join([*parts, f"{PARTITIONS};", "commit;", ""])


def code_version() -> int:
    """Give the number of the newest migration."""
    return sources.migrations()[-1].number


def _preflight(connection: Connection[Any]) -> None:
    """Refuse a database in which somebody else has what we are about to create."""
    _check_server(connection)
    rows = connection.execute(FOREIGN, {"schemas": sources.schemas(), "names": sources.made()}).fetchall()
    for schema, owner, clashes in rows:
        objects = f", and in it objects named as ours: {', '.join(clashes)}" if clashes else ""
        raise errors.ForeignSchema(
            f"Holdfast creates the schema {schema}, but the database has one that belongs to {owner}{objects}",
            where=schema,
            next="rename it, or give Holdfast a database of its own",
        )
    _check_not_newer(_applied(connection))


def _check_server(connection: Connection[Any]) -> None:
    if connection.info.server_version < OLDEST:
        version = connection.info.parameter_status("server_version")
        raise errors.ServerTooOld(
            f"the server is PostgreSQL {version}", next="Holdfast needs 15 or later: upgrade the server"
        )


def _check_not_newer(done: list[int]) -> None:
    if max(done, default=0) > code_version():
        raise errors.SchemaTooNew(
            f"the database is at schema {max(done)}, this code knows {code_version()}",
            next="upgrade the holdfast-pg package",
        )


def make_roles(connection: Connection[Any]) -> None:
    """Make the roles that are missing, and let the login and the database work with them."""
    try:
        with connection.transaction():
            connection.execute(LOCK)
            connection.execute(sources.roles())
    except psycopg.errors.InsufficientPrivilege as error:
        raise errors.PermissionMissing(
            f"the login may not make Holdfast's roles: {error.diag.message_primary}",
            next=(
                "use a login with CREATEROLE that "
                "owns the database, or have an administrator run the output of `holdfast db migrate --sql`"
            ),
        ) from error


def _apply(connection: Connection[Any], migration: Migration, say: Progress) -> bool:
    def attempt() -> bool:
        connection.execute(LOCK)
        if migration.number in _applied(connection):
            return False
        say(f"applying {migration.name}")
        connection.execute(AS_OWNER)
        connection.execute(migration.text)
        connection.execute(_record(migration))
        failpoint(f"migrate_{migration.number}")
        return True

    return _in_transaction(connection, attempt)


def _install(connection: Connection[Any], say: Progress) -> bool:
    """Install what changed, all of it in one transaction: callers find the old functions, then the new ones."""

    def attempt() -> bool:
        connection.execute(LOCK)
        parts = _outdated(connection)
        connection.execute(AS_OWNER)
        if parts:
            say(f"installing {CODE}")
        for part, texts in parts.items():
            for text in texts:
                connection.execute(text)
            connection.execute(_record_digest(part, sources.digest(texts)))
        connection.execute(PARTITIONS)
        return bool(parts)

    return _in_transaction(connection, attempt)


def _outdated(connection: Connection[Any]) -> dict[str, list[str]]:
    """Find the parts of the code that the database has otherwise; after the kernel all faces are made anew."""
    installed = _installed(connection)
    parts = sources.parts()
    changed = {part: texts for part, texts in parts.items() if installed.get(part) != sources.digest(texts)}
    return parts if sources.KERNEL in changed else changed


def _in_transaction(connection: Connection[Any], attempt: Callable[[], bool]) -> bool:
    """Try until the locks are had; between tries the others go on."""
    for left in reversed(range(TRIES)):
        try:
            with connection.transaction():
                return attempt()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if left == 0:
                raise errors.DatabaseError(
                    "a lock on Holdfast's tables was not to be had", next="end long transactions and migrate again"
                ) from error
            time.sleep(0.1)
    raise AssertionError("not reached")


def _applied(connection: Connection[Any]) -> list[int]:
    if not _is_there(connection, "migrations"):
        return []
    try:
        return [number for (number,) in connection.execute("select number from holdfast.migrations order by number")]
    except psycopg.errors.InsufficientPrivilege as error:
        raise errors.PermissionMissing(
            f"the login may not read Holdfast's tables: {error.diag.message_primary}",
            next="grant it one of the hf_ roles",
        ) from error


def _installed(connection: Connection[Any]) -> dict[str, str]:
    if not _is_there(connection, "installed"):
        return {}
    return dict(connection.execute("select part, digest from holdfast.installed").fetchall())


def _is_there(connection: Connection[Any], table: str) -> bool:
    # Not to_regclass: it may answer from before the wait for the lock, out of the session's cache.
    found = connection.execute(
        "select from pg_catalog.pg_tables t where t.schemaname = 'holdfast' and t.tablename = %s", [table]
    )
    return found.fetchone() is not None


def _record(migration: Migration) -> str:
    return f"insert into holdfast.migrations (number, name) values ({migration.number}, '{migration.name}');"


def _record_digest(part: str, digest: str) -> str:
    return (
        f"insert into holdfast.installed (part, digest) values ('{part}', '{digest}') "
        "on conflict (part) do update set digest = excluded.digest, at = excluded.at;"
    )
