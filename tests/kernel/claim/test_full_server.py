"""A server, database or login that has no connection left to give: told as that, with the figures that are known."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

import elder
from cluster import FAST, Cluster
from holdfast import Holdfast
from holdfast.connections.deadline import connect, why_not_connected
from holdfast.errors import DatabaseError, TooManyConnections, Unreachable
from kernel.steps import DB
from worker.running import until

pytestmark = pytest.mark.one_server
LIMITS = {
    "role": sql.SQL("alter role {role} connection limit {limit}"),
    "database": sql.SQL("alter database {database} connection limit {limit}"),
}


@pytest.fixture
def limited(dsn: str, db: DB) -> Iterator[str]:
    """The address of a login that limits hold for: they do not for superusers."""
    name = f"hf_limited_{os.getpid()}"
    db.execute(sql.SQL("create role {} login in role hf_worker, hf_producer").format(sql.Identifier(name)))
    yield make_conninfo(dsn, user=name)
    db.execute(sql.SQL("drop role {}").format(sql.Identifier(name)))


def limit(db: DB, address: str, what: str, most: int) -> None:
    parts = {"role": sql.Identifier(f"hf_limited_{os.getpid()}"), "database": sql.Identifier(db.info.dbname)}
    db.execute(LIMITS[what].format(limit=sql.Literal(most), **parts))


@pytest.mark.own_database  # its limit is not a row
@pytest.mark.parametrize("what", ["role", "database"])
def test_a_limit_that_is_reached_is_named(db: DB, limited: str, what: str) -> None:
    limit(db, limited, what, 1 if what == "role" else 2)  # the database has the test's own connection
    with psycopg.connect(limited), pytest.raises(TooManyConnections) as raised:
        Holdfast(limited).handle(1).status()

    assert f"too many connections for {what}" in str(raised.value)
    assert raised.value.exit_code == 7


def test_a_pool_that_cannot_grow_says_why_and_how_many_it_may_have(
    db: DB, limited: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited for its deadline, and then said that the server might not run."""
    monkeypatch.setenv("HOLDFAST_CALL_DEADLINE", "1s")
    with closing(Holdfast(limited)) as hf, hf._engine.connection():
        limit(db, limited, "role", 1)
        with pytest.raises(TooManyConnections) as raised:
            hf.handle(1).status()

    assert any("up to 10 connections" in note for note in raised.value.__notes__)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        ("FATAL:  the database system is starting up", Unreachable),
        ("FATAL:  the database system is shutting down", Unreachable),
        ("FATAL:  terminating connection due to administrator command", Unreachable),
        ("server closed the connection unexpectedly", Unreachable),
        ("FATAL:  no more connections allowed (max_client_conn)", TooManyConnections),  # PgBouncer's
    ],
)
def test_a_server_that_lets_nobody_in_for_now_is_an_outage(words: str, error: type[DatabaseError]) -> None:
    """W-34: what a worker waits for, and other commands end with 7."""
    found = why_not_connected(words)

    assert (type(found), found.exit_code) == (error, 7)
    assert words in str(found)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A short path, for the socket's sake, that the server's own user can reach."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def connected(address: str) -> psycopg.Connection[object]:
    """Connect as soon as the server has let go of the slot of a login that it refused."""
    for _ in range(1000):
        with suppress(psycopg.OperationalError):
            return psycopg.connect(address)
    return psycopg.connect(address)


def refusal(address: str) -> str:
    with pytest.raises(TooManyConnections) as refused:
        connect(address)
    return str(refused.value)


def test_a_server_that_is_full_is_told_from_one_that_is_not_there(folder: Path) -> None:
    """With a slot for its superuser left, and with none."""
    elder.skip_unless_installed()
    cluster = Cluster(
        elder.BINARIES, folder / "c", settings=(*FAST, "max_connections=2", "superuser_reserved_connections=1")
    )
    cluster.make()
    try:
        cluster.start()
        with psycopg.connect(cluster.admin, autocommit=True) as admin:
            admin.execute("create role ann login")
            ann = make_conninfo(cluster.admin, user="ann")
            until(lambda: "reserved" in refusal(ann), "the slot of who had asked whether the server was up was free")
            with connected(cluster.admin), pytest.raises(TooManyConnections, match="too many clients"):
                connect(cluster.admin)
    finally:
        cluster.halt()
