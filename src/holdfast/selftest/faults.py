"""The faults of a self-test. Each starts tasks, makes something fail while they run, and gives what was started."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Barrier
from typing import Any

from psycopg import Connection

from holdfast.crew import Crew, Mate
from holdfast.errors import KeyConflict
from holdfast.kernel import calls, db, schema
from holdfast.selftest import load as loads
from holdfast.selftest import tasks
from holdfast.selftest.history import lines
from holdfast.selftest.load import Load

QUEUE = "selftest"
LOOK_EACH = 0.05  # seconds
STILL = 0.05  # after which a paused worker's last statement has reached the database
PATIENCE = 30.0  # seconds without any change: what is not over then is lost
POINTS = ("after_claim_steps", "after_handler", "before_settle_batch", "after_settle_batch")
STARTERS = 8
OTHERS = "select a.pid from pg_catalog.pg_stat_activity a where a.application_name = %s and a.pid <> pg_backend_pid()"


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
    """The place where faults happen: a connection, a crew at work on one queue, and a folder that handlers write to."""

    def __init__(self, dsn: str, connection: Connection[Any], crew: Crew, folder: Path, chance: random.Random) -> None:
        self.dsn = dsn
        self.connection = connection
        self.crew = crew
        self.folder = folder
        self.chance = chance
        self.told: Callable[[str], None] = lambda _: None

    def start(self, count: int, seconds: float, *queues: str) -> Load:
        """Start so many tasks, for the crew unless other queues are named."""
        return loads.start(self.connection, count, seconds, queues or (QUEUE,))

    def until(self, happened: Callable[[], bool], load: Load) -> bool:
        """Wait for something, as long as tasks of the load come to their end; say whether it happened."""
        changed_at, last = time.monotonic(), -1
        while not happened():
            self.crew.check()
            done = loads.over(self.connection, load)
            if done != last:
                changed_at, last = time.monotonic(), done
            self.told(f"{done:,} of {load.started:,} tasks over")
            if time.monotonic() - changed_at > PATIENCE:
                return False
            time.sleep(LOOK_EACH)
        return True

    def until_over(self, load: Load, share: float = 1.0) -> bool:
        """Wait until a share of the tasks is over."""
        return self.until(lambda: loads.over(self.connection, load) >= share * load.started, load)

    def catch_one(self, load: Load) -> tuple[Mate, set[int]] | None:
        """Pause a worker while it holds steps, and tell their leases; None when nothing is left to hold."""
        until = time.monotonic() + PATIENCE
        while loads.over(self.connection, load) < load.started and time.monotonic() < until:
            self.crew.check()
            for mate in self.chance.sample(self.crew.at_work, len(self.crew.at_work)):
                if leases := self._caught(mate, load):
                    return mate, leases
            time.sleep(LOOK_EACH)
        return None

    def _caught(self, mate: Mate, load: Load) -> set[int]:
        """Pause it if it holds steps; it is looked at again when it can settle no more."""
        if mate.name not in loads.held(self.connection, load):
            return set()
        self.crew.pause(mate)
        time.sleep(STILL)
        leases = loads.held(self.connection, load).get(mate.name, set())
        if not leases:
            self.crew.resume(mate)
        return leases


def kills(stage: Stage, sizes: Sizes) -> Made:
    """Kill workers that hold tasks, one after the other; another is hired for each."""
    load = stage.start(sizes.tasks, sizes.seconds)
    killed = 0
    while killed < sizes.kills and stage.until_over(load, (killed + 1) / (sizes.kills + 2)):
        caught = stage.catch_one(load)
        if caught is None:
            break
        stage.crew.kill(caught[0])
        stage.crew.hire(QUEUE)
        killed += 1
    stage.until_over(load)
    return Made(load, rounds=killed, kills=killed)


def points(stage: Stage, sizes: Sizes) -> Made:
    """Let workers die at chosen steps of their work, each with a queue of its own; then one takes over all of it."""
    queues = [f"{QUEUE}-{point}" for point in POINTS]
    load = stage.start(3 * len(tasks.KINDS) * len(POINTS), sizes.seconds, *queues)
    doomed = [stage.crew.hire(queue, failpoint=f"{point}:kill9") for queue, point in zip(queues, POINTS, strict=True)]
    stage.until(lambda: all(mate.process.poll() is not None for mate in doomed), load)
    dead = sum(mate.process.poll() is not None for mate in doomed)
    stage.crew.hire(*queues)
    stage.until_over(load)
    return Made(load, rounds=dead, kills=dead)


def freezes(stage: Stage, sizes: Sizes) -> Made:
    """Freeze a worker until others have begun what it holds, then let it go on: its outcomes come too late."""
    load = stage.start(30 * sizes.freezes, 4 * sizes.seconds)
    frozen = 0
    while frozen < sizes.freezes and (caught := stage.catch_one(load)) is not None:
        mate, leases = caught
        stage.until(partial(_is_taken_over, stage, load, leases), load)
        stage.crew.resume(mate)
        stage.until(partial(_has_ended, stage, leases), load)
        frozen += 1
    stage.until_over(load)
    return Made(load, rounds=frozen)


def cuts(stage: Stage, sizes: Sizes) -> Made:
    """Cut connections of the workers while they use them."""
    load = stage.start(sizes.tasks // 2, sizes.seconds)
    cut = 0
    while cut < sizes.cuts and stage.until_over(load, (cut + 1) / (sizes.cuts + 2)):
        pids = sorted(pid for (pid,) in stage.connection.execute(OTHERS, [schema.name()]))
        if pids:
            stage.connection.execute("select pg_terminate_backend(%s)", [stage.chance.choice(pids)])
        cut += 1
    stage.until_over(load)
    return Made(load, rounds=cut)


def keys(stage: Stage, sizes: Sizes) -> Made:
    """Start one task from many threads with one key, again and again; then ask with another input."""
    after = loads.last_step(stage.connection)
    kind, given = tasks.PAID[0], {"number": 1, "seconds": 0.0}
    wrong = 0
    with ThreadPoolExecutor(STARTERS) as pool:
        opened = [db.connect(stage.dsn) for _ in range(STARTERS)]
        try:
            for number in range(sizes.keys):
                ready, key = Barrier(STARTERS), f"key-{number}"
                call = calls.start_task(kind, given, key=key, queue=QUEUE)
                race = [pool.submit(_start, connection, ready, call) for connection in opened]
                wrong += len({one.result() for one in race}) - 1
                wrong += not _is_refused(stage.connection, kind, key)
        finally:
            for connection in opened:
                connection.close()
    load = Load(sizes.keys, after, loads.last_step(stage.connection))
    stage.until_over(load)
    return Made(load, rounds=sizes.keys, twice=wrong)


def _start(connection: Connection[Any], ready: Barrier, call: calls.Call[int]) -> int:
    ready.wait(timeout=PATIENCE)
    return db.run(connection, call)[0]


def _is_refused(connection: Connection[Any], kind: str, key: str) -> bool:
    try:
        db.run(connection, calls.start_task(kind, {"number": 2, "seconds": 0.0}, key=key, queue=QUEUE))
    except KeyConflict:
        return True
    return False


def _is_taken_over(stage: Stage, load: Load, leases: set[int]) -> bool:
    """Whether some step of these leases has been claimed by another, or all that were held are over."""
    entries = loads.story(stage.connection, load)
    steps = {entry.step_id for entry in entries if entry.lease_id in leases}
    newest = {entry.step_id: entry.lease_id for entry in entries if entry.event == "claimed"}
    return any(newest[step] not in leases for step in steps)


def _has_ended(stage: Stage, leases: set[int]) -> bool:
    """Whether each handler that had begun under these leases has written how it ended."""
    written = [line for line in lines(stage.folder) if line.lease in leases]
    begun = {line.lease for line in written if line.what == "begin"}
    return begun <= {line.lease for line in written if line.what != "begin"}
