"""Migrates a database to this code's schema: forward only, under load, safe when two run at once."""

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
from holdfast.kernel import indexes, sources
from holdfast.kernel.sources import Migration

OLDEST = 150000
LOCK = "select pg_advisory_xact_lock(hashtextextended('holdfast.migrate', 0))"
# Do not wait long for a lock: every reader would queue behind a waiting ACCESS EXCLUSIVE.
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
    """How far a database is migrated, compared with this code."""

    server_version: str
    schema_version: int | None
    code_version: int
    pending: list[str]
    pending_indexes: int = 0  # how many of `pending` are indexes, without which everything works, but more slowly


def run(dsn: str, *, progress: Progress | None = None) -> list[str]:
    """Apply what is missing and return the names of the applied parts.

    Each part is one transaction. The indexes of `indexes.sql` follow, which are built outside of transactions.
    """
    say = progress or (lambda _: None)
    with connection_to(dsn) as connection:
        _preflight(connection)
        make_roles(connection)
        applied = [m.name for m in sources.migrations() if _apply(connection, m, say)]
        if _install(connection, say):
            applied.append(CODE)
        return applied + indexes.build(connection, dsn, say)


def status(dsn: str) -> SchemaStatus:
    """Return how far a database is migrated; change nothing."""
    with connection_to(dsn) as connection:
        _check_server(connection)
        done = _applied(connection)
        pending = [m.name for m in sources.migrations() if m.number not in done]
        if not pending and _outdated(connection):
            pending.append(CODE)
        unbuilt = [] if set(pending) - {CODE} else indexes.pending(connection)  # before that, tables may be missing
        version = connection.info.parameter_status("server_version") or "unknown"
        return SchemaStatus(version, max(done, default=None), code_version(), pending + unbuilt, len(unbuilt))


def check(connection: Connection[Any]) -> None:
    """Raise if this code cannot use the database: it is not migrated, or was migrated by a newer release."""
    _check_server(connection)
    done = _applied(connection)
    _check_not_newer(done)
    if set(done) < {m.number for m in sources.migrations()}:
        raise errors.NotMigrated("the database is not migrated to this release", next="run `holdfast db migrate`")


def script(*, after: int = 0) -> str:
    """Return everything as one SQL script for psql; `after` leaves out the migrations that are already applied."""
    builds = indexes.script()
    locks = [indexes.LOCK_SCRIPT] if builds else []
    parts = [r"\set ON_ERROR_STOP on", *locks, "begin;", f"{LOCK};", sources.roles(), f"{AS_OWNER};"]
    for migration in sources.migrations():
        if migration.number > after:
            parts += [migration.text, _record(migration)]
    for part, texts in sources.parts().items():
        parts += [*texts, _record_digest(part, sources.digest(texts))]
    return "\n".join([*parts, f"{PARTITIONS};", "commit;", *builds, ""])


def code_version() -> int:
    """Return the number of the newest migration."""
    return sources.migrations()[-1].number


def _preflight(connection: Connection[Any]) -> None:
    """Raise ForeignSchema if somebody else owns a schema that we are about to create."""
    _check_server(connection)
    rows = connection.execute(FOREIGN, {"schemas": sources.schemas(), "names": sources.made()}).fetchall()
    for schema, owner, clashes in rows:
        objects = f", with objects that have our names: {', '.join(clashes)}" if clashes else ""
        raise errors.ForeignSchema(
            f"Holdfast creates the schema {schema}, but the database has one that belongs to {owner}{objects}",
            where=schema,
            next="rename that schema, or give Holdfast its own database",
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
    """Create the missing roles, and grant the login and the database what they need."""
    try:
        with connection.transaction():
            connection.execute(LOCK)
            connection.execute(sources.roles())
    except psycopg.errors.InsufficientPrivilege as error:
        raise errors.PermissionMissing(
            f"the login may not create Holdfast's roles: {error.diag.message_primary}",
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
    """Install the changed parts in one transaction, so that callers see either the old functions or the new ones."""

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
    """Return the parts that differ in the database; if the kernel differs, all faces follow."""
    installed = _installed(connection)
    parts = sources.parts()
    changed = {part: texts for part, texts in parts.items() if installed.get(part) != sources.digest(texts)}
    return parts if sources.KERNEL in changed else changed


def _in_transaction(connection: Connection[Any], attempt: Callable[[], bool]) -> bool:
    """Retry until the locks are acquired, and let others continue between the tries."""
    for left in reversed(range(TRIES)):
        try:
            with connection.transaction():
                return attempt()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if left == 0:
                raise errors.DatabaseError(
                    "could not get a lock on Holdfast's tables", next="end long transactions and migrate again"
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
    # Not to_regclass, whose answer may come from the session's cache, from before the wait for the lock.
    cursor = connection.execute(
        "select from pg_catalog.pg_tables t where t.schemaname = 'holdfast' and t.tablename = %s", [table]
    )
    return cursor.fetchone() is not None


def _record(migration: Migration) -> str:
    return f"insert into holdfast.migrations (number, name) values ({migration.number}, '{migration.name}');"


def _record_digest(part: str, digest: str) -> str:
    return (
        f"insert into holdfast.installed (part, digest) values ('{part}', '{digest}') "
        "on conflict (part) do update set digest = excluded.digest, at = excluded.at;"
    )
