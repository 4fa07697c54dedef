"""A server that a test may kill, a database on it, and a crew of workers that ends with the test."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from holdfast import embedded
from holdfast.testing import Template
from scenarios.crew import Crew, Database, Server
from scenarios.proxy import FaultProxy
from servers import owned_server


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One that no other test uses: here it is killed. Its folder has a short name, for the socket's sake."""
    folder = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
    folder.chmod(0o755)
    with owned_server(folder / "home"):
        with psycopg.connect(embedded.admin_dsn(folder / "home"), autocommit=True) as admin:
            for setting in ("fsync", "full_page_writes"):  # processes are killed, not machines
                admin.execute(f"alter system set {setting} = off")
            admin.execute("select pg_reload_conf()")
        yield Server(folder / "home")
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def template(server: Server) -> Template:
    """Takes the place of the one for all tests: what is tested here is processes, and one server's version will do."""
    return Template(embedded.admin_dsn(server.home))


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
