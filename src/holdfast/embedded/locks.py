"""Two locks of a home: one for starting or stopping the server, one that lasts as long as any of its processes."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

TICK = 0.02


def until(happened: Callable[[], bool], *, within: timedelta) -> bool:
    """Poll until the condition holds, and return whether it did in time."""
    deadline = time.monotonic() + within.total_seconds()
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK)
    return True


@contextmanager
def locked(file: Path, *, within: timedelta) -> Iterator[int | None]:
    """Hold the lock of a file and yield its descriptor, or None if others held it all that time.

    A child that inherits the descriptor keeps the lock after us, and so do its children.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor if until(lambda: _take(descriptor), within=within) else None
    finally:
        os.close(descriptor)


def is_held(file: Path) -> bool:
    """Return whether some process holds the lock of that file."""
    with suppress(FileNotFoundError), file.open("rb") as open_file:
        return not _take(open_file.fileno(), fcntl.LOCK_SH)
    return False


def _take(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
