"""What the tests of shells arrange: a run that only remembers its events, and programs for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import psutil

from holdfast.masking import Masker
from holdfast.ops.allowance import Allowance
from holdfast.ops.recorder import Surroundings
from holdfast.ops.sender import Entry
from holdfast.ops.shell import Command, Shell, ShellResult
from worker.running import PATIENCE, until


class FakeRun:
    """The surroundings of a shell, without a database: its events, its secrets, and whether it has to stop."""

    def __init__(self, *secrets: str, append: Callable[[Entry], None] | None = None) -> None:
        self.entries: list[Entry] = []
        self.allowance = Allowance()
        self.stop_reason: str | None = None
        self.masker = Masker(secrets)
        self._append = append

    def around(self) -> Surroundings:
        return Surroundings(
            self._appended, lambda: self.stop_reason, self.masker.text, self.masker.stream, self.allowance
        )

    def _appended(self, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry in self.entries:  # by its key, as the database knows it
                continue
            if self._append is not None:
                self._append(entry)
            self.entries.append(entry)

    def begin(self, *argv: str, **options: Any) -> Shell:
        """Start a program, and return its shell."""
        env = {**os.environ, **options.pop("env", {})}
        shell = Shell(Command(argv, step=options.pop("step", Path(argv[0]).name), env=env, **options), self.around())
        shell.start()
        return shell

    def run(self, *argv: str, **options: Any) -> ShellResult:
        """Run a program to its end."""
        return ended(self.begin(*argv, **options))

    def python(self, code: str, *argv: str, **options: Any) -> ShellResult:
        """Run a few lines of Python."""
        return self.run(sys.executable, "-c", code, *argv, step="python", **options)

    @property
    def output(self) -> str:
        """All output that was stored, without our own messages."""
        return "".join(f"{entry.message}\n" for entry in self.entries if "stream" in entry.payload)

    @property
    def remarks(self) -> list[Entry]:
        """The events that are not output."""
        return [entry for entry in self.entries if "stream" not in entry.payload]


def ended(shell: Shell) -> ShellResult:
    assert shell.wait(PATIENCE), "the program did not end"
    return shell.result()


def until_shown(run: FakeRun, text: str) -> None:
    until(lambda: text in run.output, f"{text!r} in the output")


def until_gone(*pids: int) -> None:
    until(lambda: not any(is_alive(pid) for pid in pids), f"the end of {pids}")


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Gate:
    """A file that a program waits for, so that a test decides when it continues."""

    WAIT = "import os, sys, time\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.01)\n"

    def __init__(self, folder: Path) -> None:
        self.path = folder / "gate"

    def open(self) -> None:
        self.path.touch()


class Outage:
    """A database that cannot be reached for the first calls."""

    def __init__(self, error: Exception, times: int) -> None:
        self._error = error
        self._left = times
        self._lock = threading.Lock()

    def __call__(self, _entry: Entry) -> None:
        with self._lock:
            self._left -= 1
            if self._left >= 0:
                raise self._error
