"""Plays the demo: tasks run, one worker is killed while it holds some, the others take over, and all tasks end."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import Connection

from holdfast.reads import demo
from holdfast.reads.demo import Load, Standing
from holdfast.worker_processes import WorkerGroup, WorkerProcess

LOOK_EACH = 0.1  # seconds
KILL_AT = 1 / 4  # the share of tasks that have ended: early enough that work is left while its leases run out
STILL = 0.05  # seconds after which a paused worker's last statement has reached the database
PATIENCE = 30.0  # seconds without any change


@dataclass(frozen=True, slots=True)
class Killed:
    """The killed worker, and the steps it held."""

    name: str
    pid: int
    worker: str
    held: int
    waiting: int  # of these, how many leases have not run out yet

    @property
    def rescued(self) -> int:
        """How many have been recovered."""
        return self.held - self.waiting


@dataclass(frozen=True, slots=True)
class Scene:
    """What the demo shows at one point in time."""

    kinds: Sequence[Standing]
    seconds: float
    rate: float  # recent tasks per second
    killed: Killed | None
    watched: Sequence[str] = ()  # what a deployment has printed

    @property
    def all(self) -> Standing:
        """The counts of all tasks."""
        return demo.added(self.kinds)

    @property
    def mean_rate(self) -> float:
        """Tasks per second since the start."""
        return self.all.over / self.seconds if self.seconds else 0.0


class Play:
    """One showing."""

    def __init__(self, connection: Connection[Any], load: Load, group: WorkerGroup) -> None:
        self._connection = connection
        self._load = load
        self._group = group
        self._began_at = time.monotonic()
        self._pace = Rate()
        self.killed: Killed | None = None

    def run(self) -> Iterator[Scene]:
        """Yield scene after scene until all tasks have ended, or nothing changes any more."""
        last: tuple[Standing, ...] = ()
        changed_at = time.monotonic()
        while True:
            self._group.check()
            kinds = tuple(demo.standings(self._connection, self._load))
            whole = demo.added(kinds)
            self._see_to_the_killing(whole)
            seconds = time.monotonic() - self._began_at
            yield Scene(kinds, seconds, self._pace.at(seconds, whole.over), self.killed)
            if kinds != last:
                last, changed_at = kinds, time.monotonic()
            if whole.over >= whole.total or time.monotonic() - changed_at > PATIENCE:
                return
            time.sleep(LOOK_EACH)

    def _see_to_the_killing(self, whole: Standing) -> None:
        if self.killed is not None:
            if self.killed.waiting:
                held = demo.held_by(self._connection, self._load, self.killed.worker)
                self.killed = replace(self.killed, waiting=len(held))
        elif whole.over >= whole.total * KILL_AT:
            for process in self._group.workers:
                self.killed = self.killed or self._kill(process)

    def _kill(self, process: WorkerProcess) -> Killed | None:
        """Kill a worker that certainly holds steps: pause it first, and check when it can no longer settle."""
        worker = demo.worker_named(self._connection, self._load, process.name)
        if worker is None:
            return None
        self._group.pause(process)
        time.sleep(STILL)
        held = demo.held_by(self._connection, self._load, worker)
        if not held:
            self._group.resume(process)
            return None
        self._group.kill(process)
        return Killed(process.name, process.process.pid, worker, len(held), len(held))


class Rate:
    """Tasks per second over the last moments."""

    def __init__(self, over: float = 1.5) -> None:
        self._over = over
        self._seen: list[tuple[float, int]] = []

    def at(self, seconds: float, count: int) -> float:
        """Add a count, and return the rate."""
        self._seen = [(s, c) for s, c in self._seen if seconds - s <= self._over] + [(seconds, count)]
        (since, was), span = self._seen[0], seconds - self._seen[0][0]
        return (count - was) / (seconds - since) if span > 0 else 0.0
