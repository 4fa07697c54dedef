"""Under which user the server runs, and with what rights.

PostgreSQL refuses to run as root. When root asks for it, it runs as `nobody`: initdb wants a user with a name, we
create none, and that one is everywhere. So that other programs of `nobody` get no hold of the server or its files, it
has a group that is nobody else's: without it they can neither pass the home's door nor trace the server's processes.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from holdfast.embedded.failure import failed

SERVER_USER = "nobody"
SERVER_GROUP = 60_987  # a number that no distribution gives out; a group needs no name
READ_ANYWHERE = "dac_read_search"
INSTEAD = "run as an ordinary user, or set HOLDFAST_DSN to a PostgreSQL 15 to 18"


@dataclass(frozen=True)
class Identity:
    """The user and group that the server's processes and files belong to."""

    uid: int
    gid: int

    @property
    def is_borrowed(self) -> bool:
        """It is not the caller's own: rights have to be dropped, and files given away."""
        return self.uid != os.geteuid()

    def give(self, path: Path) -> None:
        """Make the server the owner of a file or folder that we made."""
        if self.is_borrowed:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def identity() -> Identity:
    """Say who the server is when the caller starts it."""
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid())
    if sys.platform != "linux":
        raise failed("the embedded PostgreSQL cannot be started by root on this system", then=INSTEAD)
    try:
        return Identity(pwd.getpwnam(SERVER_USER).pw_uid, SERVER_GROUP)
    except KeyError as error:
        raise failed(
            f"root cannot run PostgreSQL, and this system has no user {SERVER_USER} to run it as", then=INSTEAD
        ) from error


def command(identity: Identity, program: Path, *arguments: str) -> list[str]:
    """Build the command that runs a program of the wheel as the server's user, with as few rights as will do.

    The programs may lie under a folder that is closed to that user, such as root's home. Only then the server may read
    and search everywhere; nothing outside the home is opened for it.
    """
    if not identity.is_borrowed:
        return [str(program), *arguments]
    for capabilities in ([], [READ_ANYWHERE]):
        prefix = _setpriv(identity, capabilities)
        # Asked by access(), as PostgreSQL does of its own files: setpriv itself may still have rights to execute them.
        if subprocess.run([*prefix, "test", "-x", program], capture_output=True, check=False, cwd="/").returncode == 0:
            return [*prefix, str(program), *arguments]
    raise failed(
        f"root cannot run PostgreSQL itself, and {SERVER_USER}, who runs it instead, cannot reach {program}",
        then=f"install the package where every user can read it (such as under /opt), {INSTEAD}",
    )


def _setpriv(identity: Identity, capabilities: list[str]) -> list[str]:
    setpriv = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    if setpriv is None:
        raise failed(
            "root cannot run PostgreSQL, and setpriv, which drops root's rights, is not installed",
            then=f"install util-linux, {INSTEAD}",
        )
    wanted = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    # Without it access() ignores the capabilities of an ordinary user.
    heeded = ["--securebits=+no_setuid_fixup"] if capabilities else []
    return [
        setpriv,
        f"--reuid={identity.uid}",
        f"--regid={identity.gid}",
        "--clear-groups",
        *heeded,
        f"--inh-caps={wanted}",
        f"--ambient-caps={wanted}",
        f"--bounding-set={wanted}",
        "--no-new-privs",
        "--",
    ]
