"""A program under a watcher, as the worker sees it: its pipes, its end, and the ways to stop it."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.failpoints import failpoint

WATCHER = str(Path(__file__).with_name("watcher.py"))
PIPE = 2**20  # bytes that a program may write while we are busy
SIGNALLED = 128  # plus the signal's number, as shells report it
_programs: weakref.WeakSet[Program] = weakref.WeakSet()


@dataclass(frozen=True, slots=True)
class Exit:
    """How a program ended: its code, and whether it left processes behind, which were ended with its group."""

    code: int
    left_some: bool = False


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a program could not be executed."""

    error: str
    code: int  # 127 if there is no such program, else 126, as shells report it


class Program:
    """A program in its own session. It ends at the latest with this object's process, however that ends."""

    def __init__(self, argv: Sequence[str], env: Mapping[str, str], cwd: str | None, folder: Path) -> None:
        _guard_forks()
        self.stdout, stdout = _pipe()
        self.stderr, stderr = _pipe()
        self.status, status = os.pipe()
        control, self._control = os.pipe()
        self._pid: int | None = None
        self._read = b""
        _programs.add(self)
        failpoint("before_shell")
        try:
            self._watcher = subprocess.Popen(
                [sys.executable, "-I", "-S", WATCHER, str(control), str(status), str(folder), *argv],
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                env=env,
                cwd=cwd,
                pass_fds=(control, status),
                start_new_session=True,  # a terminal's Ctrl-C is for the worker
            )
        except BaseException:
            self.close()
            raise
        finally:
            for descriptor in (stdout, stderr, status, control):
                os.close(descriptor)
        failpoint("after_shell")

    def terminate(self) -> None:
        """Send SIGTERM to the process group."""
        self._command(b"t")

    def kill(self) -> None:
        """Kill the process group, and all that the program started."""
        self._command(b"k")

    def read_status(self) -> Exit | Refusal | None:
        """Read what the watcher reports; None if the program has not ended."""
        data = os.read(self.status, 512)
        self._read += data
        *lines, self._read = self._read.split(b"\n")
        for line in lines:
            word, *numbers = line.decode().split()
            match word:
                case "started":
                    self._pid = int(numbers[0])
                case "refused":
                    number = int(numbers[0])
                    return Refusal(os.strerror(number), 127 if number == 2 else 126)
                case "exit":
                    code = int(numbers[0])
                    return Exit(code if code >= 0 else SIGNALLED - code, numbers[1] == "1")
        return None if data else self._lost()

    def close(self) -> None:
        """Close the pipes; a program that still runs is ended by its watcher."""
        for name in ("_control", "stdout", "stderr", "status"):
            descriptor = getattr(self, name)
            if descriptor >= 0:
                setattr(self, name, -1)
                os.close(descriptor)
        _programs.discard(self)
        if (watcher := getattr(self, "_watcher", None)) is not None:
            with suppress(subprocess.TimeoutExpired):
                watcher.wait(timeout=3)

    def _lost(self) -> Exit:
        """Kill the group of a program whose watcher was killed."""
        if self._pid is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._pid, signal.SIGKILL)
        return Exit(SIGNALLED + signal.SIGKILL)

    def _command(self, word: bytes) -> None:
        with suppress(BrokenPipeError, OSError):  # it has just ended
            os.write(self._control, word)


def _pipe() -> tuple[int, int]:
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    with suppress(AttributeError, OSError):  # Linux alone, and up to a limit per user
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, PIPE)
    return reader, writer


@cache
def _guard_forks() -> None:
    """Close the control pipes in forks of this process, which would keep programs alive after it."""

    def let_go() -> None:
        for program in list(_programs):
            with suppress(OSError):
                os.close(program._control)
            program._control = -1

    os.register_at_fork(after_in_child=let_go)
