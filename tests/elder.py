"""Debian's PostgreSQL 15, where it is installed: the oldest server that Holdfast runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from holdfast.embedded import locks

BINARIES = Path("/usr/lib/postgresql/15/bin")
FAST = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "shared_buffers=128MB", "-c", "jit=off"]


def is_installed() -> bool:
    return (BINARIES / "postgres").exists()


@contextmanager
def elder_server(folder: Path) -> Iterator[str]:
    """Run it for as long as the block lasts, and no longer than this process lives."""
    folder.mkdir(mode=0o700)
    data = folder / "data"
    if os.geteuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")
    run = [
        *_unprivileged(),
        BINARIES / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
    ]
    subprocess.run([*run, "--no-sync"], check=True, stdout=subprocess.DEVNULL, cwd="/")
    command = [BINARIES / "postgres", "-D", data, "-k", folder, "-c", "listen_addresses=", *FAST]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [*_unprivileged("--pdeathsig", "QUIT"), *command], cwd="/", stdout=log, stderr=log, process_group=0
        )
    dsn = f"host={folder} user=postgres dbname=postgres"
    try:
        assert locks.until(lambda: _answers(dsn), within=locks.timedelta(seconds=30)), (folder / "log").read_text()
        yield dsn
    finally:
        server.terminate()
        try:
            server.wait(10)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()


def _unprivileged(*options: str) -> list[str]:
    drop = ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"] if os.geteuid() == 0 else []
    return ["setpriv", *drop, *options] if drop or options else []


def _answers(dsn: str) -> bool:
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError:
        return False
    return True
