"""`holdfast doctor`: what it judges, by plain values, and the whole of it on a real server."""

from __future__ import annotations

import json
from datetime import timedelta

import psycopg
import pytest

from holdfast import embedded
from holdfast.kernel import migrate
from holdfast.kernel.migrate import SchemaStatus
from holdfast.reads import pooler, schema_checks
from holdfast.reads.doctor import attempt
from servers import reaped

SAFE = {
    "fsync": "on",
    "full_page_writes": "on",
    "synchronous_commit": "on",
    "client_connection_check_interval": "10000",
    "idle_in_transaction_session_timeout": "900000",
}
GOOD_ROLES = dict.fromkeys(schema_checks.ROLES, (False, False))


@pytest.fixture
def database(home):
    with psycopg.connect(embedded.admin_dsn(home), autocommit=True) as admin:
        admin.execute("create database doctor owner holdfast")
        yield embedded.ensure(home).replace("/holdfast?", "/doctor?")
        admin.execute("drop database doctor with (force)")


def test_a_database_as_it_should_be(holdfast, database):
    migrate.run(database)

    done = holdfast("doctor", "--json", dsn=database)

    found = json.loads(done.stdout)
    named = "server schema login roles settings snapshots partitions indexes invariants self-tests hints statements "
    named += "retention bloat schedules session timeouts vacuum planner connections"
    assert {check["name"]: check["verdict"] for check in found["checks"]} == dict.fromkeys(named.split(), "ok")
    assert (done.returncode, found["ok"]) == (0, True)


def test_a_database_that_was_never_migrated_is_new_and_the_next_step_is_named(holdfast, database):
    done = holdfast("doctor", dsn=database)
    found = json.loads(holdfast("doctor", "--json", dsn=database).stdout)

    verdicts = {check["name"]: check["verdict"] for check in found["checks"]}
    assert (done.returncode, found["ok"], verdicts.pop("schema")) == (13, False, "new")
    assert set(verdicts.values()) == {"ok"}
    assert "holdfast db migrate" in done.stderr


def test_a_home_in_which_nothing_was_started_yet(holdfast, tmp_path):
    """Not even our roles are there."""
    with reaped(tmp_path / "home"):
        before = holdfast("doctor", home=tmp_path / "home")
        holdfast("db", "migrate", home=tmp_path / "home")
        after = holdfast("doctor", home=tmp_path / "home")

    assert (before.returncode, "holdfast db migrate" in before.stderr, "fail\t" in before.stdout) == (13, True, False)
    assert (after.returncode, after.stderr) == (0, "")


def test_a_server_that_does_not_answer(holdfast):
    done = holdfast("doctor", "--json", dsn="postgresql://127.0.0.1:1/none")

    [check] = json.loads(done.stdout)["checks"]
    assert (done.returncode, check["name"], check["verdict"]) == (9, "server", "fail")
    assert check["next"].startswith("check HOLDFAST_DSN")


def test_a_superuser_is_warned_of(holdfast, database):
    migrate.run(database)

    done = holdfast("doctor", "--json", dsn=database.replace("//holdfast@", "//postgres@"))

    verdicts = {check["name"]: check["verdict"] for check in json.loads(done.stdout)["checks"]}
    assert (done.returncode, verdicts["login"]) == (0, "warn")


def test_a_check_that_the_server_refuses_has_failed(database):
    with psycopg.connect(database, autocommit=True) as connection:
        check = attempt("partitions", schema_checks.partitions, connection)

    assert (check.name, check.verdict) == ("partitions", "fail")


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (SchemaStatus("15.18 (Debian 15.18-0+deb12u1)", 3, 3, []), "ok"),
        (SchemaStatus("18.4", 3, 3, []), "ok"),
        (SchemaStatus("19beta1", 3, 3, []), "warn"),
    ],
)
def test_servers_by_their_version(status, verdict):
    assert schema_checks.server_version(status).verdict == verdict


@pytest.mark.parametrize(
    ("pending", "indexes", "verdict"),
    [
        ([], 0, "ok"),
        (["index steps_by_kind"], 1, "warn"),
        (["0009_limits"], 0, "fail"),
        (["functions, views and machines", "index steps_by_kind"], 1, "fail"),
    ],
)
def test_schemas_by_what_is_pending(pending, indexes, verdict):
    """Without an index everything works, only more slowly."""
    assert schema_checks.schema_version(SchemaStatus("18.4", 9, 9, pending, indexes)).verdict == verdict


@pytest.mark.parametrize(
    ("invalid", "verdict"), [({}, "ok"), ({"holdfast.a": True}, "ok"), ({"holdfast.a": True, "flow.b": False}, "warn")]
)
def test_invalid_indexes_by_whether_they_are_being_built(invalid, verdict):
    assert schema_checks.judge_indexes(invalid).verdict == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (SAFE, "ok"),
        (SAFE | {"synchronous_commit": "off"}, "fail"),
        (SAFE | {"fsync": "off"}, "fail"),
        (SAFE | {"full_page_writes": "off"}, "fail"),
        (SAFE | {"idle_in_transaction_session_timeout": "0"}, "warn"),
        (SAFE | {"client_connection_check_interval": "0"}, "warn"),
    ],
)
def test_settings_by_what_they_risk(found, verdict):
    assert schema_checks.judge_settings(found).verdict == verdict


@pytest.mark.parametrize(
    ("ahead", "verdict"), [(timedelta(days=31), "ok"), (timedelta(days=29), "fail"), (None, "fail")]
)
def test_partitions_by_how_far_ahead_they_are(ahead, verdict):
    assert schema_checks.judge_partitions(ahead).verdict == verdict


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (GOOD_ROLES, "ok"),
        (GOOD_ROLES | {"hf_owner": (True, False)}, "fail"),
        (GOOD_ROLES | {"hf_owner": (False, True)}, "warn"),
        ({"hf_owner": (False, False)}, "fail"),
    ],
)
def test_roles_by_what_the_owner_can_do(found, verdict):
    assert schema_checks.judge_roles(found).verdict == verdict


@pytest.mark.parametrize(
    ("oldest", "verdict"),
    [(None, "ok"), (("pid 7", timedelta(minutes=4)), "ok"), (("pid 7", timedelta(minutes=90)), "warn")],
)
def test_snapshots_by_their_age(oldest, verdict):
    assert schema_checks.judge_snapshots(oldest).verdict == verdict


def test_the_holder_of_the_oldest_snapshot_is_named():
    check = schema_checks.judge_snapshots(("pid 7 (report)", timedelta(minutes=90)))

    assert check.detail == "pid 7 (report) has held a snapshot for 90 minutes"


@pytest.mark.parametrize(
    ("broken", "prepares", "verdict"),
    [(None, True, "ok"), ("_pg3_0 already exists", True, "fail"), ("_pg3_0 already exists", False, "ok")],
)
def test_prepared_statements_by_whether_they_break_and_are_used(broken, prepares, verdict):
    assert pooler.judge_statements(broken, prepares=prepares).verdict == verdict


@pytest.mark.parametrize("option", ["--seed", "--tasks", "--kills"])
def test_what_is_for_the_self_test_is_refused_without_it(cli, option):
    refused = cli("doctor", option, "60")

    assert refused.returncode == 2
    assert f"{option} is for the self-test; add --self-test" in " ".join(refused.stderr.split())
