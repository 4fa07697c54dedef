"""Every test of the kernel leaves a sound database, unless it says that it breaks one."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from kernel.steps import violations


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "unsound: the test leaves rows that holdfast.violations() lists")


@pytest.fixture(autouse=True)
def sound(request: pytest.FixtureRequest) -> Iterator[None]:
    if "dsn" not in request.fixturenames:
        yield
        return
    dsn = request.getfixturevalue("dsn")
    yield
    if request.node.get_closest_marker("unsound") is None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            assert violations(connection) == []
