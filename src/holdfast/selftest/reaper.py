"""Removes what a self-test made: its processes, schema and files; also when the self-test is killed with -9.

A process of its own waits for the end of a pipe, which closes with the self-test, for whatever reason.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil

from holdfast.connections.deadline import connect
from holdfast.errors import DatabaseError, HoldfastError
from holdfast.kernel import self_test_place as place
from holdfast.kernel import self_test_schema
from holdfast.worker_processes import inherited

WAIT = 120  # seconds: longer than it may take
LOCK_WAIT = 20.0  # who gets the lock removes all that is left: at the latest the next self-test
LOOK_EACH = 0.1


@contextmanager
def reaped(dsn: str, name: str) -> Iterator[None]:
    """Have all that bears this name removed after the block."""
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.selftest.reaper", name],
        env=inherited() | {"HOLDFAST_DSN": dsn},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        _, output = process.communicate(timeout=WAIT)
    if process.returncode != 0:
        error = DatabaseError(
            "what the self-test made may still be there",
            next="remove it by running it again: holdfast doctor --self-test",
        )
        error.add_note(output[-2000:].decode(errors="replace").strip())
        raise error


def end_processes(name: str) -> None:
    """End the workers of a self-test, also those that are frozen."""
    ended = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(self_test_schema.VARIABLE) == name:
                process.kill()
                ended.append(process)
    psutil.wait_procs(ended, timeout=10)


def remove(dsn: str, name: str) -> None:
    """Remove the schema and what came with it, as soon as nobody holds the lock: the self-test itself let go of it."""
    until = time.monotonic() + LOCK_WAIT
    with connect(dsn) as connection:
        while place.is_there(connection, name) and time.monotonic() < until:
            with suppress(place.SelfTestRuns), place.locked(dsn):
                place.sweep(connection)
            time.sleep(LOOK_EACH)
        if place.is_there(connection, name):
            sys.exit(f"{name} is still there")


def _main(name: str) -> None:
    sys.stdin.buffer.read()
    end_processes(name)
    try:
        remove(os.environ["HOLDFAST_DSN"], name)
    except HoldfastError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main(*sys.argv[1:])
