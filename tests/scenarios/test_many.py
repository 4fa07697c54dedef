"""Many workers on many tasks, and one worker for a long time: each task once, and nothing grows without end."""

from __future__ import annotations

import statistics
import time
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from holdfast.kernel import retention_calls
from holdfast.kernel.db import run
from holdfast.worker.options import Options
from kernel.retention import sweep
from kernel.steps import violations
from scenarios.crew import Crew, Database, Member, until
from scenarios.proof import Proof

WORKERS, TASKS = 8, 20_000
SOAK, EACH, RATE = 60.0, 0.25, 50  # seconds, seconds between looks, tasks started with each look
KINDS = ("doze", "deposit")
MB = 2**20

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


def test_many_workers_on_many_empty_tasks_take_each_once_and_never_more_than_a_batch(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R21: the journal tells by its transactions what one claim took."""
    for worker in [crew.hire(app="few_chores") for _ in range(WORKERS)]:
        worker.await_said("worker.connected")
    database.start_many("smile", TASKS)

    until(lambda: database.count("succeeded") >= TASKS, "all were done")

    claims = database.rows(
        "select actor, count(*)::int from holdfast.journal where event = 'claimed' group by actor, xmin::text"
    )
    assert sum(size for _, size in claims) == TASKS
    assert max(size for _, size in claims) <= Options().largest_batch
    assert len({actor for actor, _ in claims}) > 1
    proof.add(rounds=len(claims))
    proof.check(database, folder, started=TASKS)


class Look(NamedTuple):
    """What a worker and the database come to at one time."""

    memory: float
    connections: int
    dead_rows: int


def look(worker: Member, database: Database) -> Look:
    found = database.rows(
        """select (select count(*)::int from pg_stat_activity
                    where datname = current_database() and application_name = 'holdfast'), n_dead_tup
             from pg_stat_user_tables where relid = 'holdfast.steps'::regclass"""
    )
    return Look(psutil.Process(worker.pid).memory_info().rss / MB, *found[0])


def test_a_minute_of_steady_load_leaves_memory_connections_and_dead_rows_where_they_were(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R40: the second half's last third is compared with its first, with ample room; dead rows fall back by vacuum."""
    worker = crew.hire_ready("-c", "5")
    looks: list[Look] = []
    started = 0
    ends_at = time.monotonic() + SOAK
    while (left := ends_at - time.monotonic()) > 0:
        started += database.start_many(KINDS[len(looks) % len(KINDS)], RATE)
        looks.append(look(worker, database))
        time.sleep(min(left, EACH))
    until(lambda: database.count("succeeded") >= started, "all were done")

    half = len(looks) // 2
    first, last = ends_of(looks[half:])
    assert last.memory <= first.memory + 8
    assert last.connections <= first.connections + 2
    assert min(look.dead_rows for look in looks[half:]) < max(look.dead_rows for look in looks[:half])
    proof.add(rounds=len(looks))
    proof.check(database, folder, started=started)


def test_steady_load_with_retention_on_leaves_the_tables_small(crew: Crew, database: Database, proof: Proof) -> None:
    """R40 X-16: finished tasks are kept for no time, and a sweep comes with each look; each task is done once."""
    worker = crew.hire_ready("-c", "5")
    with database.connection() as db:
        run(db, retention_calls.set_retention(timedelta()))
    looks: list[Look] = []
    sizes: list[int] = []
    started = removed = 0
    ends_at = time.monotonic() + SOAK / 2
    while (left := ends_at - time.monotonic()) > 0:
        started += database.start_many("doze", RATE)
        with database.connection() as db:
            removed += sweep(db).steps
        sizes.append(database.value("select count(*) from holdfast.steps"))
        looks.append(look(worker, database))
        time.sleep(min(left, EACH))
    until(lambda: database.count("succeeded") >= started, "all were done")
    with database.connection() as db:
        removed += sweep(db).steps
        assert violations(db) == []

    assert removed == started == database.count("succeeded")
    assert database.value("select count(*) from holdfast.steps") == 0
    assert max(sizes) < started / 2
    half = len(looks) // 2
    first, last = ends_of(looks[half:])
    assert last.memory <= first.memory + 8
    assert last.connections <= first.connections + 2
    proof.add(rounds=len(looks))


def ends_of(looks: list[Look]) -> tuple[Look, Look]:
    """Give the medians of the first third and of the last."""
    third = len(looks) // 3
    first, last = (zip(*part, strict=True) for part in (looks[:third], looks[-third:]))
    return Look(*map(statistics.median, first)), Look(*map(statistics.median, last))
