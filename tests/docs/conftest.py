"""A home for what begins with nothing, a clone for the rest, on one server: other tests see to the versions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import embedded
from holdfast.testing import Template
from servers import owned_server, reaped

LONGEST = "test_pages_read_in_one_database_give_what_they_show"


@pytest.hookimpl(trylast=True)  # after pytest has put tests in order by their servers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin the longest of all tests first: at the end, one process would run them while the others wait."""
    items.sort(key=lambda item: not item.name.startswith(LONGEST))


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    """Takes the place of the one for all tests."""
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    folder.chmod(0o755)
    with owned_server(folder / "home"):
        yield Template(embedded.admin_dsn(folder / "home"))
    shutil.rmtree(folder)


@pytest.fixture
def home() -> Iterator[Path]:
    """One that nothing was started in; what a page starts there ends with the test."""
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    folder.chmod(0o755)
    with reaped(folder / "home"):
        yield folder / "home"
    shutil.rmtree(folder)
