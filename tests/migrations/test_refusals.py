"""Databases and logins that a migration refuses: each with its own error, and nothing changed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from psycopg.conninfo import make_conninfo

from holdfast import errors
from holdfast.connections.deadline import connect
from holdfast.kernel import migrate, sources
from migrations.conftest import BUILDER, NUMBERS, Server, as_admin


@contextmanager
def refused(server: Server, dsn: str, error: type[errors.DatabaseError], match: str) -> Iterator[None]:
    """Expect an error, and a database that is afterwards as it was before."""
    before = server.dump(dsn)
    with pytest.raises(error, match=match):
        yield
    assert server.dump(dsn) == before


@pytest.fixture
def ready(server: Server) -> Server:
    """A server where somebody has migrated before, so that the roles are there."""
    migrate.run(server.database())
    return server


def test_a_schema_newer_than_the_code(server: Server) -> None:
    """An older release must not touch it, nor work on it."""
    dsn = server.database()
    migrate.run(dsn)
    with connect(dsn) as connection:
        connection.execute("insert into holdfast.migrations (number, name) values (9999, '9999_of_tomorrow')")
        connection.execute("update holdfast.installed set digest = 'of tomorrow'")

        with refused(server, dsn, errors.SchemaTooNew, "9999.*upgrade the holdfast-pg package"):
            migrate.run(dsn)
        with pytest.raises(errors.SchemaTooNew):
            migrate.check(connection)


@pytest.mark.parametrize(("schema", "clash"), [("holdfast", "claim_steps"), ("work", "tasks"), ("flow", "step_dag")])
def test_a_foreign_schema_that_we_are_about_to_create(ready: Server, schema: str, clash: str) -> None:
    """It is not moved into, and what clashes in it is named."""
    dsn = ready.database()
    with connect(dsn) as connection:
        connection.execute(f"create schema {schema}")
        connection.execute(f"create table {schema}.{clash} (mine text)")
        connection.execute(f"create table {schema}.of_their_own (mine text)")

    with refused(ready, dsn, errors.ForeignSchema, f"schema {schema}.*{BUILDER}.*: {clash};"):
        migrate.run(dsn)


def test_a_foreign_schema_that_we_do_not_create_is_nobodys_business(ready: Server) -> None:
    """A face that has no schema yet keeps nobody from the name."""
    dsn = ready.database()
    with connect(dsn) as connection:
        for schema in {"ops", "rules", "ingest"} - set(sources.schemas()):
            connection.execute(f"create schema {schema}")
            connection.execute(f"create table {schema}.runs (mine text)")

    assert migrate.CODE in migrate.run(dsn)


def test_a_login_that_may_not_make_roles(ready: Server) -> None:
    """Its own database is not enough: it must be let into hf_owner."""
    nobody = ready.login(f"nobody_{next(NUMBERS)}")
    dsn = ready.database(owner=nobody)

    with refused(ready, dsn, errors.PermissionMissing, "CREATEROLE.*holdfast db migrate --sql"):
        migrate.run(dsn)


@pytest.mark.parametrize("group", [None, "hf_migrator", "hf_worker"])
def test_a_login_whose_database_is_anothers(ready: Server, group: str | None) -> None:
    """In hf_migrator it may change what hf_owner has, but not let hf_owner into a database."""
    stranger = ready.login(f"stranger_{next(NUMBERS)}", f"in role {group}" if group else "")
    dsn = make_conninfo(ready.database(), user=stranger)

    with refused(ready, dsn, errors.PermissionMissing, "administrator"):
        migrate.run(dsn)


def test_a_login_in_hf_migrator_upgrades_what_is_there(ready: Server) -> None:
    """X-15: the role for deployments; it need not own the database."""
    dsn = ready.database()
    migrate.run(dsn)
    deployer = ready.login(f"deployer_{next(NUMBERS)}", "in role hf_migrator")
    with connect(as_admin(dsn, ready.admin)) as connection:
        connection.execute("update holdfast.installed set digest = 'of yesterday' where part = 'code'")
    before = ready.dump(dsn)

    assert migrate.run(make_conninfo(dsn, user=deployer)) == ["functions, views and machines"]

    assert ready.dump(dsn) == before


def test_a_runtime_login_sees_the_status_and_cannot_migrate(ready: Server) -> None:
    """X-15"""
    dsn = ready.database()
    migrate.run(dsn)
    worker = make_conninfo(dsn, user=ready.login(f"worker_{next(NUMBERS)}", "in role hf_worker"))

    assert migrate.status(worker).pending == []
    with refused(ready, dsn, errors.PermissionMissing, "CREATEROLE"):
        migrate.run(worker)


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"user": "no_such_login"}, errors.LoginRefused),
        ({"dbname": "no_such_database"}, errors.BadAddress),
        ({"host": "/no/such/folder"}, errors.Unreachable),
    ],
)
def test_an_address_where_nobody_lets_us_in(
    server: Server, changed: dict[str, str], error: type[errors.DatabaseError]
) -> None:
    """Each its own error, with the next step."""
    dsn = server.database()

    with refused(server, dsn, error, "HOLDFAST_DSN"):
        migrate.run(make_conninfo(dsn, **changed))


@pytest.mark.parametrize("dsn", ["postgresql://[", "host=a b", "mysql://a@b/c"])
def test_an_address_that_cannot_be_read(dsn: str) -> None:
    """Told before anything is asked of a server."""
    with pytest.raises(errors.BadAddress, match="HOLDFAST_DSN"):
        migrate.run(dsn)
