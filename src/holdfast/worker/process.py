"""A worker as a process, with signals, probe and exit codes, and a supervisor for several of them."""

from __future__ import annotations

import asyncio
import gc
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

from holdfast import log
from holdfast.failpoints import failpoint
from holdfast.handlers.registry import Registry
from holdfast.worker import forks
from holdfast.worker.exit_codes import REFUSED, STOPS
from holdfast.worker.hooks import Hooks
from holdfast.worker.lanes.loop import new_loop
from holdfast.worker.loop import Worker
from holdfast.worker.options import Options
from holdfast.worker.probe import Probe

GARBAGE_EACH = 10_000  # objects between collections: a batch creates some thousands, and frees them on its own
SWITCH_EACH = 0.001  # seconds: threads of handlers must not delay the database's answer by the default 5 ms
STDIN = 0
AGAIN_AFTER = 1.0
AGAIN_AT_MOST = 30.0
STEADY_AFTER = 60.0


def run_worker(
    dsn: str,
    registry: Registry,
    options: Options,
    *,
    hooks: Hooks | None = None,
    probe: Probe | None = None,
    is_supervised: bool = False,
) -> int:
    """Run a worker in this process until it is stopped, and return the exit code."""
    _suit_interpreter()
    loop = new_loop()
    try:
        worker = Worker(dsn, registry, options, hooks)
        if probe is not None:
            probe.start(worker)
        if threading.current_thread() is threading.main_thread():
            for number in STOPS:
                loop.add_signal_handler(number, worker.stop)
            forks.own_signals(*STOPS)
        if is_supervised:
            _stop_with_supervisor(loop, worker)
        return loop.run_until_complete(worker.run())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        if probe is not None:
            probe.stop()


def _suit_interpreter() -> None:
    """Tune the interpreter for thousands of short-lived objects per second."""
    sys.setswitchinterval(SWITCH_EACH)
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE_EACH, 20, 50)


def _stop_with_supervisor(loop: asyncio.AbstractEventLoop, worker: Worker) -> None:
    """Drain when the supervisor is gone, which holds the other end of stdin.

    Read the descriptor: a thread that waits inside sys.stdin holds its lock, so the interpreter would abort at exit.
    """

    def watch() -> None:
        while os.read(STDIN, 1024):
            pass
        with suppress(RuntimeError):  # it has already stopped
            loop.call_soon_threadsafe(worker.stop)

    threading.Thread(target=watch, name="holdfast-supervised", daemon=True).start()


class Supervisor:
    """Keeps a number of worker processes alive: it restarts one that ends, with growing delays.

    In a burst a process that ends normally is finished, and the supervisor ends with the last. A process that was
    refused is not restarted: the others are stopped, and its exit code becomes the supervisor's.
    """

    def __init__(self, commands: Sequence[list[str]], *, burst: bool = False) -> None:
        self._commands = commands
        self._burst = burst
        self._children: list[subprocess.Popen[bytes]] = []
        self._failures = [0] * len(commands)
        self._started = [0.0] * len(commands)
        self._signals = 0
        # Not an Event, because the code that a signal interrupts may hold its lock.
        self._changed: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._log = log.get("supervisor")

    def run(self) -> int:
        """Run the processes until stopped, and return the worst of their exit codes."""
        for number in (*STOPS, signal.SIGCHLD):
            signal.signal(number, self._signalled)
        self._children = [self._start(i) for i in range(len(self._commands))]
        failpoint("after_start_workers")
        while any(child.poll() is None for child in self._children) or not self._signals:
            if not self._signals and all(self._is_through(child) for child in self._children):
                break
            with suppress(queue.Empty):
                self._changed.get(timeout=0.5)
            if not self._signals and self._refusal() is not None:
                self._log.error("worker.refused", exit_code=self._refusal(), then="the other workers are stopped")
                self._stop_all()
            elif not self._signals:
                self._revive()
        return self._refusal() or max((child.returncode if child.returncode >= 0 else 1) for child in self._children)

    def _start(self, place: int) -> subprocess.Popen[bytes]:
        self._started[place] = time.monotonic()
        # In its own process group: Ctrl-C reaches a terminal's whole group, and we forward it; once is enough.
        return subprocess.Popen(self._commands[place], stdin=subprocess.PIPE, process_group=0)

    def _is_through(self, child: subprocess.Popen[bytes]) -> bool:
        return self._burst and child.poll() == 0

    def _revive(self) -> None:
        now = time.monotonic()
        for place, child in enumerate(self._children):
            code = child.poll()
            if code is None or self._is_through(child):
                continue
            if now - self._started[place] > STEADY_AFTER:
                self._failures[place] = 0
            if now - self._started[place] < min(AGAIN_AT_MOST, AGAIN_AFTER * 2 ** min(self._failures[place], 10)):
                continue
            self._failures[place] += 1
            self._log.warning("worker.died", place=place, pid=child.pid, exit_code=code, deaths=self._failures[place])
            failpoint("before_revive")
            self._children[place] = self._start(place)
            failpoint("after_revive")

    def _signalled(self, number: int, _frame: object) -> None:
        if number != signal.SIGCHLD:
            self._stop_all()
        self._changed.put(number)

    def _stop_all(self) -> None:
        self._signals += 1
        for child in self._children:
            if child.poll() is None:
                child.send_signal(signal.SIGTERM)

    def _refusal(self) -> int | None:
        return next((code for child in self._children if (code := child.poll()) in REFUSED), None)
