"""The folders of one home: where everything of its server lies, who owns it, and who may pass."""

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
SHORT_FOLDERS = Path("/tmp")  # noqa: S108 - never TMPDIR: all processes of a home must come to the same answer


@dataclass(frozen=True)
class Home:
    """A HOLDFAST_HOME and the names of what is in it."""

    folder: Path

    @property
    def pgdata(self) -> Path:
        return self.folder / "pgdata"

    @property
    def unfinished(self) -> Path:
        """Where a data directory is made, before it takes its name."""
        return self.folder / "pgdata.new"

    @property
    def logs(self) -> Path:
        return self.folder / "log"

    @property
    def startup_log(self) -> Path:
        """What the server says before it can write to its own log, and what initdb says."""
        return self.folder / "server.log"

    @property
    def start_lock(self) -> Path:
        """Held by whoever starts or stops the server."""
        return self.folder / "start.lock"

    @property
    def server_lock(self) -> Path:
        """Held by the server itself, until its last process has ended."""
        return self.folder / "server.lock"

    @property
    def mark(self) -> str:
        """A name for this home's server, seen in its processes' titles."""
        return "holdfast-" + hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:12]

    @property
    def short_folder(self) -> Path | None:
        """The folder that holds the socket's in place of the home, where the home's path is too long for a socket."""
        length = len(os.fsencode(self.folder / "run" / f".s.PGSQL.{PORT}"))
        return None if length <= SOCKET_PATH_LIMIT else SHORT_FOLDERS / f"{self.mark}-{os.geteuid()}"

    @property
    def sockets(self) -> Path:
        return (self.short_folder or self.folder) / "run"


def at(home: Path) -> Home:
    """Name the places of a home, after a look that nothing in it is somebody else's."""
    place = Home(Path(os.path.realpath(home.expanduser())))
    _check_owner(place.folder)
    return place


def make(place: Home, identity: Identity) -> None:
    """Make the home itself, closed to everybody but its owner and the server."""
    try:
        place.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise failed(
            f"the folder {place.folder} cannot be made: {error.strerror}",
            then="set HOLDFAST_HOME to a folder that you can write to",
        ) from error
    _close(place, place.folder, identity)


def furnish(place: Home, identity: Identity) -> None:
    """Make what the server needs beside its data; for the holder of the start lock."""
    if place.short_folder is not None:
        place.short_folder.mkdir(mode=0o700, exist_ok=True)
        _close(place, place.short_folder, identity)
    for folder in (place.sockets, place.logs):
        own(folder, identity)
    place.startup_log.touch(mode=0o600)


def tidy(place: Home) -> None:
    """Take away what lies outside the home, once the server has stopped."""
    if place.short_folder is not None and place.short_folder.is_dir():
        _check_owner(place.short_folder)
        shutil.rmtree(place.short_folder)


def own(folder: Path, identity: Identity) -> None:
    """Make a folder that only the server may enter."""
    folder.mkdir(mode=0o700, exist_ok=True)
    folder.chmod(0o700)
    identity.give(folder)


def _check_owner(folder: Path) -> None:
    try:
        found = folder.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise failed(
            f"the folder {folder} cannot be looked at: {error.strerror}",
            then="set HOLDFAST_HOME to a folder of your own",
        ) from error
    if not stat.S_ISDIR(found.st_mode):
        raise failed(f"{folder} is not a folder", then="move it away, or set HOLDFAST_HOME to another place")
    if found.st_uid != os.geteuid():
        owner = _name(found.st_uid)
        raise failed(
            f"the folder {folder} belongs to {owner}, and you are {_name(os.geteuid())}",
            then=f"run this as {owner}, or set HOLDFAST_HOME to a folder of your own",
        )


def _close(place: Home, folder: Path, identity: Identity) -> None:
    """Shut a folder to others; under root the server's group, which has no other member, may pass but not look."""
    _check_owner(folder)
    found = folder.stat()
    wanted = (0o710, identity.gid) if identity.is_borrowed else (0o700, found.st_gid)
    if (stat.S_IMODE(found.st_mode), found.st_gid) == wanted:
        return
    # In this order: another process may be making the home right now, and the lock is the first thing it puts there.
    is_empty = all(file.name == "lost+found" for file in folder.iterdir())
    if not is_empty and not place.start_lock.exists():
        _leave_open(folder, identity)
        return
    os.chown(folder, -1, wanted[1])
    folder.chmod(wanted[0])


def _leave_open(folder: Path, identity: Identity) -> None:
    """Accept a folder of other things as it is, if what we put there is safe nonetheless."""
    if identity.is_borrowed or folder.stat().st_mode & stat.S_IWOTH:
        raise failed(
            f"the folder {folder} holds other files and others may enter it, so it is not ours to close",
            then="set HOLDFAST_HOME to a folder for Holdfast alone, which is made when it is not there",
        )


def _name(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
