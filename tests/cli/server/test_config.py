"""Settings: where they come from, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import platformdirs
import pytest
import typer
from psycopg.conninfo import conninfo_to_dict
from pydantic import ValidationError

from holdfast import Holdfast, config
from holdfast.cli import app
from holdfast.errors import BadAddress, BadSetting


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in config.known_names():
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(f"{name}_FILE", raising=False)


def test_unset_it_is_the_embedded_server_in_the_users_data_directory():
    assert config.load() == config.Config(dsn=None, home=platformdirs.user_data_path("holdfast"))


def test_it_is_read_from_the_environment(monkeypatch):
    monkeypatch.setenv("HOLDFAST_DSN", "postgresql://ann:s3cret@db.example/app")
    monkeypatch.setenv("HOLDFAST_HOME", "somewhere")

    found = config.load()

    assert found.dsn.get_secret_value() == "postgresql://ann:s3cret@db.example/app"
    assert found.home == Path.cwd() / "somewhere"


def test_an_empty_variable_is_an_unset_one(monkeypatch):
    monkeypatch.setenv("HOLDFAST_DSN", "")

    assert config.load().dsn is None


def test_a_password_is_not_shown():
    assert "s3cret" not in repr(config.Config(dsn="postgresql://ann:s3cret@db.example/app"))


def test_it_cannot_be_changed():
    with pytest.raises(ValidationError):
        config.load().home = Path("/elsewhere")


def test_an_address_that_cannot_be_read_is_refused_without_showing_it():
    with pytest.raises(BadAddress, match="HOLDFAST_DSN") as raised:
        config.Config(dsn="host=db.example s3cret")

    assert "s3cret" not in str(raised.value)


def test_a_name_that_means_nothing_is_a_warning(monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOEM", "typo")

    with pytest.warns(UserWarning, match="HOLDFAST_HOEM"):
        config.load()


@pytest.mark.parametrize(
    ("name", "value", "correct"),
    [
        ("LEASE", "abc", "30s"),
        ("GRACE", "0", "30s"),
        ("POLL_MAX", "99999999999999999999d", "30s"),
        ("LOG_LEVEL", "loud", "warning"),
        ("LISTEN", "maybe", "false"),
        ("POLL_FACTOR", "0.5", "1 or more"),
        ("HOME", "~nobody-of-that-name/data", "folder"),
    ],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_variable(monkeypatch, name, value, correct):
    monkeypatch.setenv(f"HOLDFAST_{name}", value)

    with pytest.raises(BadSetting) as refused:
        config.load()

    assert refused.value.where == f"HOLDFAST_{name}"
    assert value in refused.value.what
    assert correct in refused.value.what


@pytest.mark.parametrize("command", [("config",), ("runs", "list"), ("worker", "--app", "holdfast.demo.orders:hf")])
def test_a_command_says_so_in_few_lines(cli, command):
    done = cli(*command, lease="abc", log_level="loud")

    assert (done.returncode, done.stdout) == (2, "")
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["error", "also", "next"]
    assert ("HOLDFAST_LEASE" in done.stderr, "HOLDFAST_LOG_LEVEL" in done.stderr) == (True, True)


def test_an_app_is_refused_by_the_same_error(monkeypatch):
    monkeypatch.setenv("HOLDFAST_LOG_LEVEL", "loud")

    with pytest.raises(BadSetting) as refused:
        Holdfast().dsn  # noqa: B018 - reading it loads the settings

    assert refused.value.where == "HOLDFAST_LOG_LEVEL"


def test_each_variable_that_an_option_reads_is_a_setting():
    """`holdfast worker` reads HOLDFAST_APP, which was said to mean nothing."""
    read = {p.envvar for command in typer.main.get_command(app).commands.values() for p in command.params if p.envvar}

    assert read == {"HOLDFAST_APP"}
    assert config.unknown_names(read) == []


def test_a_secret_is_read_from_the_file_that_is_named(monkeypatch, tmp_path):
    """As containers hand them over; the variable itself goes before its file."""
    (tmp_path / "dsn").write_text("postgresql://ann:s3cret@db.example/app\n")
    monkeypatch.setenv("HOLDFAST_DSN_FILE", str(tmp_path / "dsn"))

    assert config.load().dsn.get_secret_value() == "postgresql://ann:s3cret@db.example/app"
    assert config.source("dsn") == "file"
    monkeypatch.setenv("HOLDFAST_DSN", "postgresql://other.example/app")
    assert config.load().dsn.get_secret_value() == "postgresql://other.example/app"
    assert config.source("dsn") == "environment"


@pytest.mark.parametrize("content", [None, b"", b"\xff\xfe", b"host=db.example s3cret"])
def test_a_file_that_holds_no_address_is_refused_without_showing_it(monkeypatch, tmp_path, content):
    if content is not None:
        (tmp_path / "dsn").write_bytes(content)
    monkeypatch.setenv("HOLDFAST_DSN_FILE", str(tmp_path / "dsn"))

    with pytest.raises(BadAddress, match="HOLDFAST_DSN") as raised:
        config.load()

    assert "s3cret" not in str(raised.value)


def test_only_a_secret_has_a_file(monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOME_FILE", "somewhere")

    with pytest.warns(UserWarning, match="HOLDFAST_HOME_FILE"):
        config.load()


def test_config_shows_each_setting_its_source_and_its_meaning_and_no_secret(holdfast, tmp_path):
    """Whatever settings there are; without a database."""
    (tmp_path / "dsn").write_text("postgresql://ann:s3cret@db.example/app")

    done = holdfast("config", "--json", dsn_file=tmp_path / "dsn", home=tmp_path)
    lines = holdfast("config", dsn="host=db.example user=ann password=s3cret").stdout

    rows = {row["name"]: row for row in json.loads(done.stdout)["settings"]}
    assert list(rows) == config.known_names()
    assert all(row["description"] for row in rows.values())
    assert rows["HOLDFAST_DSN"]["value"] == "postgresql://ann:***@db.example/app"
    assert (rows["HOLDFAST_DSN"]["source"], rows["HOLDFAST_HOME"]["source"]) == ("file", "environment")
    assert "HOLDFAST_DSN\tuser=ann password=*** host=db.example\tenvironment\t" in lines
    assert "s3cret" not in done.stdout + lines


@pytest.mark.parametrize(
    ("dsn", "meant"),
    [
        ("host=a,b dbname=app", "read-write"),
        ("postgresql://ann@a:5432,b:5433/app", "read-write"),
        ("postgresql://ann@a,b/app?connect_timeout=3", "read-write"),
        ("host=a,b dbname=app target_session_attrs=any", "any"),
        ("host=a dbname=app", None),
    ],
)
def test_of_several_hosts_the_writer_is_meant_unless_said_otherwise(dsn, meant):
    """R14: a standby would refuse all we do."""
    assert conninfo_to_dict(config.to_writer(dsn)).get("target_session_attrs") == meant
