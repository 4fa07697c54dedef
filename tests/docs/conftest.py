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
