"""Workers of a demo or a self-test: real processes, which drain on their own when their parent is gone."""

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
END_WAIT = 10.0  # seconds: longer than a worker's grace period and sign-off


class WorkerDied(HoldfastError):
    """A worker ended unexpectedly."""


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """One worker process."""

    name: str
    process: subprocess.Popen[bytes]


@dataclass(frozen=True, slots=True)
class GroupOptions:
    """The options that a group's workers share; `again` is the command that repeats the whole."""

    dsn: str
    app: str
    concurrency: int
    again: str
    settings: Mapping[str, str]


class WorkerGroup:
    """The workers, and which of them are expected to end."""

    def __init__(self, options: GroupOptions, output: IO[bytes]) -> None:
        self.workers: list[WorkerProcess] = []
        self._options = options
        self._output = output
        self._expected_to_end: list[WorkerProcess] = []

    def start(self, *queues: str, failpoint: str | None = None) -> WorkerProcess:
        """Start a worker for these queues; a worker with a failpoint is expected to die there.

        It holds the other end of our pipe. It does not receive the terminal's Ctrl-C; we forward it.
        """
        name = f"worker-{len(self.workers) + 1}"
        command = [sys.executable, "-m", "holdfast", "worker", "--app", self._options.app, "--name", name]
        served = [part for queue in queues for part in ("--queue", queue)]
        process = subprocess.Popen(
            [*command, *served, "--concurrency", str(self._options.concurrency), "--supervised"],
            stdin=subprocess.PIPE,
            stdout=self._output,
            stderr=self._output,
            env=self._environment({} if failpoint is None else {"FAILPOINT": failpoint}),
            start_new_session=True,
        )
        self.workers.append(WorkerProcess(name, process))
        if failpoint is not None:
            self._expected_to_end.append(self.workers[-1])
        return self.workers[-1]

    @property
    def at_work(self) -> list[WorkerProcess]:
        """The workers that run and are not expected to end."""
        return [
            worker for worker in self.workers if worker not in self._expected_to_end and worker.process.poll() is None
        ]

    def check(self) -> None:
        """Raise if a worker ended unexpectedly."""
        for worker in self.workers:
            code = worker.process.poll()
            if code is not None and worker not in self._expected_to_end:
                self._output.seek(0)
                error = WorkerDied(
                    f"{worker.name} ended with exit code {code}",
                    where=worker.name,
                    next=f"start it again: {self._options.again}",
                )
                error.add_note(self._output.read()[-2000:].decode(errors="replace").strip())
                raise error

    def pause(self, worker: WorkerProcess) -> None:
        """Pause it: from now on it sends nothing new to the database."""
        worker.process.send_signal(signal.SIGSTOP)

    def resume(self, worker: WorkerProcess) -> None:
        """Resume it."""
        worker.process.send_signal(signal.SIGCONT)

    def kill(self, worker: WorkerProcess) -> None:
        """Kill it with SIGKILL."""
        self._expected_to_end.append(worker)
        worker.process.kill()
        worker.process.wait()

    def end(self) -> None:
        """Let the workers drain, and wait until they end."""
        for worker in self.workers:
            if worker.process.stdin is not None:
                worker.process.stdin.close()
            worker.process.send_signal(signal.SIGCONT)  # a paused process would not end
        until = time.monotonic() + END_WAIT
        for worker in self.workers:
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(max(0.0, until - time.monotonic()))
            if worker.process.poll() is None:
                worker.process.kill()
                worker.process.wait()

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        settings = {**SETTINGS, **self._options.settings, **more, "DSN": self._options.dsn}
        return inherited() | {f"HOLDFAST_{key}": value for key, value in settings.items()}


def inherited() -> dict[str, str]:
    """Return the environment without the user's settings, except those that a pooler needs."""
    settings = os.environ.items()
    return {name: value for name, value in settings if not name.startswith("HOLDFAST_") or name in OF_CONNECTIONS}


@contextmanager
def worker_group(options: GroupOptions) -> Iterator[WorkerGroup]:
    """Yield an empty group; all workers that it starts end with the block."""
    with tempfile.TemporaryFile() as output:
        group = WorkerGroup(options, output)
        try:
            yield group
        finally:
            group.end()
