"""`holdfast db`: on the embedded PostgreSQL, and on a server that HOLDFAST_DSN names."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from datetime import timedelta

import psycopg
import pytest

from cli.conftest import MAIN, environment
from holdfast import embedded
from holdfast.embedded.locks import until
from holdfast.kernel import migrate, sources
from servers import reaped


@pytest.fixture
def database(home, request):
    """An empty database of its own, by its DSN."""
    name = f"cli_{abs(hash(request.node.name))}"
    with psycopg.connect(embedded.admin_dsn(home), autocommit=True) as admin:
        admin.execute(f"create database {name} owner holdfast")
        yield embedded.ensure(home).replace("/holdfast?", f"/{name}?")
        admin.execute(f"drop database {name} with (force)")


def test_start_and_stop_say_what_they_did_and_give_data_on_stdout_only(holdfast, tmp_path):
    home = tmp_path / "home"
    with reaped(home):
        started = holdfast("db", "start", "--json", home=home)
        again = holdfast("db", "start", "--json", home=home)
        stopped = holdfast("db", "stop", "--json", home=home)
        idle = holdfast("db", "stop", home=home)

    assert (started.returncode, started.stderr) == (0, "started\n")
    assert json.loads(started.stdout)["running"] is True
    assert (again.stderr, json.loads(again.stdout)["pid"]) == ("already running\n", json.loads(started.stdout)["pid"])
    assert (json.loads(stopped.stdout), stopped.stderr) == ({"stopped": True}, "stopped\n")
    assert (idle.returncode, idle.stdout, idle.stderr) == (0, "", "it was not running\n")


def test_status_of_a_home_without_a_server_starts_none(holdfast, tmp_path):
    status = holdfast("db", "status", "--json", home=tmp_path / "home")

    found = json.loads(status.stdout)
    assert (found["embedded"], found["running"], found["pid"], found["schema_version"]) == (True, False, None, None)
    assert not (tmp_path / "home").exists()


def test_status_is_lines_for_people(holdfast):
    assert "running           yes\n" in holdfast("db", "status").stdout


def test_url_is_all_that_a_program_needs(holdfast):
    with psycopg.connect(holdfast("db", "url").stdout.strip()) as connection:
        assert connection.execute("select user::text").fetchone() == ("holdfast",)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://ann:s3cret@db.example:5432/app", "postgresql://ann:***@db.example:5432/app"),
        ("postgresql://ann:s3:cr%40et@[::1]:5432/app?sslmode=require", None),
        ("postgresql://db.example/app?user=ann&password=s3cret", "postgresql://db.example/app?user=ann&password=***"),
        (
            "postgresql://ann:s3cret@one:1,two:2/app",
            "postgresql://ann:***@one:1,two:2/app?target_session_attrs=read-write",
        ),
        ("host=db.example user=ann password=s3cret", "user=ann password=*** host=db.example"),
        ("postgresql://ann@db.example/app", "postgresql://ann@db.example/app"),
    ],
)
def test_url_hides_a_password_unless_asked(holdfast, dsn, shown):
    hidden = holdfast("db", "url", dsn=dsn).stdout.strip()

    assert "s3" not in hidden
    assert "cr%40et" not in hidden
    assert shown is None or hidden == shown
    added = "?target_session_attrs=read-write" if "," in dsn else ""
    assert holdfast("db", "url", "--show-password", dsn=dsn).stdout.strip() == dsn + added


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_a_server_of_ones_own_is_not_ours_to_start_or_stop(holdfast, verb):
    refused = holdfast("db", verb, dsn="postgresql://ann:s3cret@db.example/app")

    assert refused.returncode == 6
    assert refused.stdout == ""
    assert f"next:  {verb} it" in refused.stderr
    assert "s3cret" not in refused.stderr


def test_migrate_prints_what_it_applied_and_then_nothing(holdfast, database):
    first = holdfast("db", "migrate", dsn=database)
    second = holdfast("db", "migrate", "--json", dsn=database)

    assert first.returncode == 0, first.stderr
    assert first.stdout.splitlines()[0] == sources.migrations()[0].name
    assert json.loads(second.stdout) == {"applied": []}


def test_status_of_a_named_server_tells_its_schema(holdfast, database):
    before = json.loads(holdfast("db", "status", "--json", dsn=database).stdout)
    migrate.run(database)
    after = json.loads(holdfast("db", "status", "--json", dsn=database).stdout)

    assert (before["embedded"], before["reachable"], before["schema_version"]) == (False, True, None)
    assert (after["schema_version"], after["pending"]) == (migrate.code_version(), [])


def test_migrate_as_sql_connects_to_nothing(holdfast):
    printed = holdfast("db", "migrate", "--sql", dsn="postgresql://nowhere.invalid/none")

    assert printed.returncode == 0
    assert printed.stdout.rstrip() == migrate.script().rstrip()


def test_psql_gets_the_rest_of_the_line(holdfast):
    asked = holdfast("db", "psql", "-X", "-A", "-t", "-c", "select user, 41 + 1")

    assert (asked.returncode, asked.stdout) == (0, "holdfast|42\n")


def test_psql_shows_no_password_to_other_users(holdfast, home):
    dsn = embedded.ensure(home) + "&password=s3cret"

    asked = holdfast("db", "psql", "-X", "-A", "-t", "-c", r"\! ps -o args= -p $PPID | grep -c s3cre[t]", dsn=dsn)

    assert asked.stdout.strip() == "0"


def test_reset_drops_every_task_and_leaves_the_tables_of_others(holdfast, database):
    migrate.run(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table mine (id int); create schema holdfast_demo")
        connection.execute("select holdfast.start_task('greet')")

    done = holdfast("db", "reset", "--json", "--yes", "--database", name_of(database), dsn=database)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["database"], set(found["dropped"])) == (
        name_of(database), {*sources.schemas(), "holdfast_demo"},
    )  # fmt: skip
    with psycopg.connect(database, autocommit=True) as connection:
        assert connection.execute("select count(*) from mine, holdfast.steps").fetchone() == (0,)
        assert connection.execute("select holdfast.start_task('greet')").fetchone() == (1,)


def test_reset_spares_a_table_that_somebody_made_in_our_schema(holdfast, database):
    """As happens to a login whose name is a schema's, by the default search path."""
    migrate.run(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("create table holdfast.mine (id int)")

    done = holdfast("db", "reset", "--yes", "--json", "--database", name_of(database), dsn=database)

    assert (done.returncode, json.loads(done.stderr)["where"]) == (5, "holdfast.mine")
    assert migrate.status(database).pending == []


def test_reset_of_a_database_that_was_never_migrated_migrates_it(holdfast, database):
    done = holdfast("db", "reset", "--yes", "--json", "--database", name_of(database), dsn=database)

    assert json.loads(done.stdout)["dropped"] == []
    assert migrate.status(database).pending == []


@pytest.mark.parametrize(
    ("arguments", "code", "where"),
    [
        (["--yes"], 6, "--database"),
        (["--yes", "--database", "another"], 2, "--database"),
        (["--database", "{}"], 2, "--yes"),
    ],
)
def test_reset_is_refused_unless_it_is_told_what_to_drop(holdfast, database, arguments, code, where):
    """Nobody sits at a terminal here."""
    migrate.run(database)
    name = name_of(database)

    done = holdfast("db", "reset", "--json", *(each.format(name) for each in arguments), dsn=database)

    error = json.loads(done.stderr)
    assert (done.returncode, error["where"], name in error["what"]) == (code, where, True)
    assert migrate.status(database).pending == []


@pytest.mark.parametrize(("typed", "code"), [("n\n", 2), ("y\n", 0)])
def test_reset_asks_first_and_names_the_database(terminal, database, typed, code):
    migrate.run(database)
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("select holdfast.start_task('greet')")

    ended, screen = terminal("db", "reset", "--database", name_of(database), dsn=database, typed=typed)

    assert (ended, name_of(database) in screen) == (code, True)
    with psycopg.connect(database) as connection:
        assert connection.execute("select count(*) from holdfast.steps").fetchone() == (int(code != 0),)


def test_reset_drops_nothing_while_a_worker_holds_a_lock(holdfast, database):
    migrate.run(database)
    with psycopg.connect(database) as connection:
        connection.execute("select holdfast.start_task('greet')")
        done = holdfast("db", "reset", "--yes", "--database", name_of(database), dsn=database)

    assert done.returncode == 5
    assert migrate.status(database).pending == []


def name_of(dsn):
    return psycopg.conninfo.conninfo_to_dict(dsn)["dbname"]


def test_an_interrupt_ends_with_130(home, database):
    # A run of the tests in the background of a shell ignores interrupts, and so would its children.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    with psycopg.connect(database) as holder, psycopg.connect(database, autocommit=True) as watcher:
        holder.execute(migrate.LOCK)
        waiting = subprocess.Popen(
            [sys.executable, "-c", heeding + MAIN, "db", "migrate"], env=environment(home=home, dsn=database)
        )
        try:
            assert until(lambda: is_waiting(watcher), within=timedelta(seconds=30))
            waiting.send_signal(signal.SIGINT)
            assert waiting.wait(timeout=30) == 130
        finally:
            waiting.kill()
            waiting.wait()


def is_waiting(connection):
    waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
    return connection.execute(waiting).fetchone() == (1,)
