"""Starts one program in its own session and ends it with the worker.

Run as a script, so that it starts fast and outlives a worker that was killed: `watcher.py CONTROL STATUS FOLDER
PROGRAM…`. It imports as little as it can, because each program waits for that: `signal` and `contextlib` would double
the time. CONTROL is a pipe whose other end only the worker holds: `t` sends
SIGTERM to the program's process group, `k` kills it and everything that it started, and the end of the pipe means that
the worker is gone. STATUS receives `started PID`, and then `exit CODE LEFT` or `refused ERRNO`; LEFT counts the
processes that the program left behind. FOLDER holds the program's output files, which are removed with the worker.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]
import os
import select
import sys
import time

ORPHANED_GRACE = 1.0  # seconds between SIGTERM and SIGKILL when the worker is gone: its shells die within 2 s
LEFT_GRACE = 0.5  # the same for processes that the program left behind
KILL_WAIT = 0.5  # how long killed processes may take to disappear
LOOK_EACH = 0.02
SET_DEATH_SIGNAL, SET_SUBREAPER = 1, 36  # of prctl
IGNORED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


class Program:
    """The program: its process group, and what is left of it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.code: int | None = None
        self.is_ended_by_us = False

    def signal_group(self, number: int) -> bool:
        """Send a signal to the process group; return whether anything is left in it."""
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS: only zombies are left
            return False
        return True

    def signal_all(self, number: int) -> None:
        """Send a signal to the group and, if we end the program, to the processes that left it."""
        self.signal_group(number)
        if self.is_ended_by_us:
            for pid in children():
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    continue

    def reap(self) -> bool:
        """Collect ended processes; return whether any that we could wait for are left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.pid:
                self.code = os.waitstatus_to_exitcode(status)

    def end(self, grace: float) -> None:
        """End what is left: SIGTERM, and after the grace period SIGKILL."""
        self.signal_all(signal.SIGTERM)
        until = time.monotonic() + grace
        while not self.is_gone() and time.monotonic() < until:
            time.sleep(LOOK_EACH)
        until = time.monotonic() + KILL_WAIT
        while not self.is_gone() and time.monotonic() < until:
            self.signal_all(signal.SIGKILL)  # again and again: orphans become our children one after the other
            time.sleep(LOOK_EACH)

    def is_gone(self) -> bool:
        """Return whether the group is empty and, if we end the program, nothing else of it is left."""
        has_more = self.reap()
        return not self.signal_group(0) and not (has_more and self.is_ended_by_us)


def children() -> list[int]:
    """List our child processes; on Linux also those that were orphaned below us."""
    try:
        names = os.listdir("/proc")
    except OSError:
        return []
    return [int(name) for name in names if name.isdigit() and parent_of(name) == os.getpid()]


def parent_of(name: str) -> int | None:
    """Return the process id of a process's parent, or None if it has gone."""
    try:
        with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            return int(file.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return None


def prctl(option: int, value: int) -> None:
    """Set a process attribute on Linux; elsewhere do nothing."""
    if sys.platform == "linux":
        import ctypes

        try:
            ctypes.CDLL(None).prctl(option, value, 0, 0, 0)
        except (OSError, AttributeError):
            return


def remove(folder: str) -> None:
    """Remove the program's output files."""
    for delete, path in ((os.unlink, f"{folder}/output"), (os.unlink, f"{folder}/summary"), (os.rmdir, folder)):
        try:
            delete(path)
        except OSError:
            continue


def report(status: int, line: str) -> None:
    """Tell the worker, if it is still there."""
    try:
        os.write(status, f"{line}\n".encode())
    except BrokenPipeError:
        return


def start(argv: list[str]) -> tuple[int, int]:
    """Start the program; return its process id, and the error number if it could not be executed."""
    errors, report = os.pipe()  # closed by a successful exec
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        code = 0
        try:
            os.setsid()
            for number in (*IGNORED, signal.SIGCHLD, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            signal.set_wakeup_fd(-1)
            prctl(SET_DEATH_SIGNAL, signal.SIGKILL)
            if os.getppid() == parent:
                os.execvp(argv[0], argv)  # noqa: S606 - the program is the user's own
        except OSError as error:
            code = error.errno or 1
        finally:
            os.write(report, str(code).encode())
            os._exit(127)
    os.close(report)
    text = os.read(errors, 16)
    os.close(errors)
    return pid, int(text or 0)


def watch(program: Program, control: int, woken: int) -> bool:
    """Wait until the program has ended; return False if the worker is gone."""
    while program.code is None:
        ready, _, _ = select.select([control, woken], [], [])
        if woken in ready:
            os.read(woken, 512)
            program.reap()
        if control in ready:
            commands = os.read(control, 64)
            if not commands:
                return False
            program.is_ended_by_us = True
            if b"k" in commands:
                program.signal_all(signal.SIGKILL)
            else:
                program.signal_group(signal.SIGTERM)
    return True


def main(control: int, status: int, folder: str, argv: list[str]) -> None:
    """Run the program to its end, or to the worker's."""
    for descriptor in (control, status):
        os.set_inheritable(descriptor, False)  # noqa: FBT003
    prctl(SET_SUBREAPER, 1)
    for number in IGNORED:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    woken, wakes = os.pipe()
    os.set_blocking(wakes, False)
    signal.set_wakeup_fd(wakes)
    pid, error = start(argv)
    if error:
        report(status, f"refused {error}")
        return
    for descriptor in (1, 2):  # the program holds these pipes; their end must be its end
        os.dup2(0, descriptor)
    program = Program(pid)
    report(status, f"started {pid}")
    if not watch(program, control, woken):
        program.is_ended_by_us = True
        program.end(ORPHANED_GRACE)
        remove(folder)
        return
    left = program.signal_group(0)
    if left or program.is_ended_by_us:
        program.end(LEFT_GRACE)
    report(status, f"exit {program.code} {int(left)}")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:])
