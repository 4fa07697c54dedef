"""Settings: where they come from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest
from pydantic import ValidationError

from holdfast import config
from holdfast.errors import BadAddress


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    for name in config.known_names():
        monkeypatch.delenv(name, raising=False)


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
    with pytest.raises(BadAddress, match="HOLDFAST_DSN cannot be read") as raised:
        config.Config(dsn="host=db.example s3cret")

    assert "s3cret" not in str(raised.value)


def test_a_name_that_means_nothing_is_a_warning(monkeypatch):
    monkeypatch.setenv("HOLDFAST_HOEM", "typo")

    with pytest.warns(UserWarning, match="HOLDFAST_HOEM is no setting of Holdfast"):
        config.load()
