"""An app on a database of its own; every test leaves a sound database behind."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from holdfast import Holdfast
from kernel.steps import violations


@pytest.fixture
def hf(dsn: str) -> Iterator[Holdfast]:
    app = Holdfast(dsn)
    yield app
    app.close()
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert violations(connection) == []
