"""A server that a test may kill, a database on it, and a crew of workers that ends with the test."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import elder
from holdfast.testing import Template
from scenarios.crew import Crew, Database, Server
from scenarios.home import HomeServer
from scenarios.proxy import FaultProxy
from servers import ELDER, EMBEDDED, owned_server


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """X-01: what is tested here is processes, and one server's version will do; where it may not, a test says so."""
    if "server" in metafunc.fixturenames:
        elder_too = [pytest.param(ELDER, marks=pytest.mark.long)]
        kinds = [EMBEDDED, *(elder_too if metafunc.definition.get_closest_marker("both_servers") else [])]
        metafunc.parametrize("server", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """One that no other test uses: here it is killed. Its folder has a short name, for the socket's sake."""
    if request.param == ELDER:
        elder.skip_unless_installed()
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with elder.elder_server(folder / "elder") if request.param == ELDER else home_server(folder / "home") as server:
            yield server


@contextmanager
def home_server(home: Path) -> Iterator[HomeServer]:
    with owned_server(home):
        server = HomeServer(home)
        with psycopg.connect(server.admin, autocommit=True) as admin:
            for setting in ("fsync", "full_page_writes"):  # processes are killed, not machines
                admin.execute(f"alter system set {setting} = off")
            admin.execute("select pg_reload_conf()")
        yield server


@pytest.fixture(scope="session")
def template(server: Server) -> Template:
    """Takes the place of the one for all tests."""
    return Template(server.admin)


@pytest.fixture
def dsn(template: Template) -> Iterator[str]:
    """A database of its own for each test: these leave more behind than rows."""
    with template.clone() as dsn:
        yield dsn


@pytest.fixture
def database(server: Server, dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    database.do("create table public.effects (step_id bigint, lease_id bigint)")
    yield database
    server.start()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the crew's handlers write, and their gates are."""
    return tmp_path


@pytest.fixture
def crew(database: Database, folder: Path) -> Iterator[Crew]:
    crew = Crew(database.dsn, folder)
    try:
        yield crew
    finally:
        crew.dismiss()


@pytest.fixture
def proxy(database: Database) -> Iterator[FaultProxy]:
    """A way to the test's database that can be made to fail."""
    with FaultProxy(database.dsn) as proxy:
        yield proxy


@pytest.fixture
def far_crew(proxy: FaultProxy, folder: Path) -> Iterator[Crew]:
    """Workers that reach the database through the proxy."""
    crew = Crew(proxy.dsn, folder)
    try:
        yield crew
    finally:
        crew.dismiss()
