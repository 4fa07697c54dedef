"""The server's disk is full: until nothing can be written, not even the log of what was."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from cluster import FAST, Cluster
from holdfast import embedded
from holdfast.errors import DiskFull
from holdfast.kernel import migrate
from scenarios.crew import Crew, Database, until
from scenarios.producing import acknowledged, producing
from scenarios.proof import Proof

ROOM = "160m"
BLOCK = bytes(64 * 1024)
SMALL_WAL = ("min_wal_size=2MB", "max_wal_size=8MB")

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")


@contextmanager
def mounted(place: Path) -> Iterator[Path]:
    """A small disk in memory, gone after the block."""
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM},mode=755", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def disk() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        with mounted(Path(name, "disk")) as disk:
            yield disk


@pytest.fixture
def cluster(disk: Path) -> Iterator[Cluster]:
    """A server with its files on that disk, and WAL in small pieces, so that the end of one is near."""
    programs, settings = embedded.binary("postgres").parent, (*FAST, *SMALL_WAL)
    cluster = Cluster(programs, disk / "pg", settings=settings, log=disk.parent / "log")
    try:
        cluster.make("--wal-segsize=1")
        cluster.start()
        yield cluster
    finally:
        cluster.halt()


@pytest.fixture
def database(cluster: Cluster) -> Database:
    with psycopg.connect(cluster.admin, autocommit=True) as admin:
        admin.execute("create database chores")
    database = Database(cluster.admin.replace("dbname=postgres", "dbname=chores"))
    migrate.run(database.dsn)
    database.do("create table public.effects (step_id bigint, lease_id bigint)")
    return database


def fill(disk: Path) -> Path:
    """Take all room that is left, as another program's files would."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(BLOCK) == len(BLOCK):
                pass
        except OSError:
            return ballast
    return ballast


def recycle_wal(cluster: Cluster) -> None:
    """Keep a written piece of WAL for the next one, so that it is rows which lack room first."""
    with psycopg.connect(cluster.admin, autocommit=True) as connection:
        connection.execute("checkpoint")


def write_until_the_server_gives_up(cluster: Cluster) -> None:
    """Have it write what changes no row: rows cannot be added any more, and so hardly anything is written."""
    written = "select pg_logical_emit_message(false, '', repeat('x', 100000)) from generate_series(1, 1000)"
    with pytest.raises(psycopg.OperationalError), psycopg.connect(cluster.admin, autocommit=True) as connection:
        connection.execute(written)
    until(lambda: "PANIC" in cluster.log(), "it said why")


@pytest.mark.timeout(300)
def test_a_full_disk_is_told_and_loses_nothing_and_all_heals_when_there_is_room(
    disk: Path, cluster: Cluster, crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R18: first no row can be added, then its log of changes cannot be written and the server gives up."""
    workers = [crew.hire_ready() for _ in range(2)]
    with producing(database.dsn) as told:
        until(lambda: database.count("succeeded") > 100, "work went on")
        recycle_wal(cluster)
        ballast = fill(disk)
        until(lambda: any(isinstance(error, DiskFull) for one in told for error in one.refusals), "it was told")
        write_until_the_server_gives_up(cluster)
        proof.add(rounds=1, kills=1)
        before = acknowledged(told)
        ballast.unlink()
        cluster.start()
        until(lambda: acknowledged(told) > before + 100, "tasks were started again")
    started = acknowledged(told)

    until(lambda: database.count("succeeded") >= started, "all were done")

    proof.check(database, folder, started=started)
    assert [worker.process.poll() for worker in workers] == [None, None]
    said = [str(error) for one in told for error in one.refusals if isinstance(error, DiskFull)]
    assert all("nothing was changed" in words for words in said)
