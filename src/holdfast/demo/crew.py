"""The demo's workers: real processes, which drain by themselves when the demo is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from holdfast.errors import HoldfastError

LEASE = timedelta(seconds=2)
CONCURRENCY = 8
APP = "holdfast.demo.tasks:hf"
SETTINGS = {
    "LEASE": f"{LEASE.total_seconds()}s",
    "RECOVERY_INTERVAL": "500ms",
    "POLL_MAX": "500ms",
    "GRACE": "2s",
    "LOG_LEVEL": "error",
    "LOG_FORMAT": "json",
}
END_WAIT = 10.0  # seconds: longer than grace and goodbye


class WorkerDied(HoldfastError):
    """A worker of the demo ended that nobody had ended."""


@dataclass(frozen=True, slots=True)
class Mate:
    """One worker process."""

    name: str
    process: subprocess.Popen[bytes]


class Crew:
    """The workers, and the one that was killed."""

    def __init__(self, mates: list[Mate], said: IO[bytes]) -> None:
        self.mates = mates
        self._said = said
        self._killed: Mate | None = None

    def check(self) -> None:
        """Raise when one has ended that was not killed by us."""
        for mate in self.mates:
            code = mate.process.poll()
            if code is not None and mate is not self._killed:
                self._said.seek(0)
                error = WorkerDied(f"{mate.name} ended with exit code {code}; start the demo again: holdfast demo")
                error.add_note(self._said.read()[-2000:].decode(errors="replace").strip())
                raise error

    def pause(self, mate: Mate) -> None:
        """Stop it where it is: from here on it says nothing new to the database."""
        mate.process.send_signal(signal.SIGSTOP)

    def resume(self, mate: Mate) -> None:
        """Let it go on."""
        mate.process.send_signal(signal.SIGCONT)

    def kill(self, mate: Mate) -> None:
        """Kill it with -9: it has no say in it, and tells nobody."""
        self._killed = mate
        mate.process.kill()
        mate.process.wait()

    def end(self) -> None:
        """Have them drain, and wait for it."""
        for mate in self.mates:
            if mate.process.stdin is not None:
                mate.process.stdin.close()
        until = time.monotonic() + END_WAIT
        for mate in self.mates:
            with suppress(subprocess.TimeoutExpired):
                mate.process.wait(max(0.0, until - time.monotonic()))
            if mate.process.poll() is None:
                mate.process.kill()
                mate.process.wait()


@contextmanager
def crew(dsn: str, queue: str, size: int) -> Iterator[Crew]:
    """Run so many workers for a queue for as long as the block lasts."""
    with tempfile.TemporaryFile() as said:
        aboard = Crew([], said)
        try:
            for number in range(1, size + 1):
                aboard.mates.append(_start(dsn, queue, f"worker-{number}", said))
            yield aboard
        finally:
            aboard.end()


def _start(dsn: str, queue: str, name: str, said: IO[bytes]) -> Mate:
    """Start one; it holds the other end of a pipe of ours, and a Ctrl-C of the terminal's is ours to pass on."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    settings = {f"HOLDFAST_{key}": value for key, value in SETTINGS.items()}
    command = [sys.executable, "-m", "holdfast", "worker", "--app", APP, "--queue", queue, "--name", name]
    process = subprocess.Popen(
        [*command, "--concurrency", str(CONCURRENCY), "--supervised"],
        stdin=subprocess.PIPE,
        stdout=said,
        stderr=said,
        env={**others, **settings, "HOLDFAST_DSN": dsn},
        start_new_session=True,
    )
    return Mate(name, process)
