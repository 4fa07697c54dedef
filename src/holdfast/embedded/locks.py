"""Two locks of a home: one for who starts or stops, one that lasts as long as any process of the server."""

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
    """Look again and again until it happened; say whether it did in time."""
    deadline = time.monotonic() + within.total_seconds()
    while not happened():
        if time.monotonic() > deadline:
            return False
        time.sleep(TICK)
    return True


@contextmanager
def locked(file: Path, *, within: timedelta) -> Iterator[int | None]:
    """Hold the lock of a file and give its descriptor, or None when others kept it all that time.

    A child that inherits the descriptor keeps the lock after us, and so do its children.
    """
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        yield descriptor if until(lambda: _take(descriptor), within=within) else None
    finally:
        os.close(descriptor)


def is_held(file: Path) -> bool:
    """Whether some process holds the lock of that file."""
    with suppress(FileNotFoundError), file.open("rb") as open_file:
        return not _take(open_file.fileno(), fcntl.LOCK_SH)
    return False


def _take(descriptor: int, kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
