"""Fixtures for tests of apps: a database per test, and its clock. pytest finds them on its own.

They run on a server of their own, or on the one of HOLDFAST_TEST_DSN, whose login must be able to create databases
and roles.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from holdfast.testing import Clock, Template


@pytest.fixture(scope="session")
def holdfast_template() -> Iterator[Template]:
    """The migrated database that is cloned for each test; the server stops with the session."""
    from holdfast.testing import Template, embedded_template  # imported here, because other tests do not need it

    named = os.environ.get("HOLDFAST_TEST_DSN")
    if not named:
        with embedded_template() as template:
            yield template
        return
    template = Template(named)
    yield template
    template.drop()


@pytest.fixture
def holdfast_dsn(holdfast_template: Template) -> Iterator[str]:
    """The DSN of the test's own database, which is dropped after the test."""
    with holdfast_template.clone() as dsn:
        yield dsn


@pytest.fixture
def holdfast_clock(holdfast_dsn: str) -> Iterator[Clock]:
    """The clock of the test's database: freeze it, set it, advance it."""
    from holdfast.connections.deadline import connect
    from holdfast.testing import Clock

    with connect(holdfast_dsn) as connection:
        yield Clock(connection)
