"""The folders of one home: where its server's files are, who owns them, and who may enter."""

from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path

from holdfast.embedded.failure import failed
from holdfast.embedded.rights import Identity

PORT = 5432
SOCKET_PATH_LIMIT = 103  # macOS's; Linux has 107
SHORT_FOLDERS = Path("/tmp")  # noqa: S108 - not TMPDIR: all processes of a home must get the same path


@dataclass(frozen=True)
class Home:
    """A HOLDFAST_HOME and the paths in it."""

    folder: Path

    @property
    def pgdata(self) -> Path:
        return self.folder / "pgdata"

    @property
    def unfinished(self) -> Path:
        """Where a data directory is created before it gets its final name."""
        return self.folder / "pgdata.new"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def startup_log(self) -> Path:
        """The output of initdb, and of the server before it can write to its own log."""
        return self.folder / "server.log"

    @property
    def start_lock(self) -> Path:
        """The lock of the process that starts or stops the server."""
        return self.folder / "start.lock"

    @property
    def server_lock(self) -> Path:
        """The lock of the server itself, until its last process has ended."""
        return self.folder / "server.lock"

    @property
    def mark(self) -> str:
        """The name of this home's server in its processes' titles."""
        return "holdfast-" + hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]

    @property
    def short_folder(self) -> Path | None:
        """The parent of the socket's folder if the home's path is too long for a socket, or reads as several hosts."""
        path = os.fsencode(self.folder / "run" / f".s.PGSQL.{PORT}")
        is_fit = len(path) <= SOCKET_PATH_LIMIT and b"," not in path  # libpq takes a comma for the end of a host
        return None if is_fit else SHORT_FOLDERS / f"{self.mark}-{os.geteuid()}"

    @property
    def sockets(self) -> Path:
        return (self.short_folder or self.folder) / "run"


def at(home: Path) -> Home:
    """Return the paths of a home, after checking that it belongs to the caller."""
    place = Home(Path(os.path.realpath(home.expanduser())))
    _check_owner(place.folder)
    return place


def make(place: Home, identity: Identity) -> None:
    """Create the home, closed to everybody but its owner and the server."""
    try:
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise failed(
            f"the folder {place.folder} cannot be created: {error.strerror}",
            then="set HOLDFAST_HOME to a folder that you can write to",
        ) from error
    _close(place, place.folder, identity)


def furnish(place: Home, identity: Identity) -> None:
    """Create what the server needs besides its data; the caller holds the start lock."""
    if place.short_folder is not None:
        place.short_folder.mkdir(mode=0o700, exist_ok=True)
        _close(place, place.short_folder, identity)
    for folder in (place.sockets, place.logs):
        own(folder, identity)
    place.startup_log.touch(mode=0o600)


def tidy(place: Home) -> None:
    """Remove what lies outside the home, once the server has stopped."""
    if place.short_folder is not None and place.short_folder.is_dir():
        _check_owner(place.short_folder)
        shutil.rmtree(place.short_folder)


def own(folder: Path, identity: Identity) -> None:
    """Create a folder that only the server may enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    identity.give(folder)


def _check_owner(folder: Path) -> None:
    try:
        status = folder.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed(
            f"the folder {folder} cannot be read: {error.strerror}",
            then="set HOLDFAST_HOME to a folder that you own",
        ) from error
    if not stat.S_ISDIR(status.st_mode):
        raise failed(f"{folder} is not a folder", then="move it away, or set HOLDFAST_HOME to another place")
    if status.st_uid != os.geteuid():
        owner = _name(status.st_uid)
        raise failed(
            f"the folder {folder} belongs to {owner}, but you are {_name(os.geteuid())}",
            then=f"run this as {owner}, or set HOLDFAST_HOME to a folder that you own",
        )


def _close(place: Home, folder: Path, identity: Identity) -> None:
    """Close a folder to others; under root the server's group, which has no other member, may enter but not list it."""
    _check_owner(folder)
    status = folder.stat()
    wanted = (0o710, identity.gid) if identity.is_borrowed else (0o700, status.st_gid)
    if (stat.S_IMODE(status.st_mode), status.st_gid) == wanted:
        return
    # In this order, because another process may be creating the home right now, and it creates the lock first.
    is_empty = all(file.name == "lost+found" for file in folder.iterdir())
    if not is_empty and not place.start_lock.exists():
        _leave_open(folder, identity)
        return
    os.chown(folder, -1, wanted[1])
    folder.chmod(wanted[0])


def _leave_open(folder: Path, identity: Identity) -> None:
    """Accept a folder with other files unchanged, if our files are safe in it."""
    if identity.is_borrowed or folder.stat().st_mode & stat.S_IWOTH:
        raise failed(
            f"the folder {folder} contains other files and is open to other users",
            then="set HOLDFAST_HOME to a folder for Holdfast alone, which is created if it does not exist",
        )


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
