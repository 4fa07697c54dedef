"""Many producers beside one worker: hints go out while it sleeps and only then, and what is started is done."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof

PRODUCERS, EACH = 32, 10


@pytest.fixture
def listener(database: Database) -> Iterator[Connection[Any]]:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute("listen holdfast")
        yield connection


def produce(database: Database) -> int:
    """Start tasks from many connections at once, and tell how many were acknowledged."""
    with ThreadPoolExecutor(PRODUCERS) as producers:
        started = producers.map(lambda _: [database.start("doze") for _ in range(EACH)], range(PRODUCERS))
        return sum(map(len, started))


def heard(listener: Connection[Any]) -> int:
    """Count the hints since the last look; those of what has committed are there with the next answer."""
    listener.execute("select")
    return len(list(listener.notifies(timeout=0)))


def is_asleep(database: Database) -> bool:
    return bool(database.value("select bool_or(is_asleep) from holdfast.worker_list"))


def test_a_busy_worker_is_sent_no_hints_and_one_that_sleeps_needs_no_poll(
    crew: Crew, database: Database, listener: Connection[Any], folder: Path, proof: Proof
) -> None:
    """R20: by 32 producers; it polls once an hour, so that only hints can have told it."""
    crew.hire_ready("-c", "1", poll_min="1h", poll_max="1h", lease="60s")
    until(lambda: is_asleep(database), "it fell asleep")
    database.start("wait", gate="go")
    until(lambda: lines(folder, "begin"), "it was busy")
    assert heard(listener) == 1

    started = 1 + produce(database)
    proof.add(rounds=PRODUCERS)

    assert heard(listener) == 0
    crew.open("go")
    until(lambda: database.count("succeeded") >= started, "all were done")
    until(lambda: is_asleep(database), "it fell asleep again")

    started += produce(database)
    proof.add(rounds=PRODUCERS)

    assert heard(listener) >= 1
    until(lambda: database.count("succeeded") >= started, "all were done")
    proof.check(database, folder, started=started)
