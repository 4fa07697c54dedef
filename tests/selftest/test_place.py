"""The place of a self-test: made whole or not at all, and removed without a trace, whoever made it."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from holdfast import embedded
from holdfast.connections.deadline import connect
from holdfast.errors import PermissionMissing
from holdfast.kernel import migrate, self_test_schema, sources
from holdfast.kernel import self_test_place as place
from selftest.traces import catalog
from servers import owned_server

NAME = "holdfast_selftest_0123abcd"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """A server that has never seen Holdfast."""
    home = tmp_path_factory.mktemp("bare") / "home"
    with owned_server(home):
        yield embedded.admin_dsn(home)


@pytest.fixture
def owner(bare):
    """A login that owns its database and may make roles, and nothing more."""
    with psycopg.connect(bare, autocommit=True) as admin:
        admin.execute("create role owner login createrole")
        admin.execute("create database owned owner owner")
        yield make_conninfo(bare, dbname="owned", user="owner")
        admin.execute("drop database owned with (force)")
        admin.execute("drop role owner")


def install(dsn, name=NAME):
    with connect(dsn) as connection:
        place.make(connection, name)
    with self_test_schema.renamed(name):
        migrate.run(dsn)


def sweep(dsn):
    with place.locked(dsn), connect(dsn) as connection:
        return place.sweep(connection)


@pytest.mark.one_server
def test_roles_and_rights_that_came_with_the_place_go_with_it(owner):
    before = catalog(owner)

    install(owner)
    removed = sweep(owner)

    assert removed == [NAME]
    assert catalog(owner) == before


@pytest.mark.one_server
def test_roles_that_another_uses_by_now_stay(owner):
    install(owner)
    migrate.run(owner)

    sweep(owner)

    assert migrate.status(owner).pending == []
    with psycopg.connect(owner, autocommit=True) as db:
        assert db.execute("select has_database_privilege('hf_owner', 'owned', 'create')").fetchone() == (True,)
        assert db.execute("select count(*) from pg_default_acl").fetchone() == (1,)
        db.execute(f"set role hf_owner; drop schema {', '.join(sources.schemas())} cascade; reset role")
        db.execute("alter default privileges for role hf_owner grant execute on functions to public")
        db.execute("revoke create on database owned from hf_owner")
    sweep(owner)
    assert not any("hf_owner" in role for role in catalog(owner)["roles"])


def test_nothing_of_the_original_is_changed(dsn):
    before = catalog(dsn)

    install(dsn)
    during = catalog(dsn)
    sweep(dsn)

    assert catalog(dsn) == before
    assert {name for name in before if not set(before[name]) <= set(during[name])} == set()


def test_a_schema_of_a_face_goes_also_when_it_alone_was_made_before_the_kill(dsn, db):
    with connect(dsn) as connection:
        place.make(connection, NAME)
    db.execute(f"create schema {NAME}_flow authorization hf_owner")

    assert sweep(dsn) == [NAME]
    assert not place.is_there(db, f"{NAME}_flow")


def test_what_is_under_way_is_left_alone(dsn):
    install(dsn)
    with connect(dsn) as connection:
        with place.locked(dsn):
            while_it_runs = place.left_schemas(connection)
            with pytest.raises(place.SelfTestRuns, match="running"):
                sweep(dsn)
        afterwards = place.left_schemas(connection)

    assert (while_it_runs, afterwards) == ([], [NAME])
    assert sweep(dsn) == [NAME]


@pytest.mark.one_server
def test_a_schema_of_that_name_that_is_somebody_elses_is_left_alone(dsn, db):
    db.execute(f"create schema {NAME}")

    assert sweep(dsn) == []


@pytest.mark.one_server
def test_a_login_that_may_not_is_told_what_it_needs_and_nothing_is_made(bare):
    with psycopg.connect(bare, autocommit=True) as admin:
        admin.execute("create role nobody_much login")
        dsn = make_conninfo(bare, user="nobody_much")
        before = catalog(bare)

        with connect(dsn) as connection, pytest.raises(PermissionMissing, match="CREATEROLE"):
            place.make(connection, NAME)

        assert catalog(bare) == before
        admin.execute("drop role nobody_much")
