"""What a worker process tells of its handlers: how many calls, when the first and the last, and when each one began.

`<pid>.count` is a mapped file, so a call costs about a microsecond; `<pid>.moments` has a line for each task that carried
the moment of its enqueue: that moment and the handler's. probe.mjs writes the same files.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from pathlib import Path
from typing import TextIO

COUNTER = struct.Struct("=Qdd")
FOLDER = Path(os.environ.get("BENCH_PROBES", "."))

_lock = threading.Lock()
_owner = 0
_calls = 0
_first = 0.0
_numbers: memoryview
_times: memoryview
_moments: TextIO


def hit(sent: float = 0.0, tasks: int = 1) -> None:
    """Count a handler's call for so many tasks; `sent` is the moment of its enqueue, or 0."""
    global _calls, _first  # noqa: PLW0603 - one counter a process
    now = time.time()
    with _lock:
        if _owner != os.getpid():  # a fork has a counter of its own
            _open()
        _calls += tasks
        # Field by field, not packed as one: a reader must never see the zeros that packing begins with.
        _times[2] = now
        if not _first:
            _times[1] = _first = now
        _numbers[0] = _calls
        if sent:
            _moments.write(f"{sent:.6f} {now:.6f}\n")


def barrier() -> None:
    """Report that this process is loaded, and wait for the common start."""
    ready()
    while not (FOLDER / "go").exists():
        time.sleep(0.005)


def ready() -> None:
    """Report that this process is loaded."""
    (FOLDER / f"{os.getpid()}.ready").touch()


def _open() -> None:
    global _owner, _calls, _first, _numbers, _times, _moments  # noqa: PLW0603
    _owner, _calls, _first = os.getpid(), 0, 0.0
    path = FOLDER / f"{_owner}.count"
    path.write_bytes(bytes(COUNTER.size))
    with path.open("r+b") as file:
        mapped = memoryview(mmap.mmap(file.fileno(), COUNTER.size))
    _numbers, _times = mapped.cast("Q"), mapped.cast("d")
    _moments = (FOLDER / f"{_owner}.moments").open("a", buffering=1)
