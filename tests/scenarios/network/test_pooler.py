"""R15: everything through PgBouncer in transaction mode, where no two statements need meet the same connection."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast import Holdfast
from holdfast.connections import deadline
from holdfast.kernel import migrate
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.network.test_lost_starts import doze
from scenarios.pooler import PROGRAM, pooled
from scenarios.proof import Proof

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="PgBouncer is not installed: `apt-get install pgbouncer`")
KINDS = ("doze", "deposit", "adeposit", "deposit_apart", "remark")
EACH, KILLS = 60, 4
UNPREPARED = {"prepare_statements": "false"}


@pytest.fixture
def address(database: Database) -> Iterator[str]:
    """The test's database through the pooler."""
    with pooled(database.dsn) as address:
        yield address


@pytest.fixture
def hf(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.setenv("HOLDFAST_PREPARE_STATEMENTS", "false")
    deadline._prepares.cache_clear()
    hf = Holdfast(address)
    yield hf
    hf.close()
    deadline._prepares.cache_clear()


def doctor(address: str, *, prepares: bool) -> dict[str, Any]:
    environment = os.environ | {"HOLDFAST_DSN": address, "HOLDFAST_PREPARE_STATEMENTS": str(prepares)}
    command = [sys.executable, "-m", "holdfast", "doctor", "--json"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


@pytest.mark.long
@pytest.mark.timeout(300)
def test_workers_behind_a_pooler_that_are_killed_lose_nothing_and_count_nothing_twice(
    crew: Crew, address: str, database: Database, folder: Path, proof: Proof
) -> None:
    """R15: plain tasks, effects in transactions of three sorts, notes and heartbeats."""
    started = sum(database.start_many(kind, EACH) for kind in KINDS)
    alive = [crew.hire(dsn=address, **UNPREPARED) for _ in range(2)]
    for number in range(KILLS):
        until(lambda: database.count("succeeded") >= number * EACH // 2, "some were done")  # noqa: B023
        until(database.held_by, "some were held")
        alive.pop(proof.chance.randrange(len(alive))).kill()
        alive.append(crew.hire(dsn=address, **UNPREPARED))
        started += sum(database.start_many(kind, EACH // 5) for kind in KINDS)
        proof.add(rounds=1, kills=1)

    until(lambda: database.count("succeeded") >= started, "all were done")
    proof.check(database, folder, started=started)
    assert not any(worker.has_ended for worker in alive)


def test_starts_and_wishes_pass_a_pooler(
    hf: Holdfast, crew: Crew, address: str, database: Database, folder: Path, proof: Proof
) -> None:
    """R15: also in the caller's own transaction, in bulk by COPY, and a cancel that a handler is told of."""
    task = doze(hf)
    with psycopg.connect(address, prepare_threshold=None) as conn:
        task.options(conn=conn).start()
        conn.rollback()
        task.options(conn=conn).start()
        conn.commit()
    assert task.start_many([{}] * EACH) == EACH
    singles = [task.start() for _ in range(20)]  # more often than psycopg would wait before it prepares
    held = hf.handle(database.start("wait", gate="never"))
    crew.hire(dsn=address, **UNPREPARED)
    until(lambda: lines(folder, "begin"), "it worked")
    until(lambda: any(line.step == held.id for line in lines(folder, "begin")), "the handler began")
    held.cancel("by hand")

    until(lambda: any(line.step == held.id for line in lines(folder, "stopped")), "the handler was told")
    [single.result(timeout=60) for single in singles]
    until(lambda: database.count("succeeded") >= EACH + 21, "all were done")
    proof.check(database, folder, started=EACH + 22, failed=1)


def test_migrations_pass_a_pooler(address: str, database: Database) -> None:
    """R15: each part is a transaction of its own, and nothing is kept between them."""
    name = sql.Identifier("through_pooler")
    with database.connection() as admin:
        admin.execute(sql.SQL("create database {}").format(name))
        try:
            fresh = make_conninfo(address, dbname="through_pooler")
            assert migrate.run(fresh)
            assert migrate.status(fresh).pending == []
        finally:
            admin.execute(sql.SQL("drop database {} with (force)").format(name))


def test_a_worker_behind_a_pooler_finds_that_hints_do_not_come_and_polls(
    crew: Crew, address: str, database: Database, folder: Path, proof: Proof
) -> None:
    """R15: a hint to itself would come back with the answer to its own statement; it takes another connection's."""
    worker = crew.hire_ready(dsn=address, poll_max="200ms", **UNPREPARED)

    worker.await_said("listener.lost")

    step = database.start("doze")
    until(lambda: database.is_over(step), "it polled")
    assert not database.value("select bool_or(is_asleep) from holdfast.worker_list")
    proof.check(database, folder, started=1)


def test_doctor_says_what_a_pooler_takes_away_and_which_setting_helps(address: str, database: Database) -> None:
    """R15"""
    through, direct = doctor(address, prepares=True), doctor(database.dsn, prepares=True)

    assert (through["hints"]["verdict"], direct["hints"]["verdict"]) == ("warn", "ok")
    assert (through["statements"]["verdict"], direct["statements"]["verdict"]) == ("fail", "ok")
    assert "HOLDFAST_PREPARE_STATEMENTS=false" in through["statements"]["next"]
    assert doctor(address, prepares=False)["statements"]["verdict"] == "ok"
