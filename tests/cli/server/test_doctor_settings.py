"""`holdfast doctor` on a server whose settings hurt: each is really made, and seen by an ordinary login."""

from __future__ import annotations

import json

import psycopg
import pytest

from holdfast import embedded
from holdfast.kernel import migrate
from holdfast.reads.server_settings import judge_connections

RELOAD = "select pg_reload_conf()"


@pytest.fixture(scope="module")
def dsn(home):
    with psycopg.connect(embedded.admin_dsn(home), autocommit=True) as admin:
        admin.execute("create database hurt owner holdfast")
        dsn = embedded.ensure(home).replace("/holdfast?", "/hurt?")
        migrate.run(dsn)
        yield dsn
        admin.execute("drop database hurt with (force)")


@pytest.fixture
def examined(home, holdfast, dsn):
    """Make a change as a superuser, run doctor as an ordinary login, and undo the change."""

    def run(change, undo):
        with psycopg.connect(embedded.admin_dsn(home), dbname="hurt", autocommit=True) as admin:
            for statement in change.split("; "):
                admin.execute(statement)
            try:
                done = holdfast("doctor", "--json", dsn=dsn)
            finally:
                for statement in undo.split("; "):
                    admin.execute(statement)
        assert done.stdout, done.stderr
        return {check["name"]: check for check in json.loads(done.stdout)["checks"]}, done.returncode

    return run


@pytest.mark.parametrize(
    ("setting", "value", "name", "verdict"),
    [
        ("synchronous_commit", "off", "settings", "fail"),
        ("idle_in_transaction_session_timeout", "0", "settings", "warn"),
        ("idle_in_transaction_session_timeout", "1s", "timeouts", "warn"),
        ("statement_timeout", "9s", "timeouts", "warn"),
        ("lock_timeout", "1s", "timeouts", "warn"),
        ("transaction_timeout", "9s", "timeouts", "warn"),
        ("idle_session_timeout", "60s", "timeouts", "warn"),
        ("default_transaction_isolation", "repeatable read", "session", "fail"),
        ("default_transaction_read_only", "on", "session", "fail"),
        ("session_replication_role", "replica", "session", "fail"),
        ("row_security", "off", "session", "fail"),
        ("intervalstyle", "iso_8601", "session", "fail"),
        ("datestyle", "German", "session", "fail"),
        ("enable_indexscan", "off", "planner", "warn"),
    ],
)
def test_a_setting_of_the_database_that_hurts_is_named(examined, setting, value, name, verdict):
    found, code = examined(f"alter database hurt set {setting} = '{value}'", f"alter database hurt reset {setting}")

    assert (found[name]["verdict"], code) == (verdict, 9 if verdict == "fail" else 0)
    assert setting in found[name]["detail"]
    assert setting in found[name]["next"]


@pytest.mark.parametrize(
    ("setting", "value", "name"),
    [("statement_timeout", "2min", None), ("statement_timeout", "9s", "timeouts"), ("row_security", "no", "session")],
)
def test_what_was_set_for_another_login_of_the_engine_is_named(examined, setting, value, name):
    """The doctor need not run as the workers do."""
    found, _ = examined(
        f"create role some_worker login in role hf_worker; alter role some_worker set {setting} = '{value}'",
        "drop role some_worker",
    )

    hurt = {check["name"] for check in found.values() if "some_worker" in check["detail"]}
    assert hurt == ({name} if name else set())


@pytest.mark.parametrize(
    ("setting", "name", "verdict"),
    [("fsync", "settings", "fail"), ("full_page_writes", "settings", "fail"), ("autovacuum", "vacuum", "warn")],
)
def test_a_setting_of_the_whole_server_that_hurts_is_named(examined, setting, name, verdict):
    found, _ = examined(f"alter system set {setting} = off; {RELOAD}", f"alter system reset {setting}; {RELOAD}")

    assert (found[name]["verdict"], setting in found[name]["detail"]) == (verdict, True)


@pytest.mark.parametrize(
    ("change", "undo", "named"),
    [
        ("alter database hurt set track_counts = off", "alter database hurt reset track_counts", "track_counts"),
        (
            "alter table holdfast.steps set (autovacuum_enabled = no)",
            "alter table holdfast.steps reset (autovacuum_enabled)",
            "steps",
        ),
    ],
)
def test_tables_that_are_not_vacuumed_are_named(examined, change, undo, named):
    found, code = examined(change, undo)

    assert (found["vacuum"]["verdict"], code) == ("warn", 0)
    assert named in found["vacuum"]["detail"]


def test_a_limit_that_leaves_no_room_for_a_worker_is_named(examined):
    found, code = examined("alter database hurt connection limit 6", "alter database hurt connection limit -1")

    assert (found["connections"]["verdict"], code) == ("warn", 0)
    assert "of 6 in use (the limit of database hurt)" in found["connections"]["detail"]


@pytest.mark.parametrize(("used", "verdict"), [(87, "ok"), (88, "warn")])
def test_connections_by_how_many_are_left(used, verdict):
    check = judge_connections([("max_connections", 97, used), ("the limit of login w", 200, 3)])

    assert (check.verdict, check.detail[:8]) == (verdict, f"{used} of 97")
