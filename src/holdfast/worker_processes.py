"""Workers of a demo or a self-test: real processes, which drain by themselves when whoever started them is gone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import IO

from holdfast.errors import HoldfastError

LEASE = timedelta(seconds=2)
SETTINGS = {
    "LEASE": f"{LEASE.total_seconds()}s",
    "RECOVERY_INTERVAL": "500ms",
    "POLL_MAX": "500ms",
    "GRACE": "2s",
    "LOG_LEVEL": "error",
    "LOG_FORMAT": "json",
}
OF_CONNECTIONS = frozenset({"HOLDFAST_PREPARE_STATEMENTS"})
END_WAIT = 10.0  # seconds: longer than grace and goodbye


class WorkerDied(HoldfastError):
    """A worker ended that nobody had ended."""


@dataclass(frozen=True, slots=True)
class Mate:
    """One worker process."""

    name: str
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class Terms:
    """What the workers of a crew have in common; `again` is the command that starts it all again."""

    dsn: str
    app: str
    concurrency: int
    again: str
    settings: Mapping[str, str]


class Crew:
    """The workers, and which of them are to end."""

    def __init__(self, terms: Terms, said: IO[bytes]) -> None:
        self.mates: list[Mate] = []
        self._terms = terms
        self._said = said
        self._doomed: list[Mate] = []

    def hire(self, *queues: str, failpoint: str | None = None) -> Mate:
        """Start a worker for these queues; one with a failpoint is to die there.

        It holds the other end of a pipe of ours, and a Ctrl-C of the terminal's is ours to pass on.
        """
        name = f"worker-{len(self.mates) + 1}"
        command = [sys.executable, "-m", "holdfast", "worker", "--app", self._terms.app, "--name", name]
        served = [part for queue in queues for part in ("--queue", queue)]
        process = subprocess.Popen(
            [*command, *served, "--concurrency", str(self._terms.concurrency), "--supervised"],
            stdin=subprocess.PIPE,
            stdout=self._said,
            stderr=self._said,
            env=self._environment({} if failpoint is None else {"FAILPOINT": failpoint}),
            start_new_session=True,
        )
        self.mates.append(Mate(name, process))
        if failpoint is not None:
            self._doomed.append(self.mates[-1])
        return self.mates[-1]

    @property
    def at_work(self) -> list[Mate]:
        """Those that are there, and are to stay."""
        return [mate for mate in self.mates if mate not in self._doomed and mate.process.poll() is None]

    def check(self) -> None:
        """Raise when one has ended that was not to."""
        for mate in self.mates:
            code = mate.process.poll()
            if code is not None and mate not in self._doomed:
                self._said.seek(0)
                error = WorkerDied(f"{mate.name} ended with exit code {code}; start it again: {self._terms.again}")
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
        self._doomed.append(mate)
        mate.process.kill()
        mate.process.wait()

    def end(self) -> None:
        """Have them drain, and wait for it."""
        for mate in self.mates:
            if mate.process.stdin is not None:
                mate.process.stdin.close()
            mate.process.send_signal(signal.SIGCONT)  # one that is paused would not
        until = time.monotonic() + END_WAIT
        for mate in self.mates:
            with suppress(subprocess.TimeoutExpired):
                mate.process.wait(max(0.0, until - time.monotonic()))
            if mate.process.poll() is None:
                mate.process.kill()
                mate.process.wait()

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        settings = {**SETTINGS, **self._terms.settings, **more, "DSN": self._terms.dsn}
        return inherited() | {f"HOLDFAST_{key}": value for key, value in settings.items()}


def inherited() -> dict[str, str]:
    """Give the environment without the user's settings, but for those that a pooler needs."""
    kept = os.environ.items()
    return {name: value for name, value in kept if not name.startswith("HOLDFAST_") or name in OF_CONNECTIONS}


@contextmanager
def crew(terms: Terms) -> Iterator[Crew]:
    """Give a crew without workers yet; all that it hires end with the block."""
    with tempfile.TemporaryFile() as said:
        aboard = Crew(terms, said)
        try:
            yield aboard
        finally:
            aboard.end()
