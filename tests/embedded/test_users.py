"""Ordinary users: each has a server of their own beside the others', and nobody uses another's home."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil
import pytest

from embedded.others import as_user, ensuring, output, path_to, python_of
from holdfast import embedded
from holdfast.errors import EmbeddedFailed
from servers import owned_server, reaped

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become other users")

STOP = "import sys, pathlib; from holdfast import embedded; print(embedded.stop(pathlib.Path(sys.argv[1])))"


class User:
    """A user of the machine with a home folder, who runs a Python that finds our package."""

    def __init__(self, name: str, folder: Path) -> None:
        python = python_of(name)
        if python is None:
            pytest.skip(f"user {name} can reach no Python with our package in it")
        self.name, self.python, self.home = name, python, folder / "home"
        folder.mkdir(mode=0o700)
        shutil.chown(folder, name)

    def start(self, home: Path | None = None) -> subprocess.Popen:
        return ensuring(home or self.home, python=self.python, prefix=as_user(self.name), cwd="/")

    def stop(self) -> str:
        command = [*as_user(self.name), self.python, "-c", STOP, str(self.home)]
        return subprocess.run(
            command, env=path_to(), capture_output=True, text=True, cwd="/", check=True
        ).stdout.strip()


@pytest.fixture
def public():
    with TemporaryDirectory(prefix="holdfast-test-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def server_of(home):
    return psutil.Process(int((home / "pgdata" / "postmaster.pid").read_text().split()[0]))


def test_two_users_each_have_a_server_of_their_own_at_the_same_time(public):
    users = [User("daemon", public / "one"), User("games", public / "two")]
    try:
        for process in [user.start() for user in users]:
            output(process)

        owners = [server_of(user.home).username() for user in users]
    finally:
        stopped = [user.stop() for user in users]

    assert owners == ["daemon", "games"]
    assert stopped == ["True", "True"]


def test_an_ordinary_user_is_told_that_a_home_is_roots(public):
    user = User("daemon", public / "one")
    with owned_server(public / "home"):
        embedded.stop(public / "home")

        starter = user.start(public / "home")
        _, err = starter.communicate()

    assert starter.returncode == 1
    assert "root (uid 0)" in err
    assert "daemon (uid 1)" in err
    assert "run this as root (uid 0), or set HOLDFAST_HOME" in err


def test_root_is_told_that_a_home_is_an_ordinary_users(public):
    home = public / "home"
    home.mkdir(mode=0o700)
    shutil.chown(home, "daemon")

    with reaped(public / "none"), pytest.raises(EmbeddedFailed, match=r"daemon .*root"):
        embedded.ensure(home)

    assert list(home.iterdir()) == []
