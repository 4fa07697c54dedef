"""The schema of a self-test, created in one transaction with a record of everything that came with it.

The faces' schemas have its name as a prefix (`holdfast_selftest_0a1b2c3d_flow`), and are created and dropped with it.

The record lists what to undo besides the schema, so that the next self-test can clean up after a killed one. One lock
for the whole database shows whether a self-test is running.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, LiteralString, NamedTuple

import psycopg
from psycopg import Connection, sql

from holdfast.connections.deadline import connect
from holdfast.errors import DatabaseError, HoldfastError, PermissionMissing
from holdfast.kernel import migrate

SELF_TEST_LOCK: LiteralString = "pg_catalog.hashtextextended('holdfast self-test', 0)"
LEFT_SCHEMAS: LiteralString = r"""
select n.nspname from pg_catalog.pg_namespace n
 where n.nspname ~ '^holdfast_selftest_[0-9a-f]{8}$' and n.nspowner = pg_catalog.to_regrole('hf_owner')
 order by 1
"""
ROLES = ("hf_migrator", "hf_producer", "hf_worker", "hf_reader", "hf_operator", "hf_owner")
MARK = "made for a self-test of Holdfast, which drops it when nothing uses it"
# The lock belongs to a transaction, not a session, so that it works through a pooler. Without timeouts it can last.
WITHOUT_END = """
select set_config(s.name, '0', true) from pg_catalog.pg_settings s
 where s.name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
OWNED = "select n.nspname from pg_catalog.pg_namespace n where n.nspowner = pg_catalog.to_regrole('hf_owner')"
WITH_ITS_FACES = """
select n.nspname from pg_catalog.pg_namespace n
 where (n.nspname = %(name)s::text or starts_with(n.nspname, %(name)s::text || '_'))
   and n.nspowner = pg_catalog.to_regrole('hf_owner')
 order by 1
"""
BEFORE = """
with o as (select pg_catalog.to_regrole('hf_owner')::oid as owner)
select coalesce(has_database_privilege(o.owner, current_database(), 'create'), false),
       exists (select from pg_catalog.pg_default_acl d
                where d.defaclrole = o.owner and d.defaclnamespace = 0 and d.defaclobjtype = 'f'),
       exists (select from pg_catalog.pg_auth_members m
                where m.roleid = o.owner and m.member = session_user::regrole),
       session_user::text
  from o
"""
# The table of effects has no key, because it must be able to hold duplicates, which must not happen.
TABLES = """
create schema {schema};
create table {schema}.found_before (
  could_create boolean not null, had_defaults boolean not null, was_member boolean not null, login text not null,
  owned text[] not null, folder text not null);
create table {schema}.effects (step_id bigint not null, lease_id bigint not null);
"""
HAD = "select r.rolname from pg_catalog.pg_roles r where r.rolname = any (%s)"
UNUSED = """
select r.rolname from pg_catalog.pg_roles r
 where r.rolname = any (%(roles)s) and pg_catalog.shobj_description(r.oid, 'pg_authid') = %(mark)s
   and not exists (select from pg_catalog.pg_auth_members m
                     join pg_catalog.pg_roles u on u.oid = m.member
                    where m.roleid = r.oid and u.rolname <> all (%(roles)s) and u.rolname <> session_user)
 order by array_position(%(roles)s, r.rolname::text)
"""
ENDED = """
select pg_catalog.pg_terminate_backend(a.pid, 5000) from pg_catalog.pg_stat_activity a
 where a.application_name = %s and a.datname = current_database() and a.pid <> pg_catalog.pg_backend_pid()
"""


class Before(NamedTuple):
    """What existed before the schema was created.

    Whether hf_owner could create schemas and had its functions closed to PUBLIC, whether the login was a member of it,
    and what else it owned. The folder is the one that handlers write to, because the next self-test may use another.
    """

    could_create: bool
    had_defaults: bool
    was_member: bool
    login: str
    owned: list[str]
    folder: str


class SelfTestRuns(HoldfastError):
    """Another self-test is running in the database."""


def new_name() -> str:
    """Return a schema name that nobody else uses."""
    return f"holdfast_selftest_{secrets.token_hex(4)}"


def folder_of(name: str) -> Path:
    """Return the folder that handlers write to."""
    return Path(tempfile.gettempdir()) / name


@contextmanager
def locked(dsn: str) -> Iterator[None]:
    """Hold the lock of self-tests in this database, which cleaning up also needs."""
    with connect(dsn) as connection, connection.transaction():
        connection.execute(WITHOUT_END)
        if connection.execute(f"select pg_try_advisory_xact_lock({SELF_TEST_LOCK})").fetchone() != (True,):
            raise SelfTestRuns("a self-test is running in this database", next="wait until it ends, a minute or two")
        yield


def is_there(connection: Connection[Any], name: str) -> bool:
    """Return whether there is a schema of that name."""
    cursor = connection.execute("select from pg_catalog.pg_namespace n where n.nspname = %s", [name])
    return cursor.fetchone() is not None


def make(connection: Connection[Any], name: str) -> None:
    """Create the schema and the missing roles, all or nothing."""
    try:
        with connection.transaction():
            found = _look(connection, name)
            roles = {role for (role,) in connection.execute(HAD, [list(ROLES)])}
            migrate.make_roles(connection)
            for role in set(ROLES) - roles:
                connection.execute(sql.SQL("comment on role {} is {}").format(sql.Identifier(role), MARK))
            connection.execute("set local role hf_owner")
            connection.execute(sql.SQL(TABLES).format(schema=sql.Identifier(name)))
            record = sql.SQL("insert into {}.found_before values (%s, %s, %s, %s, %s, %s)")
            connection.execute(record.format(sql.Identifier(name)), found)
    except (psycopg.errors.InsufficientPrivilege, PermissionMissing) as error:
        reason = error.diag.message_primary if isinstance(error, psycopg.Error) else error.what
        raise PermissionMissing(
            f"the login may not create the schema of a self-test: {reason}",
            next="use the login that migrates: one that owns the database and is in hf_owner, or has CREATEROLE",
        ) from error


def left_schemas(connection: Connection[Any]) -> list[str]:
    """List the schemas that killed self-tests left; none while a self-test is running."""
    with connection.transaction():
        if connection.execute(f"select pg_try_advisory_xact_lock({SELF_TEST_LOCK})").fetchone() != (True,):
            return []
        return [name for (name,) in connection.execute(LEFT_SCHEMAS)]


def sweep(connection: Connection[Any]) -> list[str]:
    """Remove what killed self-tests left, and return their schemas; the caller holds the lock."""
    names = [name for (name,) in connection.execute(LEFT_SCHEMAS)]
    for name in names:
        _remove(connection, name)
    in_use = (psycopg.errors.DependentObjectsStillExist, psycopg.errors.InsufficientPrivilege)
    with suppress(*in_use), connection.transaction():
        for (role,) in connection.execute(UNUSED, {"roles": list(ROLES), "mark": MARK}).fetchall():
            connection.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
    return names


def _remove(connection: Connection[Any], name: str) -> None:
    connection.execute(ENDED, [name])
    schemas = [schema for (schema,) in connection.execute(WITH_ITS_FACES, {"name": name})]
    try:
        with connection.transaction():
            connection.execute("set local client_min_messages = warning; set local lock_timeout = '10s'")
            connection.execute("set local role hf_owner")
            record = sql.SQL("select * from {}.found_before").format(sql.Identifier(name))
            before = Before._make(connection.execute(record).fetchall()[0])
            named = sql.SQL(", ").join(map(sql.Identifier, schemas))
            connection.execute(sql.SQL("drop schema {} cascade").format(named))
            connection.execute("reset role")
            _undo(connection, before)
    except psycopg.Error as error:
        raise DatabaseError(
            f"the schema {name} of a self-test could not be removed: {error.diag.message_primary or error}",
            where=name,
            next=f"remove it as its owner: drop schema {', '.join(schemas)} cascade",
        ) from error
    if Path(before.folder).name == name:
        shutil.rmtree(before.folder, ignore_errors=True)


def _look(connection: Connection[Any], name: str) -> Before:
    ((could_create, had_defaults, was_member, login),) = connection.execute(BEFORE).fetchall()
    return Before(could_create, had_defaults, was_member, login, _owned(connection), str(folder_of(name)))


def _owned(connection: Connection[Any]) -> list[str]:
    return [name for (name,) in connection.execute(OWNED)]


def _undo(connection: Connection[Any], before: Before) -> None:
    """Revoke what the schema needed, unless a schema that was created meanwhile needs it too."""
    if not set(_owned(connection)) <= set(before.owned):
        return
    if not before.had_defaults:
        connection.execute("alter default privileges for role hf_owner grant execute on functions to public")
    if not before.could_create:
        ((database,),) = connection.execute("select current_database()").fetchall()
        connection.execute(sql.SQL("revoke create on database {} from hf_owner").format(sql.Identifier(database)))
    if not before.was_member:
        connection.execute(sql.SQL("revoke hf_owner from {}").format(sql.Identifier(before.login)))
