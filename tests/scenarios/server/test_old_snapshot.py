"""A transaction that is held open and keeps dead rows from being cleared: work goes on, and doctor says whose it is."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast.reads import schema_checks
from scenarios.crew import Crew, Database, until
from scenarios.proof import Proof

TASKS, BATCH = 2_000, 250


@pytest.fixture
def held(database: Database) -> Iterator[Connection[Any]]:
    """A repeatable-read transaction that has read something, of a client with a name."""
    with psycopg.connect(database.dsn, application_name="report") as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("select count(*) from holdfast.steps")
        yield connection


@pytest.mark.timeout(300)
def test_work_goes_on_beside_an_old_snapshot_and_what_it_sees_stays(
    held: Connection[Any], crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R19: every row that was claimed and settled leaves dead ones behind, which no vacuum may take away."""
    for _ in range(2):
        crew.hire("-c", "5")
    for number in range(TASKS // BATCH):
        database.start_many("deposit" if number % 2 else "doze", BATCH)
        until(lambda: database.count("succeeded") >= number * BATCH, "it kept up")  # noqa: B023
        proof.add(rounds=1)

    until(lambda: database.count("succeeded") >= TASKS, "all were done")

    assert held.execute("select count(*) from holdfast.steps").fetchone() == (0,)
    until(lambda: dead_rows(database) >= TASKS, "the snapshot held dead rows back")
    proof.check(database, folder, started=TASKS)


def dead_rows(database: Database) -> int:
    """Count what a vacuum has to leave of the steps' older versions."""
    database.do("vacuum holdfast.steps")
    found: int = database.value("select n_dead_tup from pg_stat_user_tables where relid = 'holdfast.steps'::regclass")
    return found


def test_doctor_names_who_holds_the_oldest_snapshot(
    held: Connection[Any], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R19: by process and application, and what to do about it; five minutes are not waited for."""
    monkeypatch.setattr(schema_checks, "LONG_SNAPSHOT", timedelta(0))
    with database.connection() as connection:
        found = schema_checks.snapshots(connection)

    assert found.verdict == "warn"
    assert found.detail.startswith(f"pid {held.info.backend_pid} (report) ")
    assert "pg_terminate_backend" in found.next
