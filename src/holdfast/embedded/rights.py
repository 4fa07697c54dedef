"""Which user the server runs as, and with which privileges.

PostgreSQL refuses to run as root. When root starts it, it runs as `nobody`: initdb needs a user with a name, we create
none, and `nobody` exists everywhere. To keep other programs of `nobody` away from the server and its files, it has a
group of its own: without that group they can neither enter the home nor trace the server's processes.
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
SERVER_GROUP = 60_987  # a number that no distribution assigns; a group needs no name
READ_ANYWHERE = "dac_read_search"
INSTEAD = "run as an ordinary user, or set HOLDFAST_DSN to a PostgreSQL 15 to 18"


@dataclass(frozen=True)
class Identity:
    """The user and group that the server's processes and files belong to."""

    uid: int
    gid: int

    @property
    def is_borrowed(self) -> bool:
        """Whether it differs from the caller's, so that privileges must be dropped and files handed over."""
        return self.uid != os.geteuid()

    def give(self, path: Path) -> None:
        """Make the server the owner of a file or folder that we created."""
        if self.is_borrowed:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)


def identity() -> Identity:
    """Return the server's identity when the caller starts it."""
    if os.geteuid() != 0:
        return Identity(os.geteuid(), os.getegid())
    if sys.platform != "linux":
        raise failed("the embedded PostgreSQL cannot be started by root on this system", then=INSTEAD)
    try:
        return Identity(pwd.getpwnam(SERVER_USER).pw_uid, SERVER_GROUP)
    except KeyError as error:
        raise failed(
            f"PostgreSQL cannot run as root, and this system has no user {SERVER_USER} to run it as", then=INSTEAD
        ) from error


def command(identity: Identity, program: Path, *arguments: str) -> list[str]:
    """Build the command that runs a program of the wheel as the server's user, with the fewest privileges possible.

    The programs may be under a folder that is closed to that user, such as root's home. Only then may the server read
    and search everywhere; nothing outside the home is opened for it.
    """
    if not identity.is_borrowed:
        return [str(program), *arguments]
    for capabilities in ([], [READ_ANYWHERE]):
        prefix = _setpriv(identity, capabilities)
        # Checked with access(), as PostgreSQL checks its own files: setpriv itself may still be able to execute them.
        if subprocess.run([*prefix, "test", "-x", program], capture_output=True, check=False, cwd="/").returncode == 0:
            return [*prefix, str(program), *arguments]
    raise failed(
        f"PostgreSQL cannot run as root, and {SERVER_USER}, who runs it instead, cannot reach {program}",
        then=f"install the package where every user can read it (such as under /opt), {INSTEAD}",
    )


def _setpriv(identity: Identity, capabilities: list[str]) -> list[str]:
    setpriv = shutil.which("setpriv", path=f"{os.environ.get('PATH', '')}:/usr/bin:/bin")
    if setpriv is None:
        raise failed(
            "PostgreSQL cannot run as root, and setpriv, which drops root's privileges, is not installed",
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
