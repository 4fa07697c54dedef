"""Debian's PgBouncer in transaction mode before a test's server, where it is installed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.embedded.rights import identity
from scenarios.crew import until

PROGRAM = shutil.which("pgbouncer", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
POOL = 8  # connections to the server, shared by all clients
SETTINGS = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {own_port}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = {pool}
max_client_conn = 500
"""


@contextmanager
def pooled(dsn: str) -> Iterator[str]:
    """Run it for as long as the block lasts, and give the address of the same database through it."""
    server = conninfo_to_dict(dsn)
    with tempfile.TemporaryDirectory(prefix="hf-pooler-") as made:
        folder = Path(made)
        folder.chmod(0o755)
        with socket.create_server(("127.0.0.1", 0)) as free:
            own_port = free.getsockname()[1]
        (folder / "users").write_text(f'"{server["user"]}" ""\n')
        told = SETTINGS.format(
            host=server["host"], port=server.get("port", 5432), own_port=own_port, users=folder / "users", pool=POOL
        )
        (folder / "settings").write_text(told)
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*_unprivileged(), str(PROGRAM), str(folder / "settings")], stderr=log)
        try:
            address = {"host": "127.0.0.1", "port": own_port, "user": server["user"], "dbname": server["dbname"]}
            address = make_conninfo("", **address, sslmode="disable", gssencmode="disable")
            until(lambda: _answers(address), f"the pooler answered: {(folder / 'log').read_text()}")
            yield address
        finally:
            process.terminate()
            process.wait(10)


def _unprivileged() -> list[str]:
    """It refuses to run as root; as the server's own user it may pass the door to the server's socket."""
    if os.geteuid() != 0:
        return []
    who = identity()
    return ["setpriv", f"--reuid={who.uid}", f"--regid={who.gid}", "--clear-groups", "--pdeathsig=KILL", "--"]


def _answers(address: str) -> bool:
    try:
        psycopg.connect(address).close()
    except psycopg.OperationalError:
        return False
    return True
