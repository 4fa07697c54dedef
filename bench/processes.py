"""Processes of an engine: the adapter's commands, its workers behind a barrier, and the files of their probes."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import home
from engines import Engine

COUNTER = struct.Struct("=Qdd")  # as adapters/probe.py and probe.mjs write it
READY_WAIT = 60.0
COMMAND_WAIT = 600.0
END_WAIT = 0.5  # what they would still hand back is thrown away with their database
TAIL = 600
DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


@dataclass(frozen=True)
class Count:
    """The handler calls of a worker process, and the times of the first and the last."""

    calls: int
    first: float
    last: float


class Probes:
    """The folder that an engine's workers write their counts and latencies to."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def counts(self) -> list[Count]:
        """Read the counter of every worker process that has called a handler."""
        contents = [file.read_bytes() for file in self.folder.glob("*.count")]
        read = [Count(*COUNTER.unpack(content)) for content in contents if len(content) == COUNTER.size]
        return [count for count in read if count.calls]

    def calls(self) -> int:
        return sum(count.calls for count in self.counts())

    def first(self) -> float:
        return min(count.first for count in self.counts())

    def last(self) -> float:
        return max(count.last for count in self.counts())

    def moments(self) -> list[tuple[float, float]]:
        """Return the times of enqueue and of the handler's first line, for every task that carried the former."""
        lines = [line.split() for file in self.folder.glob("*.moments") for line in file.read_text().splitlines()]
        return [(float(line[0]), float(line[1])) for line in lines if len(line) == 2]

    def latencies(self) -> list[float]:
        """Return the seconds from the enqueue call to the handler's first line."""
        return [began - sent for sent, began in self.moments()]

    def ready(self) -> int:
        return len(list(self.folder.glob("*.ready")))

    def go(self) -> None:
        (self.folder / "go").touch()


@dataclass(frozen=True)
class Crew:
    """Running worker processes and their probes."""

    processes: list[subprocess.Popen[bytes]]
    probes: Probes
    log: Path

    def check(self) -> None:
        """Raise an error if one of them has ended."""
        for process in self.processes:
            if process.poll() is not None:
                raise RuntimeError(f"a worker ended with {process.returncode}: {tail(self.log)}")


def command_of(engine: Engine, *arguments: object) -> list[str]:
    """Return the command line of an engine's adapter."""
    script = str(home.ADAPTERS / engine.adapter)
    program = (
        sys.executable if engine.is_ours else str(home.node() if engine.language == "node" else home.peers_python())
    )
    return [program, script, *map(str, arguments)]


def environment(engine: Engine, dsn: str, **more: object) -> dict[str, str]:
    """Return the environment of an adapter."""
    given = {
        "BENCH_DSN": dsn,
        "BENCH_NODE_HOME": str(home.node_home()),
        "PYTHONWARNINGS": "ignore",
        **engine.environment,
    }
    return {**os.environ, **given, **{name: str(value) for name, value in more.items()}}


def run(command: list[str], env: Mapping[str, str], log: Path, *, count: int = 1) -> dict[str, Any]:
    """Run a command to its end, `count` times at once, and return the JSON object of its last line; stderr goes to the log."""
    processes: list[subprocess.Popen[bytes]] = []
    said = b""
    try:
        with log.open("ab") as errors:
            processes.extend(_start(command, env, subprocess.PIPE, errors) for _ in range(count))
        for process in processes:
            said, _ = process.communicate(timeout=COMMAND_WAIT)
            if process.returncode:
                raise RuntimeError(f"{Path(command[1]).name} {command[2]} ended with {process.returncode}: {tail(log)}")
    finally:
        end(processes)
    lines = [line for line in said.decode().splitlines() if line.startswith("{")]
    return dict(json.loads(lines[-1])) if lines else {}


@contextmanager
def crew(command: list[str], count: int, env: Mapping[str, str], probes: Probes, log: Path) -> Iterator[Crew]:
    """Run worker processes: load them, start them together, end them with the block."""
    processes: list[subprocess.Popen[bytes]] = []
    try:
        with log.open("ab") as out:
            processes.extend(_start(command, env, out, out) for _ in range(count))
        made = Crew(processes, probes, log)
        wait_until(lambda: probes.ready() >= count, READY_WAIT, made, "to load")
        probes.go()
        yield made
    finally:
        end(processes)


def wait_until(happened: Any, within: float, crew: Crew, what: str) -> None:
    """Wait for a condition while the workers live."""
    until = time.monotonic() + within
    while not happened():
        crew.check()
        if time.monotonic() > until:
            raise TimeoutError(f"the workers took more than {within:.0f} s {what}: {tail(crew.log)}")
        time.sleep(0.01)


def end(processes: list[subprocess.Popen[bytes]]) -> None:
    """End only the process groups that were started here."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        for process in processes:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        until = time.monotonic() + END_WAIT
        while time.monotonic() < until and any(process.poll() is None for process in processes):
            time.sleep(0.02)


def tail(log: Path) -> str:
    """Return the last lines of a log."""
    return log.read_text(errors="replace")[-TAIL:].strip() if log.exists() else ""


def _start(command: list[str], env: Mapping[str, str], out: Any, errors: Any) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own, which ends with the bench even if that is killed."""
    return subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=out,
        stderr=errors,
        process_group=0,
        preexec_fn=_die_with_parent,  # noqa: PLW1509 - the bench has no threads
    )


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, signal.SIGTERM)
