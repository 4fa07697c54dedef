"""`holdfast --help` imports what it prints and no more, and says of each command what the command says of itself."""

from __future__ import annotations

import subprocess
import sys

import pytest

from cli.conftest import environment
from holdfast.cli import ENTRIES
from holdfast.cli.lazy import LazyCommands

# Each of these takes a good part of the time that the help takes now.
HEAVY = (
    "asyncio", "fastapi", "holdfast.app", "holdfast.cli.runs", "holdfast.config", "holdfast.flow.cli",
    "holdfast.kernel", "holdfast.reads", "holdfast.worker", "importlib.metadata", "prometheus_client", "psycopg",
    "pydantic", "structlog",
)  # fmt: skip
SHOW = """
import sys
from holdfast.cli import main
try:
    main()
finally:
    print(*[name for name in sys.argv[2].split(",") if name in sys.modules], file=sys.stderr)
"""


def test_help_imports_no_heavy_module() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SHOW, "--help", ",".join(HEAVY)], env=environment(), capture_output=True, text=True
    )

    assert done.returncode == 0, done.stderr
    assert all(name in done.stdout for name in ENTRIES)
    assert done.stderr.split() == []


@pytest.mark.parametrize("name", ENTRIES)
def test_the_list_of_commands_says_what_each_says_of_itself(name: str) -> None:
    """The first paragraph of its help, which is not imported for the list."""
    commands = LazyCommands(ENTRIES)
    listed = commands.listed(name)

    assert listed is not None
    assert commands[name].help.partition("\n\n")[0].replace("\n", " ") == listed.help
