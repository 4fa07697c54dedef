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

from holdfast.errors import DatabaseError, HoldfastError
from holdfast.kernel import db, schema
from holdfast.selftest import place

WAIT = 120  # seconds: longer than it may take
LOCK_WAIT = 20.0  # after which another self-test has the lock, and has removed all that was left before it began
LOOK_EACH = 0.1


@contextmanager
def reaped(dsn: str, name: str) -> Iterator[None]:
    """Have all that bears this name removed after the block."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("HOLDFAST_")}
    process = subprocess.Popen(
        [sys.executable, "-m", "holdfast.selftest.reaper", name],
        env=environment | {"HOLDFAST_DSN": dsn},
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield
    finally:
        _, said = process.communicate(timeout=WAIT)
    if process.returncode != 0:
        error = DatabaseError(
            "what the self-test made may still be there; remove it by running it again: holdfast doctor --self-test"
        )
        error.add_note(said[-2000:].decode(errors="replace").strip())
        raise error


def end_processes(name: str) -> None:
    """End the workers of a self-test, also those that are frozen."""
    ended = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(schema.VARIABLE) == name:
                process.kill()
                ended.append(process)
    psutil.wait_procs(ended, timeout=10)


def remove_left(dsn: str) -> None:
    """Remove what is left, as soon as no self-test is under way."""
    until = time.monotonic() + LOCK_WAIT
    while True:
        try:
            with place.locked(dsn), db.connect(dsn) as connection:
                place.sweep(connection)
        except place.SelfTestRuns:
            if time.monotonic() > until:
                return
            time.sleep(LOOK_EACH)
        else:
            return


def _main(name: str) -> None:
    sys.stdin.buffer.read()
    end_processes(name)
    try:
        remove_left(os.environ["HOLDFAST_DSN"])
    except HoldfastError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    _main(*sys.argv[1:])
