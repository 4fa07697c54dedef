"""Servers that tests start: each is stopped with the test that owns it, also when that is killed with -9.

    with owned_server(tmp_path / "home") as dsn: ...

A reaper process holds the read end of a pipe. When the last write end closes, for whatever reason, it stops the server.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import embedded


@contextmanager
def owned_server(home: Path) -> Iterator[str]:
    """Run the server of a home for as long as the block lasts, and give its DSN."""
    with reaped(home):
        yield embedded.ensure(home)


@contextmanager
def reaped(home: Path) -> Iterator[int]:
    """See to it that the server of a home, should one be started, is stopped after the block.

    Gives the write end of the pipe: a child that may start the server inherits it (`pass_fds`), so that the reaper
    waits for that child too.
    """
    reaper = subprocess.Popen([sys.executable, __file__, str(home)], stdin=subprocess.PIPE, start_new_session=True)
    assert reaper.stdin is not None
    try:
        yield reaper.stdin.fileno()
    finally:
        reaper.stdin.close()
        assert reaper.wait(timeout=100) == 0, f"the server of {home} may still run"


if __name__ == "__main__":
    sys.stdin.buffer.read()
    embedded.stop(Path(sys.argv[1]))
