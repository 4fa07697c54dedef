"""The data directory: created once and atomically, and rejected if it is not ours."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

from holdfast.embedded import binaries, sizing
from holdfast.embedded.failure import failed
from holdfast.embedded.folders import Home, own
from holdfast.embedded.rights import Identity, command

SUPERUSER = "postgres"
OWNER = "holdfast"
DATABASE = "holdfast"

INITDB = [
    f"--username={SUPERUSER}",
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--locale=C",
    "--auth=trust",
    "--no-instructions",
]
# Whoever reaches the socket's folder owns the home. If somebody enables TCP, none of our rules admits it.
ACCESS = "local all all trust\nlocal replication all trust\n"
CONF = "include 'holdfast.conf'\n# Your own settings go below this line and take precedence.\n"
FIRST_STATEMENTS = (
    f"create role {OWNER} login nosuperuser createrole nobypassrls\ncreate database {DATABASE} owner {OWNER}\n"
)


def ensure_data(place: Home, identity: Identity, server_lock: int) -> None:
    """Check the data directory, or create it."""
    _check_owner(place.pgdata, identity)
    if not _is_there(place.pgdata):
        _make(place, identity, server_lock)
    _check_version(place.pgdata)


def write_settings(place: Home, identity: Identity) -> None:
    """Write the settings for this machine to the data directory."""
    text = sizing.written(sizing.settings(sizing.machine(place.folder)))
    # Created outside and moved in: root must not write through a link that the server could have placed there.
    _put(text, place.folder / "holdfast.conf.new", place.pgdata / "holdfast.conf", identity)


def _check_owner(pgdata: Path, identity: Identity) -> None:
    if not os.path.lexists(pgdata):
        return
    status = pgdata.lstat()
    if not stat.S_ISDIR(status.st_mode):
        raise failed(
            f"{pgdata} is not a folder",
            then="move it away; to relocate the data, move the whole of HOLDFAST_HOME, not only pgdata",
        )
    if status.st_uid != identity.uid:
        raise failed(
            f"the data directory {pgdata} belongs to uid {status.st_uid}, but the server runs as uid {identity.uid}",
            then=f"chown -R {identity.uid}:{identity.gid} {pgdata}, or set HOLDFAST_HOME to another folder",
        )


def _check_version(pgdata: Path) -> None:
    major = (pgdata / "PG_VERSION").read_text().strip()
    if major != str(binaries.MAJOR):
        raise failed(
            f"the data directory {pgdata} was created by PostgreSQL {major}, but this package has {binaries.MAJOR}",
            then=f"dump it with pg_dumpall of PostgreSQL {major} and load it into a new HOLDFAST_HOME, "
            "or return to the release of Holdfast that created it",
        )


def _is_there(pgdata: Path) -> bool:
    if (pgdata / "PG_VERSION").is_file():
        return True
    if not pgdata.exists():
        return False
    if any(pgdata.iterdir()):
        raise failed(
            f"{pgdata} contains files but is not a data directory of PostgreSQL",
            then=f"move {pgdata} away, or set HOLDFAST_HOME to another folder",
        )
    pgdata.rmdir()
    return False


def _make(place: Home, identity: Identity, server_lock: int) -> None:
    """Create it under another name, with role and database, so that whatever has the final name is complete."""

    def run(program: str, *arguments: str, statements: str = "") -> None:
        _run(place, command(identity, binaries.binary(program), *arguments), statements, server_lock)

    new = place.unfinished
    if new.exists():
        shutil.rmtree(new)
    own(new, identity)
    data = data_argument(new, identity)
    run("initdb", f"--pgdata={data}", *INITDB)
    for name, text in {"postgresql.conf": CONF, "pg_hba.conf": ACCESS, "holdfast.conf": ""}.items():
        _put(text, place.folder / f"{name}.new", new / name, identity)
    quietly = ("-c", "exit_on_error=on", "-c", "log_checkpoints=off")
    run("postgres", "--single", "-D", data, *quietly, "template1", statements=FIRST_STATEMENTS)
    new.rename(place.pgdata)
    _sync(place.folder)


def data_argument(pgdata: Path, identity: Identity) -> str:
    """Return the path of the data directory for a program that is started inside it.

    The folders above may be closed to the server's user. This path leads to the working directory without passing
    them, so they need not be opened and the server needs no privilege to bypass them.
    """
    return "/proc/self/cwd" if identity.is_borrowed else str(pgdata)


def _run(place: Home, arguments: list[str], statements: str, server_lock: int) -> None:
    with place.startup_log.open("ab") as log:
        done = subprocess.run(
            arguments,
            input=statements.encode(),
            stdout=log,
            stderr=log,
            cwd=place.unfinished,
            env=environment(),
            umask=0o077,
            pass_fds=(server_lock,),  # it may outlive us, and until it ends nobody else may start
            check=False,
        )
    if done.returncode != 0:
        raise failed(
            f"the database of the embedded PostgreSQL could not be created in {place.folder}",
            then="fix what the log reports (a full disk?) and retry, or set HOLDFAST_DSN to your own server",
            logs=[place.startup_log],
        )


def environment() -> dict[str, str]:
    """Return the environment for the server's programs, without PG* variables that would change their behaviour."""
    return {"PATH": os.defpath, "LC_ALL": "C"}


def _put(text: str, draft: Path, final: Path, identity: Identity) -> None:
    draft.unlink(missing_ok=True)
    draft.write_text(text)
    draft.chmod(0o600)
    identity.give(draft)
    draft.replace(final)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
