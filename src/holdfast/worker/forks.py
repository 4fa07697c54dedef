"""Forks of a worker's process. A handler may fork: with os.fork, with multiprocessing, or inside a library.

A fork is a copy of the worker. It must not hold the worker's connections, or the server would not notice when the
worker is gone. It must not use them either, or continue as a second worker when its handler returns.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Protocol
from weakref import WeakSet

from holdfast.connections.deadline import open_connections

STDERR = 2


class File(Protocol):
    """Anything with a file descriptor."""

    def fileno(self) -> int:
        """Return the descriptor."""


_workers = 0  # running in this process
_files: WeakSet[File] = WeakSet()  # of the workers, besides their connections
_signals: set[signal.Signals] = set()  # that the workers handle
_thread = threading.local()


@contextmanager
def guarded() -> Iterator[None]:
    """Make every fork during the block drop the worker's resources."""
    global _workers  # noqa: PLW0603 - a fork copies the whole process, so the count is global
    _hook()
    _workers += 1
    try:
        yield
    finally:
        _workers -= 1


def own(file: File) -> None:
    """Close this file in forks too."""
    _files.add(file)


def own_signals(*numbers: signal.Signals) -> None:
    """Restore the default handling of these signals in forks."""
    _signals.update(numbers)


def own_loop(loop: asyncio.AbstractEventLoop) -> None:
    """End a fork that was made in this thread and returns to this loop."""
    _thread.loop = loop


def leave_if_forked(pid: int) -> None:
    """End this process at once unless its id is `pid`; called after a handler returned or raised."""
    if os.getpid() == pid:
        return
    match sys.exc_info()[1]:
        case None | SystemExit(code=None):
            os._exit(0)
        case SystemExit(code=int(code)):
            os._exit(code & 0xFF)
        case _:
            os.write(STDERR, traceback.format_exc().encode(errors="replace"))
            os._exit(1)


@cache
def _hook() -> None:
    os.register_at_fork(before=_hold_signals, after_in_parent=_release_signals, after_in_child=_let_go)


def _hold_signals() -> None:
    """Block signals in a fork until it has its own handlers, because until then the worker's would run."""
    _thread.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _signals)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _thread.mask)


def _let_go() -> None:
    """Drop the worker's resources in a fork."""
    try:
        if _workers:
            _drop_files()
            _drop_signals()
            if (loop := getattr(_thread, "loop", None)) is not None:
                loop.call_soon(os._exit, 1)
    finally:
        _release_signals()


def _drop_files() -> None:
    """Replace each descriptor by /dev/null.

    The driver must not close a connection, because that would tell the server. The descriptor stays taken, so that
    nothing meant for it can reach a file that the fork opens later.
    """
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for file in [*open_connections, *_files]:
        with suppress(Exception):  # already closed
            os.dup2(nothing, file.fileno(), inheritable=False)
    os.close(nothing)


def _drop_signals() -> None:
    if _signals:
        signal.set_wakeup_fd(-1)  # it is shared: the worker would handle a signal to the fork
    for number in _signals:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
