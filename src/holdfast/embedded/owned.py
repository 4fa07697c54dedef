"""A server that belongs to a block of code: it stops when the block ends, even if the process is killed with SIGKILL.

    with owned_server(home) as dsn: ...

A reaper process holds the read end of a pipe. When the last write end closes, for whatever reason, it stops the server.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import embedded
from holdfast.embedded.failure import failed

REAP_WAIT = 100  # seconds: longer than a stop may take


@contextmanager
def owned_server(home: Path, *, remove: Path | None = None) -> Iterator[str]:
    """Run the server of a home during the block, and yield its DSN."""
    with reaped(home, remove=remove):
        yield embedded.ensure(home)


@contextmanager
def reaped(home: Path, *, remove: Path | None = None) -> Iterator[int]:
    """Stop the server of a home, if one is started, after the block, and remove a folder if one is passed.

    Yields the write end of the pipe: a child that may start the server inherits it (`pass_fds`), so that the reaper
    waits for that child too.
    """
    command = [sys.executable, "-m", "holdfast.embedded.owned", str(home), *([str(remove)] if remove else [])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as reaper:
        assert reaper.stdin is not None  # noqa: S101 - it was requested
        try:
            yield reaper.stdin.fileno()
        finally:
            reaper.stdin.close()
            if reaper.wait(timeout=REAP_WAIT) != 0:
                raise failed(
                    f"the embedded PostgreSQL of {home} may still run",
                    then=f"stop it with HOLDFAST_HOME={home} holdfast db stop",
                )


def _reap(home: Path, *removed: Path) -> None:
    sys.stdin.buffer.read()
    embedded.stop(home)
    for folder in removed:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    _reap(*map(Path, sys.argv[1:]))
