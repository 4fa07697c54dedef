"""The output of a program: many lines through ctx.shell into the database, against `cat` through a pipe into a file."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Self

import psutil
import psycopg

from bench import Bench
from holdfast import log, masking
from holdfast.connections.handler_tx import HandlerExecutor
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.ops.calls import queue_run
from holdfast.ops.context import OpsCtx
from holdfast.ops.run import OpsRun
from hot_loop import install

NAME = "shell"
TITLE = "Output of a program as events of its run"
TIME, MEMORY = "time", "memory"
LOOK_EACH = 0.005
SECRETS = ("not-a-secret-1", "not-a-secret-2", "not-a-secret-3")  # three, as a worker may have


def measure(bench: Bench) -> None:
    """Pass the same lines through both."""
    bench.asked = [engine for engine in bench.asked if engine.is_ours]
    count = (bench.tasks or 0) * 100 or bench.size(1_000_000, 200_000)
    with tempfile.TemporaryDirectory(prefix="hf-bench-") as folder:
        lines = write_lines(Path(folder) / "lines", count)
        for number, engine in bench.turns():
            with bench.attempt(engine):
                if engine.name != "holdfast":
                    bench.record(engine, TIME, number, through_cat(lines), "s", n=count)
                    continue
                dsn = bench.server.fresh(engine.name)
                install(dsn, engine.name)
                seconds, grown = through_shell(dsn, lines)
                bench.record(engine, TIME, number, seconds, "s", n=count)
                bench.record(engine, MEMORY, number, grown, "MiB", n=count)


def write_lines(path: Path, count: int) -> Path:
    """Write lines as builds print them, of about seventy characters."""
    with path.open("w") as file:
        file.writelines(
            f"[{n:07}] compiled src/module_{n % 977:03}.c in 0.1 s, without a warning\n" for n in range(count)
        )
    return path


def through_cat(lines: Path) -> float:
    """Return how long two cats take, with a pipe between them."""
    begun = time.perf_counter()
    subprocess.run(["sh", "-c", 'cat "$0" | cat > "$0.copy"', str(lines)], check=True)
    return time.perf_counter() - begun


def through_shell(dsn: str, lines: Path) -> tuple[float, float]:
    """Return how long a run's program takes until all of its events are stored, and how much memory that needed."""
    for secret in SECRETS:
        masking.known.add(secret)
    with psycopg.connect(dsn, autocommit=True) as connection:
        (queued,) = run(connection, queue_run("bench", "local"))
        (step,) = run(connection, calls.claim_steps("bench", "ops", ["ops:deploy"], batch=1, lease=timedelta(hours=1)))
    executor = HandlerExecutor(dsn, "bench", None, timedelta(seconds=30))
    ctx = OpsCtx(step, executor)
    ctx.begin(OpsRun(queued.run_id, "bench", "local", "env"))  # which also opens the connections
    log.get("shell")  # a worker has logged before
    with Peak() as peak:
        begun = time.perf_counter()
        ctx.shell("cat", lines)
        seconds = time.perf_counter() - begun
    executor.close()
    return seconds, peak.grown


class Peak:
    """How much this process's memory grows, at most, inside the block."""

    def __enter__(self) -> Self:
        self._process = psutil.Process()
        self._before = self._most = self._process.memory_info().rss
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def grown(self) -> float:
        """The growth in mebibytes."""
        return (self._most - self._before) / 2**20

    def _look(self) -> None:
        while not self._ended.wait(LOOK_EACH):
            self._most = max(self._most, self._process.memory_info().rss)
