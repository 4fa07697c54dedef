"""Brings a database to the schema of this code: forward only, under load, safe when two run at once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import psycopg
from psycopg import Connection

from holdfast import errors
from holdfast.failpoints import failpoint
from holdfast.kernel import db

SCHEMAS = ("holdfast", "rules", "ingest", "ops", "flow", "work")
FACES = ("work", "flow")  # those that have views and functions of their own
OLDEST = 150000
# Others need these when they are made; all else in plpgsql looks its names up when it runs.
FIRST = ("clock", "chance", "refuse", "is_live", "is_due", "step_policy", "policy_of", "allowed_tenants")
LOCK = "select pg_advisory_xact_lock(hashtextextended('holdfast.migrate', 0))"
# A lock that is not had soon is not waited for: behind a waiting ACCESS EXCLUSIVE every reader would queue.
AS_OWNER = "set local role hf_owner; set local lock_timeout = '1s'; set local check_function_bodies = off"
TRIES = 30
PARTITIONS = "select holdfast.make_partitions()"

Progress = Callable[[str], None]


@dataclass(frozen=True)
class SchemaStatus:
    """Where a database stands beside this code."""

    server_version: str
    schema_version: int | None
    code_version: int
    pending: list[str]


@dataclass(frozen=True)
class Migration:
    number: int
    name: str
    text: str


def run(dsn: str, *, progress: Progress | None = None) -> list[str]:
    """Apply what is missing, each part in a transaction of its own, and give the names of what was applied."""
    say = progress or (lambda _: None)
    with db.opened(dsn) as connection:
        _preflight(connection)
        make_roles(connection)
        applied = [m.name for m in migrations() if _apply(connection, m, say)]
        if _install(connection, say):
            applied.append("functions, views and machines")
        return applied


def status(dsn: str) -> SchemaStatus:
    """Say how far a database is migrated; changes nothing."""
    with db.opened(dsn) as connection:
        _check_server(connection)
        done = _applied(connection)
        pending = [m.name for m in migrations() if m.number not in done]
        if not pending and _installed_digest(connection) != digest():
            pending.append("functions, views and machines")
        version = connection.info.parameter_status("server_version") or "unknown"
        return SchemaStatus(version, max(done, default=None), code_version(), pending)


def check(connection: Connection[Any]) -> None:
    """Refuse a database that this code cannot work on: not migrated, or by a newer release."""
    _check_server(connection)
    done = _applied(connection)
    _check_not_newer(done)
    if set(done) < {m.number for m in migrations()}:
        raise errors.NotMigrated("the database is not migrated to this release; run `holdfast db migrate`")


def script(*, after: int = 0) -> str:
    """Write the whole of it as one SQL script for psql; `after` leaves out the migrations that are applied already."""
    parts = [r"\set ON_ERROR_STOP on", "begin;", f"{LOCK};", _read("roles.sql"), f"{AS_OWNER};"]
    for migration in migrations():
        if migration.number > after:
            parts += [migration.text, _record(migration)]
    return "\n".join([*parts, *_code(), f"{PARTITIONS};", _record_digest(), "commit;", ""])


@cache
def migrations() -> tuple[Migration, ...]:
    """List the numbered migrations of this code, in order."""
    found = sorted(_folder("migrations"), key=lambda file: file.name)
    return tuple(Migration(int(f.name[:4]), f.name.removesuffix(".sql"), f.read_text("utf-8")) for f in found)


def code_version() -> int:
    """Give the number of the newest migration."""
    return migrations()[-1].number


@cache
def digest() -> str:
    """Fingerprint what is installed beside the migrations."""
    return hashlib.sha256("\n".join(_code()).encode()).hexdigest()


def _preflight(connection: Connection[Any]) -> None:
    _check_server(connection)
    rows = connection.execute(
        "select n.nspname, pg_get_userbyid(n.nspowner) from pg_namespace n where n.nspname = any (%s)", [list(SCHEMAS)]
    ).fetchall()
    for schema, owner in rows:
        if owner != "hf_owner":
            raise errors.ForeignSchema(
                f"the database has a schema {schema} that is not Holdfast's (its owner is {owner}); "
                "rename it, or give Holdfast a database of its own"
            )
    _check_not_newer(_applied(connection))


def _check_server(connection: Connection[Any]) -> None:
    if connection.info.server_version < OLDEST:
        said = connection.info.parameter_status("server_version")
        raise errors.ServerTooOld(f"the server is PostgreSQL {said}; Holdfast needs 15 or later: upgrade the server")


def _check_not_newer(done: list[int]) -> None:
    if max(done, default=0) > code_version():
        raise errors.SchemaTooNew(
            f"the database is at schema {max(done)}, this code knows {code_version()}; upgrade the holdfast package"
        )


def make_roles(connection: Connection[Any]) -> None:
    """Make the roles that are missing, and let the login and the database work with them."""
    try:
        with connection.transaction():
            connection.execute(LOCK)
            connection.execute(_read("roles.sql"))
    except psycopg.errors.InsufficientPrivilege as error:
        raise errors.PermissionMissing(
            f"the login may not make Holdfast's roles: {error.diag.message_primary}; use a login with CREATEROLE that "
            "owns the database, or have an administrator run the output of `holdfast db migrate --sql`"
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
    def attempt() -> bool:
        connection.execute(LOCK)
        changed = _installed_digest(connection) != digest()
        connection.execute(AS_OWNER)
        if changed:
            say("installing functions, views and machines")
            for text in _code():
                connection.execute(text)
            connection.execute(_record_digest())
        connection.execute(PARTITIONS)
        return changed

    return _in_transaction(connection, attempt)


def _in_transaction(connection: Connection[Any], attempt: Callable[[], bool]) -> bool:
    """Try until the locks are had; between tries the others go on."""
    for left in reversed(range(TRIES)):
        try:
            with connection.transaction():
                return attempt()
        except (psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected) as error:
            if left == 0:
                raise errors.DatabaseError(
                    "a lock on Holdfast's tables was not to be had; end long transactions and migrate again"
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
            f"the login may not read Holdfast's tables: {error.diag.message_primary}; grant it one of the hf_ roles"
        ) from error


def _installed_digest(connection: Connection[Any]) -> str | None:
    if not _is_there(connection, "installed"):
        return None
    row = connection.execute("select digest from holdfast.installed where part = 'code'").fetchone()
    return row[0] if row else None


def _is_there(connection: Connection[Any], table: str) -> bool:
    # Not to_regclass: it may answer from before the wait for the lock, out of the session's cache.
    found = connection.execute(
        "select from pg_catalog.pg_tables t where t.schemaname = 'holdfast' and t.tablename = %s", [table]
    )
    return found.fetchone() is not None


def _record(migration: Migration) -> str:
    return f"insert into holdfast.migrations (number, name) values ({migration.number}, '{migration.name}');"


def _record_digest() -> str:
    return (
        f"insert into holdfast.installed (part, digest) values ('code', '{digest()}') "
        "on conflict (part) do update set digest = excluded.digest, at = excluded.at;"
    )


@cache
def _code() -> list[str]:
    functions = {file.name.removesuffix(".sql"): file for file in _folder("functions")}
    ordered = [*FIRST, *sorted(functions.keys() - set(FIRST))]
    machines = sorted(_folder("machines"), key=lambda file: (file.name != "policies.sql", file.name))
    return [
        *(functions[name].read_text("utf-8") for name in ordered),
        *_texts("views"),
        *(text for face in FACES for text in (*_texts(f"views/{face}"), *_texts(f"functions/{face}"))),
        _read("triggers.sql"),
        *(file.read_text("utf-8") for file in machines),
        _read("grants.sql"),
    ]


def _texts(folder: str) -> list[str]:
    return [file.read_text("utf-8") for file in sorted(_folder(folder), key=lambda file: file.name)]


def _folder(name: str) -> list[Traversable]:
    return [file for file in (files("holdfast") / "sql" / name).iterdir() if file.name.endswith(".sql")]


def _read(name: str) -> str:
    return (files("holdfast") / "sql" / name).read_text("utf-8")
