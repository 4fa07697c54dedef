"""Debian's PostgreSQL 15, where it is installed: the oldest server that Holdfast runs on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster import Cluster

BINARIES = Path("/usr/lib/postgresql/15/bin")


def is_installed() -> bool:
    return (BINARIES / "postgres").exists()


def skip_unless_installed() -> None:
    if not is_installed():
        pytest.skip("Debian's postgresql-15 is not installed: `apt-get install postgresql-15`")


@contextmanager
def elder_server(folder: Path) -> Iterator[Cluster]:
    """Run it for as long as the block lasts, and no longer than this process lives."""
    server = Cluster(BINARIES, folder)
    server.make()
    try:
        server.start()
        yield server
    finally:
        server.halt()
