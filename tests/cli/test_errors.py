"""What goes wrong: one clear error with the next step, an exit code of its own, and nothing on stdout."""

from __future__ import annotations

import json

import pytest

from holdfast import embedded

SILENT = "postgresql://ann:s3cret@127.0.0.1:1/app"


@pytest.mark.parametrize(
    ("dsn", "code", "words"),
    [
        ("postgresql://[", 10, "HOLDFAST_DSN cannot be read"),
        ("host=db.example s3cret", 10, "HOLDFAST_DSN cannot be read"),
        (SILENT, 7, "no PostgreSQL answered"),
    ],
)
@pytest.mark.parametrize("command", [("db", "status"), ("db", "migrate")])
def test_an_address_that_leads_nowhere(holdfast, command, dsn, code, words):
    done = holdfast(*command, dsn=dsn)

    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr.startswith(f"error: {words}")
    assert "\nnext:  " in done.stderr
    assert "s3cret" not in done.stderr
    assert "Traceback" not in done.stderr


def test_a_login_that_is_refused(holdfast, home):
    done = holdfast("db", "status", dsn=embedded.ensure(home).replace("//holdfast@", "//nobody_we_know@"))

    assert done.returncode == 11
    assert "next:  check the user and password in HOLDFAST_DSN" in done.stderr


def test_an_embedded_server_that_cannot_be(holdfast, tmp_path):
    (tmp_path / "file").write_text("")

    done = holdfast("db", "start", home=tmp_path / "file")

    assert done.returncode == 16
    assert "is not a folder\nnext:  move it away" in done.stderr


def test_errors_are_json_where_the_data_is(holdfast):
    done = holdfast("db", "status", "--json", dsn=SILENT)

    found = json.loads(done.stderr)
    assert (found["error"], found["exit_code"], done.returncode) == ("Unreachable", 7, 7)
    assert "127.0.0.1" in found["what"]
    assert (found["where"], found["next"].startswith("check HOLDFAST_DSN")) == ("HOLDFAST_DSN", True)


@pytest.mark.parametrize("arguments", [("db", "nonsense"), ("db", "start", "--nonsense"), ("nonsense",)])
def test_a_command_that_is_none(holdfast, arguments):
    done = holdfast(*arguments)

    assert (done.returncode, done.stdout) == (2, "")


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        (("runs", "list", "--limit", "0"), "--limit"),
        (("runs", "list", "--since", "3x"), "--since"),
        (("runs", "list", "--lmit", "3"), "--lmit"),
        (("runs", "show"), "id"),
        (("ops", "approve", "run-x"), "--reason"),
        (("nonsense",), None),
    ],
)
def test_mistakes_in_arguments_are_json_where_the_data_is(cli, arguments, where):
    done = cli(*arguments, "--json")

    found = json.loads(done.stderr)
    assert (done.returncode, done.stdout, found["exit_code"], found["where"]) == (2, "", 2, where)
    assert found["next"].endswith("--help")


def test_a_setting_that_is_none_is_a_warning(holdfast):
    done = holdfast("db", "url", dns="postgresql://typo")

    assert done.returncode == 0
    assert done.stderr == "warning: unknown setting HOLDFAST_DNS: did you mean HOLDFAST_DSN?\n"


def test_settings_of_the_tests_are_no_warning(holdfast):
    assert holdfast("db", "url", seeds="x", failpoint="x:sleep", test_anything="x").stderr == ""
