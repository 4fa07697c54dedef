"""The one PostgreSQL of a run: the embedded one in a folder of its own, or that of HOLDFAST_BENCH_DSN; and a redis."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.sql import SQL, Identifier, Literal

from holdfast import embedded
from holdfast.embedded.owned import owned_server

SETTINGS = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "15min",
    "work_mem": "32MB",
    "jit": "off",
    "fsync": "on",
    "synchronous_commit": "on",
}
SHOWN = (*SETTINGS, "autovacuum_vacuum_scale_factor", "autovacuum_naptime", "max_connections")
OWNER = "holdfast"  # the embedded server's plain login: nobody is measured as a superuser


class Server:
    """A server that the run may make databases in; what it has made is dropped at the end."""

    def __init__(self, admin: str, folder: Path, owner: str | None) -> None:
        self.folder = folder
        self._admin = admin
        self._owner = owner
        self._made: set[str] = set()
        self._redis: subprocess.Popen[bytes] | None = None
        self._redis_port = 0

    def fresh(self, name: str, template: str | None = None, *, is_large: bool = False) -> str:
        """Make a database, empty or a copy, in place of one of that name, and return the address its engine uses."""
        database = self.name_of(name)
        self.drop(database)
        copied = SQL(" template {}").format(Identifier(self.name_of(template))) if template else SQL("")
        if is_large:
            copied += SQL(" strategy file_copy")
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(SQL("create database {}").format(Identifier(database)) + copied)
            if self._owner:
                owned = SQL("alter database {} owner to {}")
                connection.execute(owned.format(Identifier(database), Identifier(self._owner)))
        self._made.add(database)
        return _address(self._admin, database, self._owner)

    def has(self, name: str) -> bool:
        """Return whether this run has made a database of that name."""
        return self.name_of(name) in self._made

    def name_of(self, name: str) -> str:
        """Return the name that a database of this run has in the server."""
        return f"holdfast_bench_{os.getpid()}_{''.join(c if c.isalnum() else '_' for c in name)}"

    def admin(self, dsn: str = "") -> str:
        """Return the administrator's address of the same database."""
        return _address(self._admin, conninfo_to_dict(dsn).get("dbname") or "postgres", None)

    def settle(self, dsn: str) -> None:
        """Finish old work before the measured time: vacuum, statistics, checkpoint."""
        with psycopg.connect(self.admin(dsn), autocommit=True) as connection:
            connection.execute("vacuum analyze")
            connection.execute("checkpoint")

    def ask(self, dsn: str, query: str) -> Any:
        """Return the one value that a query answers."""
        with psycopg.connect(self.admin(dsn), autocommit=True) as connection:
            row = connection.execute(query.encode()).fetchone()
        return row[0] if row else None

    def drop(self, database: str) -> None:
        with psycopg.connect(self._admin, autocommit=True) as connection:
            connection.execute(SQL("drop database if exists {} with (force)").format(Identifier(database)))
        self._made.discard(database)

    def describe(self) -> dict[str, Any]:
        """Return version and settings for the report."""
        with psycopg.connect(self._admin, autocommit=True) as connection:
            settings = {
                name: connection.execute(SQL("show {}").format(Identifier(name))).fetchone()[0] for name in SHOWN
            }  # type: ignore[index]
        return {"version": self.ask("", "show server_version"), "settings": settings}

    def redis(self) -> str:
        """Start a redis on loopback unless it runs, with its own defaults, and give its address."""
        if self._redis is None:
            with socket.create_server(("127.0.0.1", 0)) as free:
                self._redis_port = free.getsockname()[1]
            program = shutil.which("redis-server")
            if program is None:
                raise RuntimeError("redis-server is not there")
            self.folder.mkdir(parents=True, exist_ok=True)
            command = [program, "--port", str(self._redis_port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
            self._redis = subprocess.Popen(command, stdout=subprocess.DEVNULL, process_group=0)
            _wait_for_port(self._redis_port)
        return f"redis://127.0.0.1:{self._redis_port}/0"

    def close(self) -> None:
        """Drop what was made, and stop the redis."""
        for database in list(self._made):
            self.drop(database)
        if self._redis is not None:
            self._redis.terminate()
            self._redis.wait()


@contextmanager
def running(folder: Path) -> Iterator[Server]:
    """Run a server while the block runs."""
    named = os.environ.get("HOLDFAST_BENCH_DSN")
    if named:
        server = Server(named, folder, None)
        try:
            yield server
        finally:
            server.close()
        return
    home = folder / "postgresql"
    with owned_server(home, remove=home):
        admin = embedded.admin_dsn(home)
        with psycopg.connect(admin, autocommit=True) as connection:
            for name, value in SETTINGS.items():
                connection.execute(SQL("alter system set {} = {}").format(Identifier(name), Literal(value)))
        embedded.stop(home)
        embedded.ensure(home)
        server = Server(admin, folder, OWNER)
        try:
            yield server
        finally:
            server.close()


def _address(admin: str, database: str, user: str | None) -> str:
    """Write an address that every driver reads: a URL, with a socket's folder as its host parameter."""
    parts = {name: str(value) for name, value in conninfo_to_dict(make_conninfo(admin, dbname=database)).items()}
    login = user or parts.get("user", "postgres")
    secret = f":{parts['password']}" if "password" in parts and not user else ""
    host, port = parts.get("host", ""), f":{parts['port']}" if "port" in parts else ""
    if host.startswith("/") or not host:
        return f"postgresql://{login}{secret}@/{database}?host={host}"
    return f"postgresql://{login}{secret}@{host}{port}/{database}"


def _wait_for_port(port: int) -> None:
    for _ in range(500):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        time.sleep(0.02)
    raise TimeoutError(f"redis did not open port {port}")
