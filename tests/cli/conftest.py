"""The command line as people and scripts run it: another process, its exit code, and what it printed where."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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
            command, env=environment(**({"home": home} | settings)), capture_output=True, text=True, timeout=60
        )

    return run
