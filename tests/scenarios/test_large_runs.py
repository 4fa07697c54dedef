"""Processes that are killed while they queue, pause, stop, cancel or work on a run with a window.

Each place is tried twice, before the call and after it. The call is then repeated and the run is worked off, by other
processes: each step is done once, and the run ends as it would have without a kill. With `--faults` at every place,
otherwise at a few.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.plans import begun, draft, halt, install
from kernel.steps import claim, finish, run_row, violations

DB = Connection[Any]
ITEMS, MANY, WINDOW = 60, 2500, 8
APP = """
import os
from holdfast import Holdfast
hf = Holdfast(os.environ["HOLDFAST_DSN"])

@hf.task(name="item")
def item(n: int) -> int:
    return n
"""
CALL = """
import os, sys, psycopg
from holdfast.kernel import calls
from holdfast.kernel.db import run
name, run_id = sys.argv[1:]
with psycopg.connect(os.environ["HOLDFAST_DSN"], autocommit=True) as db:
    left = [row[0] for row in db.execute("select id from holdfast.steps where result is null")]
    more = [left] if name == "retry_steps" else []
    run(db, getattr(calls, name)(run_id, *more))
"""
BY_CALL = ("queue_run", "pause_run", "resume_run", "stop_run", "cancel", "retry_steps")
MOVES = ("measured_upkeep", "move_chunk")
BY_WORKER = ("claim_steps", *MOVES, "settle_batch")
PLACES = [f"{side}_{name}" for name in (*BY_CALL, *BY_WORKER) for side in ("before", "after")]
FEW = {"after_stop_run", "after_claim_steps", "before_measured_upkeep", "after_move_chunk"}
ENDS = dict.fromkeys(("cancel", *MOVES), "dropped")


def process(dsn: str, folder: Path, arms: str, *command: str) -> int:
    """Run a program of ours to its end, or to the failpoint."""
    environment = {**os.environ, "HOLDFAST_DSN": dsn, "HOLDFAST_FAILPOINT": arms, "PYTHONPATH": str(folder)}
    done = subprocess.run([sys.executable, *command], env=environment, cwd=folder, capture_output=True, timeout=120)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()
    return done.returncode


def prepared(db: DB, name: str) -> Any:
    """Make the run that the call is about."""
    install(db, WINDOW)
    if name == "queue_run":
        return draft(db, ITEMS)
    run_id = begun(db, MANY if name in MOVES else ITEMS)
    if name in MOVES:
        run(db, calls.cancel(str(run_id)))  # its steps follow in chunks
        return run_id
    finish(db, claim(db, batch=3))
    if name == "resume_run":
        halt(db, "pause", run_id)
    if name == "retry_steps":
        halt(db, "stop", run_id)
    return run_id


@pytest.mark.parametrize(
    "place", [pytest.param(place, marks=[] if place in FEW else [pytest.mark.long]) for place in PLACES]
)
def test_a_kill_loses_nothing_and_repeats_nothing(db: DB, dsn: str, tmp_path: Path, place: str) -> None:
    """R2: whoever comes next finds the run as it was before the call, or after it."""
    (tmp_path / "app.py").write_text(APP)
    name = place.partition("_")[2]
    run_id = prepared(db, name)
    work = ("-m", "holdfast", "worker", "--app", "app:hf", "--burst")
    once = ("-c", CALL, name, str(run_id))

    if name in BY_CALL:
        assert process(dsn, tmp_path, f"{place}:kill9", *once) == -signal.SIGKILL
        assert violations(db) == []
        if run_row(db, run_id)["finished_at"] is None or name == "retry_steps":
            is_repeatable = name != "retry_steps" or run_row(db, run_id)["finished_at"] is not None
            assert not is_repeatable or process(dsn, tmp_path, "", *once) == 0
    else:
        turn = "" if name == "measured_upkeep" else "@2"
        assert process(dsn, tmp_path, f"{place}:kill9{turn}", *work) == -signal.SIGKILL
        db.execute(
            "update holdfast.steps set lease_until = holdfast.clock() - interval '1 s' where lease_id is not null"
        )
    assert violations(db) == []
    if name == "pause_run":
        halt(db, "resume", run_id)
    if name == "stop_run":
        run(db, calls.retry(str(run_id)))
    for _ in range(3):
        process(dsn, tmp_path, "", *work)
    row = run_row(db, run_id)
    assert row["state"] == ENDS.get(name, "done") or (name in BY_WORKER and row["state"] == "mixed")
    assert row["succeeded"] + row["failed"] + row["cancelled"] == row["total"]
    assert violations(db) == []
    twice = "select count(*) from holdfast.journal where event = 'succeeded' group by step_id having count(*) > 1"
    assert db.execute(twice).fetchall() == []
