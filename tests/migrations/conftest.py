"""A server without Holdfast's roles, and databases of a login that is no superuser: what a managed server gives you."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import elder
from dump_schema import dump
from holdfast import embedded
from servers import ELDER, EMBEDDED, owned_server

BUILDER = "builder"  # may make roles, and owns the databases it migrates
NUMBERS = count(1)


@dataclass(frozen=True)
class Server:
    admin: str
    name: str
    databases: list[str] = field(default_factory=list)

    def database(self, owner: str = BUILDER) -> str:
        """Make an empty database, and give the DSN of its owner."""
        name = f"m{next(NUMBERS)}"
        self.execute("create database {} owner {}", name, owner)
        self.databases.append(name)
        return make_conninfo(self.admin, dbname=name, user=owner)

    def login(self, name: str, options: str = "") -> str:
        """Make a login, and give its name."""
        self.execute("create role {} login " + options, name)
        return name

    def execute(self, statement: str, *names: str) -> None:
        """Do something as a superuser."""
        with psycopg.connect(self.admin, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def program(self, name: str) -> Path:
        return embedded.binary(name) if self.name == EMBEDDED else elder.BINARIES / name

    def dump(self, dsn: str) -> str:
        """Write out the schema of a database, without what differs from dump to dump."""
        return dump(self.program("pg_dump"), as_admin(dsn, self.admin))


def as_admin(dsn: str, admin: str) -> str:
    """Give the superuser's DSN of the same database."""
    return make_conninfo(admin, dbname=psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


@pytest.fixture(scope="session", params=[EMBEDDED, ELDER])
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == ELDER:
        elder.skip_unless_installed()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp")))
        folder.chmod(0o755)
        if request.param == EMBEDDED:
            stack.enter_context(owned_server(folder / "home"))
            admin = embedded.admin_dsn(folder / "home")
        else:
            admin = stack.enter_context(elder.elder_server(folder / "elder")).admin
        made = Server(admin, request.param)
        for setting in ("fsync", "full_page_writes"):  # tests kill processes, not machines
            made.execute(f"alter system set {setting} = off")
        made.execute("select pg_reload_conf()")
        made.login(BUILDER, "createrole")
        yield made


@pytest.fixture(autouse=True)
def swept(request: pytest.FixtureRequest) -> Iterator[None]:
    """Drop what a test has made: hundreds of databases make a server slow to stop."""
    yield
    if "server" in request.fixturenames:
        server: Server = request.getfixturevalue("server")
        while server.databases:
            server.execute("drop database {} with (force)", server.databases.pop())
