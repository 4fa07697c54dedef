"""The command line as people and scripts run it: its exit code, and what it printed where.

A command that only reads or acts runs inside the test's process. Others, and all on a terminal, have their own.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from contextlib import suppress

import pytest

from cli import in_process
from servers import owned_server

MAIN = "from holdfast.cli import main; main()"


@pytest.fixture(scope="session")
def home(tmp_path_factory):
    """A home whose server runs for all tests of the command line."""
    home = tmp_path_factory.mktemp("cli") / "home"
    with owned_server(home):
        yield home


def environment(**settings):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    return clean | {f"HOLDFAST_{name.upper()}": str(value) for name, value in settings.items()}


@pytest.fixture
def holdfast(home):
    """Run a command to its end; keyword arguments are settings, HOLDFAST_HOME among them unless another is given."""

    def run(*arguments, **settings):
        command = [sys.executable, "-c", MAIN, *arguments]
        return subprocess.run(
            command, env=environment(**({"home": home} | settings)), capture_output=True, text=True, timeout=100
        )

    return run


@pytest.fixture
def cli(dsn, tmp_path):
    """Run a command on the test's own database; `dsn` and other keyword arguments are settings."""

    def run(*arguments, stdin=None, **settings):
        surroundings = environment(**({"dsn": dsn, "home": tmp_path / "no home"} | settings))
        if in_process.is_fit(arguments):
            return in_process.run(arguments, surroundings, stdin)
        command = [sys.executable, "-c", MAIN, *arguments]
        return subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=100, input=stdin)

    return run


@pytest.fixture
def terminal(dsn, tmp_path):
    """Run a command as on a terminal, `typed` being what its user types; gives exit code and screen."""

    def run(*arguments, typed="", columns=200, **settings):
        master, slave = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            env=environment(**({"dsn": dsn, "home": tmp_path / "no home"} | settings))
            | {"COLUMNS": str(columns), "TERM": "xterm"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        os.write(master, typed.encode())
        screen = b""
        with suppress(OSError):  # the end of a terminal is an error
            while part := os.read(master, 65536):
                screen += part
        os.close(master)
        return process.wait(timeout=60), screen.decode()

    return run


@pytest.fixture
def found(cli):
    """Run a command with --json that must succeed, and give what it printed."""

    def run(*arguments, **settings):
        done = cli(*arguments, "--json", **settings)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run
