"""An app on a database of its own; every test leaves a sound database behind."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast import Holdfast
from kernel.conftest import sound
from kernel.steps import violations

__all__ = ["hf", "log_lines", "sound"]


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert violations(connection) == []


@pytest.fixture
def log_lines() -> Iterator[list[dict[str, object]]]:
    """What is logged while the test runs, as fields."""
    from structlog.testing import capture_logs

    with capture_logs() as lines:
        yield lines
