"""Runs a program for a run: its output becomes events as it appears, and it stops when the run has to."""

from __future__ import annotations

import contextlib
import os
import selectors
import shlex
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from holdfast import log
from holdfast.errors import ProgramFailed
from holdfast.failpoints import failpoint
from holdfast.models import Level
from holdfast.ops.program import SIGNALLED, Exit, Program, Refusal
from holdfast.ops.program_files import ProgramFiles, program_files
from holdfast.ops.recorder import Recorder, Surroundings
from holdfast.ops.sender import Entry, Sender

READ = 56 * 1024  # bytes: with the rest of a line they usually fit into one event, so that nothing is cut and copied
LARGE_READ = 2 * READ  # once most of the output is dropped
READS = 8  # in a row, before the run is looked at again
LOOK_EACH = 0.1  # seconds between checks whether the run has to stop
DRAIN = 0.5  # seconds for output that is still in the pipe when the program has ended
KILL_EACH = 1.0
SHOWN = 500  # characters of a command line or of a last line


@dataclass(frozen=True, slots=True)
class Command:
    """A program, how it is run, and the file for all of its output, if somebody asked for one."""

    argv: tuple[str, ...]
    step: str  # its name in events and metadata
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout: float | None = None
    grace: float = 10.0  # seconds between SIGTERM and SIGKILL
    log_file: Path | None = None


@dataclass(frozen=True, slots=True)
class ShellResult:
    """How a program ended: its exit code, the end of its output, and what it wrote to HOLDFAST_OUTPUT."""

    step: str
    exit_code: int
    seconds: float
    stdout: str  # its last 64 kB
    stderr: str  # its last 4 kB
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""
    stop_reason: str | None = None  # why it was stopped, if its run had to stop
    is_timed_out: bool = False  # by its own timeout

    def check(self) -> ShellResult:
        """Raise ProgramFailed unless it ended with 0."""
        if self.exit_code == 0 and not self.is_timed_out:
            return self
        how = f"was ended after {self.seconds:.1f} s" if self.is_timed_out else f"ended with {_exit(self.exit_code)}"
        last = self.stderr.rstrip().rpartition("\n")[2] or self.stdout.rstrip().rpartition("\n")[2]
        raise ProgramFailed(
            f"{self.step} {how}" + (f": {last[:SHOWN]}" if last else ""),
            where=self.step,
            program_exit=self.exit_code,
            step=self.step,
            stderr=self.stderr,
        )


class Shell:
    """One program of a run, served by a thread of its own, which no interruption of the handler reaches."""

    def __init__(self, command: Command, around: Surroundings) -> None:
        self._command = command
        self._around = around
        self._stop_reason: str | None = None  # for the result
        self._told: str | None = None
        self._is_timed_out = False
        self._kill_at: float | None = None
        self._result: ShellResult | BaseException | None = None
        self._done = threading.Event()
        self._log = log.get("shell")

    def start(self, when_done: Callable[[], None] | None = None) -> None:
        """Start the program; `when_done` is called in the shell's thread."""
        threading.Thread(target=self._serve, args=[when_done], name="holdfast-shell", daemon=True).start()

    def wait(self, seconds: float) -> bool:
        """Wait for its end up to a time; return whether it has ended."""
        return self._done.wait(seconds)

    def stop(self, reason: str) -> None:
        """End the program, because its run does not need it any more."""
        self._told = self._told or reason

    def result(self) -> ShellResult:
        """Return how it ended; raise what prevented it."""
        if isinstance(self._result, ShellResult):
            return self._result
        raise self._result or AssertionError("it has not ended")

    def _serve(self, when_done: Callable[[], None] | None) -> None:
        try:
            with program_files() as files, _opened(self._command.log_file) as log_file:
                sender = Sender(self._around.append, lambda: self._around.stop_reason() is not None)
                try:
                    recorder = Recorder(self._command.step, self._around, sender, log_file)
                    self._result = self._run(files, recorder, sender)
                finally:
                    sender.close()
        except BaseException as error:  # noqa: BLE001 - the handler's thread raises it again
            self._result = error
        finally:
            self._done.set()
            if when_done is not None:
                when_done()

    def _run(self, files: ProgramFiles, recorder: Recorder, sender: Sender) -> ShellResult:
        command, mask = self._command, self._around.mask
        began_at = time.monotonic()
        recorder.say(Entry(f"$ {mask(shlex.join(command.argv))[:SHOWN]}", payload={"step": command.step}))
        program = Program(command.argv, {**command.env, **files.environment()}, command.cwd, files.folder)
        try:
            ended = self._pump(program, recorder, sender)
            recorder.finish()  # while the watcher ends
        finally:
            program.close()
        failpoint("after_program")
        written = files.read()
        result = ShellResult(
            step=command.step,
            exit_code=ended.code,
            seconds=time.monotonic() - began_at,
            stdout=recorder.end_of("stdout"),
            stderr=ended.error if isinstance(ended, Refusal) else recorder.end_of("stderr"),
            outputs={name: mask(value) for name, value in written.values.items()},
            summary=mask(written.summary),
            stop_reason=self._stop_reason,
            is_timed_out=self._is_timed_out,
        )
        for remark in written.remarks:
            recorder.say(Entry(mask(remark), "warn", {"step": command.step}))
        recorder.say(_last_entry(result, ended))
        return result

    def _pump(self, program: Program, recorder: Recorder, sender: Sender) -> Exit | Refusal:
        """Read the output until the program has ended, and stop it when the run has to."""
        deadline = None if self._command.timeout is None else time.monotonic() + self._command.timeout
        ended: Exit | Refusal | None = None
        with selectors.DefaultSelector() as selector:
            selector.register(program.status, selectors.EVENT_READ)
            selector.register(program.stdout, selectors.EVENT_READ, "stdout")
            selector.register(program.stderr, selectors.EVENT_READ, "stderr")
            while ended is None:
                for key, _ in selector.select(_pause(recorder.due_at)):
                    if key.data is None:
                        ended = program.read_status()
                    elif not _read(key, recorder):
                        selector.unregister(key.fd)
                now = time.monotonic()
                recorder.flush_if_due(now)
                self._supervise(program, sender, deadline, now)
            selector.unregister(program.status)
            _drain(selector, recorder)
        return ended

    def _supervise(self, program: Program, sender: Sender, deadline: float | None, now: float) -> None:
        """Stop the program when the run has to stop, or when its own time is up."""
        reason = self._around.stop_reason() or self._told or (None if sender.loss is None else sender.loss.what)
        is_late = deadline is not None and now >= deadline
        if self._kill_at is None and (reason is not None or is_late):
            self._stop_reason = reason
            self._is_timed_out = reason is None
            self._log.warning("shell.stopped", step=self._command.step, why=reason or "its time is up")
            program.terminate()
            self._kill_at = now + self._command.grace
        elif self._kill_at is not None and now >= self._kill_at:
            program.kill()
            self._kill_at = now + KILL_EACH


def _read(key: selectors.SelectorKey, recorder: Recorder) -> bool:
    """Read what is there; return False at the end of the pipe."""
    for _ in range(READS):
        try:
            data = os.read(key.fd, LARGE_READ if recorder.is_dropping else READ)
        except BlockingIOError:
            return True
        if not data:
            return False
        recorder.read(key.data, data)
    return True


def _drain(selector: selectors.BaseSelector, recorder: Recorder) -> None:
    """Read what is left in the pipes. A process that left the group may hold them open, so do not wait for it."""
    until = time.monotonic() + DRAIN
    while selector.get_map() and time.monotonic() < until and (ready := selector.select(0)):
        for key, _ in ready:
            if not _read(key, recorder):
                selector.unregister(key.fd)


def _pause(due_at: float | None) -> float:
    return LOOK_EACH if due_at is None else max(0.0, min(LOOK_EACH, due_at - time.monotonic()))


def _last_entry(result: ShellResult, ended: Exit | Refusal) -> Entry:
    payload: dict[str, Any] = {
        "step": result.step, "exit_code": result.exit_code, "seconds": round(result.seconds, 3),
    }  # fmt: skip
    if isinstance(ended, Refusal):
        return Entry(f"{result.step} could not be started: {ended.error}", "error", payload)
    how = _exit(result.exit_code)
    if result.is_timed_out:
        how = f"its timeout was reached: {how}"
    elif result.stop_reason is not None:
        how = f"it was stopped, because {result.stop_reason}: {how}"
    left = "; it left processes behind, which were ended" if ended.left_some else ""
    level: Level = "info" if result.exit_code == 0 else "error"
    return Entry(f"{result.step}: {how} after {result.seconds:.1f} s{left}", level, payload)


def _exit(code: int) -> str:
    if code > SIGNALLED and code - SIGNALLED in {each.value for each in signal.Signals}:
        return f"exit code {code} ({signal.Signals(code - SIGNALLED).name})"
    return f"exit code {code}"


def _opened(path: Path | None) -> contextlib.AbstractContextManager[IO[bytes] | None]:
    return contextlib.nullcontext() if path is None else path.open("wb")
