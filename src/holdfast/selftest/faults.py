"""The faults of a self-test. Each starts tasks, makes something fail while they run, and returns what was started."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from threading import Barrier
from typing import Any

from psycopg import Connection

from holdfast.connections.deadline import connect
from holdfast.errors import KeyConflict, LeaseLost
from holdfast.kernel import calls, db, self_test_schema
from holdfast.kernel.call import Call
from holdfast.models import ClaimedStep, Done, Settlement
from holdfast.reads import self_test
from holdfast.reads.self_test import Load
from holdfast.selftest import tasks
from holdfast.selftest.history import lines
from holdfast.selftest.stage import PATIENCE, QUEUE, Made, Sizes, Stage

LEASE = timedelta(seconds=1)
POINTS = ("after_claim_steps", "after_handler", "before_settle_batch", "after_settle_batch")
STARTERS = 8
LATE = "late/self-test"  # a worker that returns when others have its leases


def kills(stage: Stage, sizes: Sizes) -> Made:
    """Kill workers that hold tasks, one after the other, and replace each."""
    load = stage.start(sizes.tasks, sizes.seconds)
    killed = 0
    while killed < sizes.kills and stage.until_over(load, (killed + 1) / (sizes.kills + 2)):
        caught = stage.catch_one(load)
        if caught is None:
            break
        stage.group.kill(caught[0])
        stage.group.start(QUEUE)
        killed += 1
    stage.until_over(load)
    return Made(load, rounds=killed, kills=killed)


def points(stage: Stage, sizes: Sizes) -> Made:
    """Let workers die at chosen points, each with its own queue; then one worker takes over everything."""
    queues = [f"{QUEUE}-{point}" for point in POINTS]
    load = stage.start(3 * len(tasks.KINDS) * len(POINTS), sizes.seconds, *queues)
    doomed = [stage.group.start(queue, failpoint=f"{point}:kill9") for queue, point in zip(queues, POINTS, strict=True)]
    stage.until(lambda: all(worker.process.poll() is not None for worker in doomed), load)
    dead = sum(worker.process.poll() is not None for worker in doomed)
    stage.group.start(*queues)
    stage.until_over(load)
    return Made(load, rounds=dead, kills=dead)


def freezes(stage: Stage, sizes: Sizes) -> Made:
    """Freeze a worker until others have begun its steps, then resume it: its outcomes arrive too late."""
    load = stage.start(30 * sizes.freezes, 4 * sizes.seconds)
    frozen = 0
    while frozen < sizes.freezes and (caught := stage.catch_one(load)) is not None:
        worker, leases = caught
        stage.until(partial(_is_taken_over, stage, load, leases), load)
        stage.group.resume(worker)
        stage.until(partial(_has_ended, stage, load, leases), load)
        frozen += 1
    stage.until_over(load)
    return Made(load, rounds=frozen)


def latecomers(stage: Stage, sizes: Sizes) -> Made:
    """Claim tasks, stay silent until others have them, and then report outcomes, all of which must be rejected."""
    with stage.connection.transaction():  # nobody sees the tasks before they are claimed
        load = stage.start(8 * sizes.freezes, 4 * sizes.seconds)
        claim = calls.claim_steps(LATE, QUEUE, batch=load.started, lease=LEASE)
        claimed = db.run(stage.connection, claim)
    accepted: set[int] = set()

    def is_over() -> bool:
        current = self_test.leases(stage.connection, load)
        for step in claimed:
            if current.get(step.step_id) not in {None, step.lease_id} and _is_accepted(stage.connection, step):
                accepted.add(step.step_id)
        return self_test.over(stage.connection, load) >= load.started

    stage.until(is_over, load)
    return Made(load, rounds=len(claimed), twice=len(accepted))


def _is_accepted(connection: Connection[Any], step: ClaimedStep) -> bool:
    """Return whether anything under an old lease still counts: a renewal, a note, an outcome."""
    renewal = calls.renew_leases(LATE, [step.lease_id], step_ids=[step.step_id], lease=LEASE)
    is_renewed = bool(db.run(connection, renewal))
    try:
        db.run(connection, calls.note(step.step_id, step.lease_id, "info", "still here"))
        is_noted = True
    except LeaseLost:
        is_noted = False
    done = Settlement(step.step_id, step.lease_id, Done(step.lease_id))
    return bool(db.run(connection, calls.settle_steps([done]))) or is_renewed or is_noted


def cuts(stage: Stage, sizes: Sizes) -> Made:
    """Terminate connections of the workers while they use them."""
    load = stage.start(sizes.tasks // 2, sizes.seconds)
    cut = 0
    while cut < sizes.cuts and stage.until_over(load, (cut + 1) / (sizes.cuts + 2)):
        pids = self_test.other_connections(stage.connection, self_test_schema.name())
        if pids:
            self_test.end_connection(stage.connection, stage.chance.choice(pids))
        cut += 1
    stage.until_over(load)
    return Made(load, rounds=cut)


def keys(stage: Stage, sizes: Sizes) -> Made:
    """Start one task from many threads with one key, repeatedly; then with a different input."""
    after = self_test.last_step(stage.connection)
    kind, given = tasks.PAID[0], {"number": 1, "seconds": 0.0}
    wrong = 0
    with ThreadPoolExecutor(STARTERS) as pool:
        opened = [connect(stage.dsn) for _ in range(STARTERS)]
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
    load = Load(sizes.keys, after, self_test.last_step(stage.connection))
    stage.until_over(load)
    return Made(load, rounds=sizes.keys, twice=wrong)


def _start(connection: Connection[Any], ready: Barrier, call: Call[int]) -> int:
    ready.wait(timeout=PATIENCE)
    return db.run(connection, call)[0]


def _is_refused(connection: Connection[Any], kind: str, key: str) -> bool:
    try:
        db.run(connection, calls.start_task(kind, {"number": 2, "seconds": 0.0}, key=key, queue=QUEUE))
    except KeyConflict:
        return True
    return False


def _is_taken_over(stage: Stage, load: Load, leases: set[int]) -> bool:
    """Return whether another worker has claimed a step of these leases, or all of the steps have ended."""
    entries = self_test.story(stage.connection, load)
    steps = {entry.step_id for entry in entries if entry.lease_id in leases}
    newest = {entry.step_id: entry.lease_id for entry in entries if entry.event == "claimed"}
    return any(newest[step] not in leases for step in steps)


def _has_ended(stage: Stage, load: Load, leases: set[int]) -> bool:
    """Return whether each handler that began under these leases has recorded its end, or nothing is left to do.

    A handler that is interrupted while it writes that line leaves none.
    """
    written = [line for line in lines(stage.folder) if line.lease in leases]
    begun = {line.lease for line in written if line.what == "begin"}
    has_written = begun <= {line.lease for line in written if line.what != "begin"}
    return has_written or self_test.over(stage.connection, load) >= load.started
