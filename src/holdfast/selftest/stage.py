"""The stage of a self-test: a group of workers on tasks, and what a fault needs to make it suffer."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from psycopg import Connection

from holdfast.reads import self_test
from holdfast.reads.self_test import Load
from holdfast.selftest import rounds
from holdfast.worker_processes import WorkerGroup, WorkerProcess

QUEUE = "selftest"
LOOK_EACH = 0.05  # seconds
STILL = 0.05  # after which a paused worker's last statement has reached the database
PATIENCE = 30.0  # seconds without any change: what is not over then is lost


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything; `seconds` is how long a task takes, about."""

    tasks: int = 1500
    kills: int = 8
    cuts: int = 20
    freezes: int = 2
    keys: int = 20
    workers: int = 3
    seconds: float = 0.12


@dataclass(frozen=True, slots=True)
class Made:
    """What was started, and how often it was made to fail; `twice` is what the start itself got wrong."""

    load: Load
    rounds: int
    kills: int = 0
    twice: int = 0


class Stage:
    """The place where faults happen: a connection, a group of workers on one queue, and the handlers' folder."""

    def __init__(
        self, dsn: str, connection: Connection[Any], group: WorkerGroup, folder: Path, chance: random.Random
    ) -> None:
        self.dsn = dsn
        self.connection = connection
        self.group = group
        self.folder = folder
        self.chance = chance
        self.report: Callable[[str], None] = lambda _: None

    def start(self, count: int, seconds: float, *queues: str) -> Load:
        """Start so many tasks, for the group unless other queues are named."""
        return rounds.start(self.connection, count, seconds, queues or (QUEUE,))

    def until(self, happened: Callable[[], bool], load: Load) -> bool:
        """Wait for something, as long as tasks of the load come to their end; say whether it happened."""
        changed_at, last = time.monotonic(), -1
        while not happened():
            self.group.check()
            done = self_test.over(self.connection, load)
            if done != last:
                changed_at, last = time.monotonic(), done
            self.report(f"{done:,} of {load.started:,} tasks over")
            if time.monotonic() - changed_at > PATIENCE:
                return False
            time.sleep(LOOK_EACH)
        return True

    def until_over(self, load: Load, share: float = 1.0) -> bool:
        """Wait until a share of the tasks is over."""
        return self.until(lambda: self_test.over(self.connection, load) >= share * load.started, load)

    def catch_one(self, load: Load) -> tuple[WorkerProcess, set[int]] | None:
        """Pause a worker while it holds steps, and tell their leases; None when nothing is left to hold."""
        until = time.monotonic() + PATIENCE
        while self_test.over(self.connection, load) < load.started and time.monotonic() < until:
            self.group.check()
            for worker in self.chance.sample(self.group.at_work, len(self.group.at_work)):
                if leases := self._caught(worker, load):
                    return worker, leases
            time.sleep(LOOK_EACH)
        return None

    def _caught(self, worker: WorkerProcess, load: Load) -> set[int]:
        """Pause it if it holds steps; it is looked at again when it can settle no more."""
        if worker.name not in self_test.held(self.connection, load):
            return set()
        self.group.pause(worker)
        time.sleep(STILL)
        leases = self_test.held(self.connection, load).get(worker.name, set())
        if not leases:
            self.group.resume(worker)
        return leases
