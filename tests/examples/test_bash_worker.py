"""The bash worker over psql: it claims, notes, renews and settles beside another, and others finish what it leaves."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import embedded
from holdfast.embedded.locks import until
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.testing import Clock, events, journal

DB = Connection[Any]
Worker = subprocess.Popen[bytes]
Workers = Callable[..., Worker]
SCRIPT = Path(__file__).parents[2] / "examples" / "bash_worker.sh"
PATIENCE = timedelta(seconds=60)

HANDLERS = {
    # Says hello and gives the input back.
    "greet": 'read -r input; echo "hello from $STEP_ID" >&2; echo "$input"',
    # Waits until two of its kind are at work at the same time.
    "meet": 'touch "$MEETING/$STEP_ID"; until [[ $(ls "$MEETING" | wc -l) -ge 2 ]]; do sleep 0.02; done',
    # Works for as long as the test holds the door.
    "long": 'exec 3<"$DOOR"; echo begun >&2; cat <&3',
    "again": '[[ $ATTEMPT -gt 1 ]] || { echo "not now" >&2; exit 75; }',
    "bad": 'echo "first" >&2; echo "this went wrong" >&2; exit 3',
    "odd": r"""printf 'a\xff\x00b'\''; drop table holdfast.steps; -- :x "\n'""",
}


@pytest.fixture
def workers(dsn: str, tmp_path: Path) -> Iterator[Workers]:
    """Give a function that starts a worker with options, and end what is left of them after the test."""
    folder = tmp_path / "handlers"
    folder.mkdir()
    (tmp_path / "meeting").mkdir()
    os.mkfifo(tmp_path / "door")
    for kind, body in HANDLERS.items():
        (folder / kind).write_text(f"#!/usr/bin/env bash\n{body}\n")
        (folder / kind).chmod(0o755)
    places = {"MEETING": str(tmp_path / "meeting"), "DOOR": str(tmp_path / "door")}
    environment = {**os.environ, **places, "HOLDFAST_DSN": dsn, "PSQL": str(embedded.binary("psql"))}

    with ExitStack() as stack:

        def start(name: str, *options: str) -> Worker:
            command: list[str | Path] = [SCRIPT, "--poll", "0.1", "--beat", "0.2", *options, folder]
            said = tmp_path / f"{name}.err"
            with said.open("w") as errors:
                worker = subprocess.Popen(command, env={**environment, "WORKER": name}, stderr=errors)
            stack.callback(_end, worker, said)
            return worker

        yield start


def _end(worker: Worker, said: Path) -> None:
    worker.terminate()
    try:
        worker.wait(PATIENCE.seconds)
    finally:
        worker.kill()
    assert said.read_text() == ""


@contextmanager
def door(tmp_path: Path) -> Iterator[None]:
    """Hold the door that a `long` handler waits at, for as long as the block lasts."""
    held = os.open(tmp_path / "door", os.O_RDWR)
    try:
        yield
    finally:
        os.close(held)


def wait_for(db: DB, query: str, *arguments: Any) -> None:
    """Wait until a query answers with something."""
    assert until(lambda: db.execute(query, arguments).fetchone() is not None, within=PATIENCE), query


def wait_for_note(db: DB, step_id: int, attempt: int = 1) -> None:
    wait_for(db, "select from holdfast.notes where step_id = %s and attempt = %s", step_id, attempt)


def wait_for_end(db: DB) -> None:
    wait_for(db, "select where not exists (select from holdfast.steps where finished_at is null)")


def test_two_work_beside_each_other(db: DB, workers: Workers) -> None:
    """Must show 5: 40 tasks, each done once and with its note, and both at work at the same time."""
    workers("a")
    workers("b")
    meet, greet = {"name": "meet", "priority": 1}, {"name": "greet", "input": {"n": 7}}
    ids = run(db, calls.start_tasks([meet] * 2 + [greet] * 40))

    wait_for_end(db)

    assert {entry.actor for entry in journal(db)} == {"a", "b"}
    assert all(events(db, step=step_id) == ["claimed", "succeeded"] for step_id in ids)
    results = db.execute("select distinct result from holdfast.steps where kind = 'greet'").fetchall()
    assert results == [({"output": '{"n": 7}'},)]
    notes = db.execute("select step_id, message from holdfast.notes order by step_id").fetchall()
    assert notes == [(step_id, f"hello from {step_id}") for step_id in ids[2:]]
    assert run(db, calls.violations()) == []


def test_a_long_one_keeps_its_lease(db: DB, clock: Clock, workers: Workers, tmp_path: Path) -> None:
    """Must show 5: it works for three leases, and for those that wait their turn too; nobody takes them over."""
    clock.freeze()
    (long, waiting) = run(db, calls.start_tasks([{"name": "long", "priority": 1}, {"name": "greet"}]))
    with door(tmp_path):
        workers("a", "--batch", "2", "--lease", "60 s")
        wait_for_note(db, long)
        for _ in range(4):
            clock.advance(timedelta(seconds=50))
            renewed = clock.now() + timedelta(seconds=60)
            for step_id in (long, waiting):
                wait_for(db, "select from holdfast.steps where id = %s and lease_until = %s", step_id, renewed)
            assert run(db, calls.rescue_steps()) == []

    wait_for_end(db)

    assert events(db, step=long) == events(db, step=waiting) == ["claimed", "succeeded"]


def test_another_one_finishes_what_a_killed_one_held(db: DB, clock: Clock, workers: Workers, tmp_path: Path) -> None:
    """Must show 5, R1: after its lease, and with the dead one's handler still at it."""
    (step_id,) = run(db, calls.start_task("long"))
    with door(tmp_path):
        dead = workers("a", "--lease", "60 s")
        wait_for_note(db, step_id)
        dead.kill()
        dead.wait()
        workers("b", "--lease", "60 s")
        wait_for(db, "select from holdfast.workers where worker = 'b'")
        clock.advance(timedelta(seconds=61))
        wait_for_note(db, step_id, attempt=2)

    wait_for_end(db)

    assert [(e.event, e.actor) for e in journal(db, step=step_id)] == [
        ("claimed", "a"),
        ("expired", "rescue"),
        ("claimed", "b"),
        ("succeeded", "b"),
    ]


def test_one_whose_lease_is_lost_stops_its_handler_and_writes_nothing(db: DB, workers: Workers, tmp_path: Path) -> None:
    """R3: it learns so from its next renewal."""
    (step_id,) = run(db, calls.start_task("long"))
    with door(tmp_path):
        worker = workers("a", "--rounds", "1")
        wait_for_note(db, step_id)
        run(db, calls.cancel(str(step_id)))

        assert worker.wait(PATIENCE.seconds) == 0

    assert events(db, step=step_id) == ["claimed", "cancelled"]


def test_a_signal_finishes_the_step_in_work_and_hands_the_others_back(db: DB, workers: Workers, tmp_path: Path) -> None:
    """R31: what is handed back is charged nothing."""
    ids = run(db, calls.start_tasks([{"name": "long", "priority": 2}, {"name": "greet"}, {"name": "greet"}]))
    with door(tmp_path):
        worker = workers("a", "--batch", "3")
        wait_for_note(db, ids[0])
        worker.terminate()

    assert worker.wait(PATIENCE.seconds) == 0
    assert [events(db, step=step_id) for step_id in ids] == [
        ["claimed", "succeeded"],
        ["claimed", "released"],
        ["claimed", "released"],
    ]
    assert db.execute("select sum(failures) from holdfast.steps").fetchone() == (0,)


def test_a_second_signal_hands_back_what_is_in_work(db: DB, workers: Workers, tmp_path: Path) -> None:
    """R31"""
    (step_id,) = run(db, calls.start_task("long"))
    with door(tmp_path):
        worker = workers("a", "--beat", "600")
        wait_for_note(db, step_id)

        def has_ended() -> bool:
            worker.terminate()  # again and again: two that come at once are taken for one
            return worker.poll() is not None

        assert until(has_ended, within=PATIENCE)

    assert worker.returncode == 0
    assert events(db, step=step_id) == ["claimed", "released"]


def test_outcomes_are_told_by_the_exit_code(db: DB, workers: Workers) -> None:
    """And what a handler says is never taken for SQL."""
    again, bad, odd = run(db, calls.start_tasks([{"name": kind} for kind in ("again", "bad", "odd")]))

    assert workers("a", "--once", "--batch", "3").wait(PATIENCE.seconds) == 0

    assert events(db, step=again) == ["claimed", "retried", "claimed", "succeeded"]
    assert events(db, step=bad) == ["claimed", "failed"]
    said = (
        "select coalesce(result ->> 'output', error ->> 'message') from holdfast.steps where id = any (%s) order by id"
    )
    assert db.execute(said, [[bad, odd]]).fetchall() == [
        ("this went wrong",),
        ("ab'; drop table holdfast.steps; -- :x \"",),
    ]
