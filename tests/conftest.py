"""Servers for the session, a database for each test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from psycopg import Connection

import elder
import properties.conftest  # noqa: F401 - its profiles, also for tests that are collected before those
from holdfast import embedded
from holdfast.testing import Clock, Template
from servers import ELDER, EMBEDDED, owned_server
from wiped import WipedDatabase

pytest_plugins = ["evidence"]


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "one_server: an older server would add nothing; the newest alone is used")
    config.addinivalue_line("markers", "own_database: a test whose database is dropped after it, not wiped")
    config.addinivalue_line("markers", "both_servers: a scenario that runs on the oldest server too, with --faults")


NEWEST_ALONE = frozenset({"cli"})  # folders whose reads tests/shape runs on both servers


@pytest.hookimpl(tryfirst=True)  # before pytest reads what is parametrised
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    definition = metafunc.definition
    is_alone = definition.get_closest_marker("one_server") or definition.path.parent.name in NEWEST_ALONE
    if "template" in metafunc.fixturenames and is_alone:
        metafunc.definition.add_marker(pytest.mark.parametrize("template", [EMBEDDED], indirect=True, scope="session"))


@pytest.fixture(scope="session", params=[EMBEDDED, ELDER])
def template(request: pytest.FixtureRequest) -> Iterator[Template]:
    """X-01: each test that uses a database runs on the newest and on the oldest server."""
    if request.param == ELDER:
        elder.skip_unless_installed()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hf-", dir=_roomiest())))
        folder.chmod(0o755)
        if request.param == EMBEDDED:
            stack.enter_context(owned_server(folder / "home"))
            admin = embedded.admin_dsn(folder / "home")
            _make_fast(admin)
        else:
            admin = stack.enter_context(elder.elder_server(folder / "elder")).admin
        template = Template(admin)
        yield template
        WipedDatabase.on(template).drop()


@pytest.fixture
def wiped(template: Template) -> WipedDatabase:
    """The one on this test's server: the tests of faults have a template of their own."""
    return WipedDatabase.on(template)


@pytest.fixture
def dsn(request: pytest.FixtureRequest, template: Template, wiped: WipedDatabase) -> Iterator[str]:
    """A database that is as the migrations left it: one that is wiped, or where a test says so one of its own."""
    is_own = request.node.get_closest_marker("own_database") is not None
    with template.clone() if is_own else wiped.lent() as dsn:
        yield dsn


@pytest.fixture
def db(dsn: str, wiped: WipedDatabase) -> Iterator[Connection[Any]]:
    kept = wiped.connection(dsn)
    if kept is not None:
        yield kept
        return
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection


@pytest.fixture
def clock(db: Connection[Any]) -> Clock:
    return Clock(db)


def _roomiest() -> str:
    """In memory where there is room for two servers, else on disk.

    Not pytest's own folder: its path is too long for a socket, and closed to the user that the server runs as.
    """
    memory = Path("/dev/shm")
    wanted = 12 * 2**30
    if not memory.is_dir() or min(shutil.disk_usage(memory).free, psutil.virtual_memory().available) < wanted:
        return "/tmp"
    return str(memory)


def _make_fast(admin: str) -> None:
    """Tests kill processes, not machines: what is in the page cache stays."""
    with psycopg.connect(admin, autocommit=True) as connection:
        for setting in ("fsync", "full_page_writes"):
            connection.execute(f"alter system set {setting} = off")
        connection.execute("select pg_reload_conf()")
