"""Starting and stopping: what a caller gets, and what lies in the home."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest

from holdfast import embedded
from servers import owned_server, reaped


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    home = tmp_path_factory.mktemp("pg") / "home"
    with owned_server(home) as dsn:
        yield home, dsn


def ask(dsn, statement):
    with psycopg.connect(dsn) as connection:
        return connection.execute(statement).fetchone()


def test_the_dsn_leads_to_a_database_of_the_login_role(running):
    _, dsn = running

    row = ask(dsn, "select current_user::text, current_database()::text, pg_get_userbyid(datdba)::text from pg_database"
                   " where datname = current_database()")  # fmt: skip

    assert row == ("holdfast", "holdfast", "holdfast")


def test_the_login_role_may_make_roles_and_nothing_beyond(running):
    _, dsn = running

    row = ask(dsn, "select rolsuper, rolcreaterole, rolbypassrls, rolreplication from pg_roles where rolname = user")

    assert row == (False, True, False, False)


def test_the_server_is_18_in_utf8_with_checksums_and_reached_by_its_socket_only(running):
    _, dsn = running

    with psycopg.connect(dsn) as connection:
        settings = dict(connection.execute("select name, setting from pg_settings").fetchall())

    assert settings["server_version"].startswith("18.")
    assert settings["server_encoding"] == "UTF8"
    assert settings["data_checksums"] == "on"
    assert settings["listen_addresses"] == ""
    assert settings["TimeZone"] == "UTC"
    assert (settings["fsync"], settings["synchronous_commit"], settings["jit"]) == ("on", "on", "off")
    assert int(settings["idle_in_transaction_session_timeout"]) > 0
    assert int(settings["client_connection_check_interval"]) > 0


def test_text_sorts_by_code_point_and_knows_letters_beyond_ascii(running):
    _, dsn = running

    assert ask(dsn, "select 'Z' < 'a', upper('é')") == (True, "É")


def test_nothing_in_the_home_is_open_to_others(running):
    home, _ = running

    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in home.iterdir()}

    assert stat.S_IMODE(home.stat().st_mode) == (0o710 if os.geteuid() == 0 else 0o700)
    assert all(mode & 0o077 == 0 for mode in modes.values()), {name: oct(mode) for name, mode in modes.items()}


def test_a_second_start_finds_the_first(running):
    home, dsn = running
    pid = embedded.status(home).pid

    assert embedded.ensure(home) == dsn
    assert embedded.status(home).pid == pid


def test_status_tells_where_things_are(running):
    home, _ = running

    status = embedded.status(home)

    assert status.running
    assert status.version.startswith("18.")
    assert status.data_directory == home / "pgdata"
    assert status.log_file.is_file()
    assert (status.socket_directory / ".s.PGSQL.5432").is_socket()


def test_the_superuser_is_for_repairs(running):
    home, _ = running

    assert ask(embedded.admin_dsn(home, "template1"), "select user::text, current_database()::text") == (
        "postgres",
        "template1",
    )


def test_settings_of_ones_own_win_and_stay(tmp_path):
    home = tmp_path / "home"
    with owned_server(home) as dsn:
        embedded.stop(home)
        with (home / "pgdata" / "postgresql.conf").open("a") as file:
            file.write("max_connections = 33\n")

        embedded.ensure(home)

        assert ask(dsn, "show max_connections") == ("33",)


def test_what_was_stopped_is_gone_and_can_be_started_again(tmp_path):
    home = tmp_path / "home"
    with owned_server(home) as dsn:
        with psycopg.connect(dsn) as connection:
            connection.execute("create table kept as select 41 as n")

        assert embedded.stop(home) is True
        assert embedded.stop(home) is False
        assert embedded.status(home).running is False

        assert ask(embedded.ensure(home), "select n from kept") == (41,)


def test_a_stop_ends_connections_that_are_open(tmp_path):
    home = tmp_path / "home"
    with owned_server(home) as dsn:
        connection = psycopg.connect(dsn)
        connection.execute("select 1")

        embedded.stop(home)

        with pytest.raises(psycopg.OperationalError):
            connection.execute("select 1")


def test_a_home_that_was_never_used_is_left_untouched_by_stop_and_status(tmp_path):
    home = tmp_path / "home"

    assert embedded.stop(home) is False
    assert embedded.status(home).running is False
    assert not home.exists()


def test_a_long_home_has_its_socket_elsewhere_and_takes_it_away(tmp_path):
    home = tmp_path / ("long" * 30) / "home"
    with reaped(home):
        dsn = embedded.ensure(home)
        sockets = embedded.status(home).socket_directory

        assert ask(dsn, "select 1") == (1,)
        assert len(os.fsencode(sockets)) < 80
        assert sockets.parent.stat().st_uid == os.geteuid()
        assert stat.S_IMODE(sockets.parent.stat().st_mode) & 0o067 == 0
        assert stat.S_IMODE(sockets.stat().st_mode) == 0o700

        embedded.stop(home)
        assert not sockets.parent.exists()


@pytest.mark.parametrize("name", ["with space", "quo'te", "comma,percent%40", "umläut"])
def test_a_home_may_have_any_name(name):
    """Its path is short, so that the socket lies in the home where it can."""
    with TemporaryDirectory(prefix="hf-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        with owned_server(Path(folder) / name) as dsn:
            assert ask(dsn, "select 1") == (1,)


def test_a_table_of_the_users_is_not_made_among_ours(running):
    """The login and our schema are both called holdfast."""
    _, dsn = running

    with psycopg.connect(dsn) as connection:
        connection.execute("create schema if not exists holdfast")
        connection.execute("create table mine (id int)")
        found = connection.execute("select schemaname from pg_catalog.pg_tables where tablename = 'mine'").fetchone()
        connection.rollback()

    assert found == ("public",)
