"""The PostgreSQL that comes with the package: one server for all processes of a home, started when it is needed.

It listens on a socket in a folder that only the home's owner can enter, and outlives the process that started it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from holdfast.config import Config, to_writer
from holdfast.embedded import binaries, cluster, folders, locks, rights, server
from holdfast.embedded.binaries import binary, check, is_installed
from holdfast.embedded.failure import failed
from holdfast.embedded.folders import Home
from holdfast.errors import EmbeddedFailed

__all__ = ["Status", "address", "admin_dsn", "binary", "check", "ensure", "is_installed", "status", "stop"]

TURN_WAIT = timedelta(seconds=90)  # longer than a start and a stop, so that it ends only where something is stuck
ORPHAN_WAIT = timedelta(seconds=20)


@dataclass(frozen=True)
class Status:
    """What is known of a home's server; what needs a running one is None without."""

    running: bool
    pid: int | None
    version: str
    data_directory: Path
    socket_directory: Path
    started_at: datetime | None
    log_file: Path


def address(config: Config) -> str:
    """Give the DSN to use: HOLDFAST_DSN, or that of the embedded PostgreSQL, started when it is not running."""
    return to_writer(config.dsn.get_secret_value()) if config.dsn is not None else ensure(config.home)


def ensure(home: Path) -> str:
    """Start the server of a home unless it runs, and give the DSN of its database."""
    place = folders.at(home)
    if not _is_usable(server.find(place)):
        check()
        try:
            _start(place, rights.identity())
        except OSError as error:
            raise failed(
                f"the embedded PostgreSQL in {place.folder} could not be started: {error}",
                then="mend that, or set HOLDFAST_HOME to another folder",
            ) from error
    return _dsn(place, cluster.OWNER, cluster.DATABASE)


def stop(home: Path) -> bool:
    """Stop the server of a home; False when none was running."""
    place = folders.at(home)
    if not place.start_lock.exists():
        return False
    with locks.locked(place.start_lock, within=TURN_WAIT) as turn:
        _check_turn(place, turn)
        # One that was launched by a process that then died has no pid file for a moment.
        if not locks.until(lambda: _is_decided(place), within=ORPHAN_WAIT):
            raise _not_ended(place)
        postmaster = server.find(place)
        if postmaster is None:
            return False
        server.stop(place, postmaster)
        folders.tidy(place)
        return True


def status(home: Path) -> Status:
    """Say whether the server of a home runs, and where its things are; starts nothing."""
    place = folders.at(home)
    postmaster = server.find(place)
    return Status(
        running=postmaster is not None,
        pid=postmaster.process.pid if postmaster is not None else None,
        version=binaries.version(),
        data_directory=place.pgdata,
        socket_directory=place.sockets,
        started_at=postmaster.started_at if postmaster is not None else None,
        log_file=server.current_log(place) or place.startup_log,
    )


def admin_dsn(home: Path, dbname: str = "postgres") -> str:
    """Give the superuser's DSN, for tests and repairs."""
    return _dsn(folders.at(home), cluster.SUPERUSER, dbname)


def _is_decided(place: Home) -> bool:
    return server.find(place) is not None or not locks.is_held(place.server_lock)


def _is_usable(postmaster: server.Postmaster | None) -> bool:
    return postmaster is not None and postmaster.is_ready and postmaster.has_programs


def _start(place: Home, identity: rights.Identity) -> None:
    folders.make(place, identity)
    with locks.locked(place.start_lock, within=TURN_WAIT) as turn:
        _check_turn(place, turn)
        postmaster = server.find(place)
        if _is_usable(postmaster):
            return
        if postmaster is not None and not postmaster.has_programs:
            server.stop(place, postmaster)
        elif postmaster is not None and postmaster.is_starting:
            server.wait_until_ready(place, postmaster.process.pid)
            return
        with locks.locked(place.server_lock, within=ORPHAN_WAIT) as server_lock:
            if server_lock is None:
                raise _not_ended(place)
            folders.furnish(place, identity)
            cluster.ensure_data(place, identity, server_lock)
            cluster.write_settings(place, identity)
            server.launch(place, identity, server_lock)


def _not_ended(place: Home) -> EmbeddedFailed:
    return failed(
        f"an earlier server of {place.folder} has not ended yet: {server.remaining(place)}",
        then="wait for it and try again, or use another HOLDFAST_HOME if a container shares this one",
    )


def _check_turn(place: Home, turn: int | None) -> None:
    if turn is None:
        raise failed(
            f"another process has been starting or stopping the server of {place.folder} for {TURN_WAIT.seconds} s",
            then=f"find it (fuser {place.start_lock}), or look at the log {place.startup_log}",
        )


def _dsn(place: Home, user: str, database: str) -> str:
    return f"postgresql://{quote(user)}@/{quote(database)}?host={quote(str(place.sockets), safe='')}"
