"""Workers with batch handlers that are killed at every place of a call, in Python and in bash.

The steps of the lost call are rescued and worked off by other processes. Each step is done once, with its own result,
and what `batch.transaction()` wrote is there once. With `--faults` at every place, otherwise at a few.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import embedded
from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.steps import violations

DB = Connection[Any]
SCRIPT = Path(__file__).parents[2] / "examples" / "bash_batch_worker.sh"
STEPS, KEYS, SIZE = 24, 2, 4
PATIENCE = 120
APP = f"""
import os
from dataclasses import dataclass
from holdfast import Batch, Holdfast
hf = Holdfast(os.environ["HOLDFAST_DSN"])

@dataclass
class Item:
    n: int
    key: int

@hf.task(batch={SIZE}, by="key")
def push(batch: Batch, items: list[Item]) -> list[int]:
    assert len({{item.key for item in items}}) == 1
    return [item.n for item in items]

@hf.task(batch={SIZE}, by="key")
async def apush(batch: Batch, items: list[Item]) -> list[int]:
    return [item.n for item in items]

@hf.task(batch={SIZE}, by="key")
def write(batch: Batch, items: list[Item]) -> list[int]:
    with batch.transaction() as tx:
        tx.cursor().executemany("insert into public.written values (%s)", [[item.n] for item in items])
    return [item.n for item in items]
"""
CALL = ("claim_steps", "hand_out", "handler", "settle_batch")
CELLS = [
    *((kind, f"{side}_{place}") for kind in ("push", "apush") for place in CALL for side in ("before", "after")),
    *(("write", f"{side}_{place}") for place in (*CALL[:-1], "commit") for side in ("before", "after")),
]
FEW = {("push", "after_settle_batch"), ("write", "before_commit")}
# The second psql of the worker claims, the third settles, and so on.
PSQL = """#!/bin/bash
count=$(($(cat "$COUNT") + 1))
echo "$count" >"$COUNT"
[[ $KILL == "before $count" ]] && kill -9 0
"$REAL_PSQL" "$@"
code=$?
[[ $KILL == "after $count" ]] && kill -9 0
exit "$code"
"""
PROGRAM = """#!/usr/bin/env python3
import json, sys
print(json.dumps([{"outcome": "done", "result": item["n"]} for item in json.load(sys.stdin)]))
"""
TURNS = [f"{side} {number}" for number in range(1, 6) for side in ("before", "after")]


def some(places: list[Any], few: set[Any]) -> list[Any]:
    """Leave all places but a few to `--faults`."""
    return [pytest.param(place, marks=[] if place in few else [pytest.mark.long]) for place in places]


@pytest.mark.parametrize("cell", some(CELLS, FEW), ids=" ".join)
def test_a_killed_batch_worker_loses_nothing_and_repeats_nothing(
    db: DB, dsn: str, tmp_path: Path, cell: tuple[str, str]
) -> None:
    """R2: the outcomes of a call are settled all or not at all, and so is what its transaction wrote."""
    kind, place = cell
    db.execute("create table public.written (n int)")
    (tmp_path / "app.py").write_text(APP)

    def worker(arms: str) -> int:
        environment = {**os.environ, "HOLDFAST_DSN": dsn, "HOLDFAST_FAILPOINT": arms, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, "-m", "holdfast", "worker", "--app", "app:hf", "--burst", "--concurrency", "1"]
        return ended(subprocess.Popen(command, env=environment, cwd=tmp_path, stderr=subprocess.PIPE))

    worker("")  # so that the kinds are known
    start(db, kind)
    assert worker(f"{place}:kill9@2") == -signal.SIGKILL

    try:
        recover(db, lambda: worker(""))
        check(db)
        if kind == "write":
            written = [n for (n,) in db.execute("select n from public.written order by n")]
            assert written == list(range(STEPS))
    finally:
        db.execute("drop table public.written")


@pytest.mark.parametrize("turn", some(TURNS, {"after 2"}))
def test_a_killed_batch_worker_in_bash_loses_nothing_and_repeats_nothing(
    db: DB, dsn: str, tmp_path: Path, turn: str
) -> None:
    """R2: before and after each call of psql, with all processes of the worker."""
    for name, text in (("psql", PSQL), ("program", PROGRAM)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    places = {
        "HOLDFAST_DSN": dsn,
        "PSQL": str(tmp_path / "psql"),
        "REAL_PSQL": str(embedded.binary("psql")),
        "COUNT": str(tmp_path / "count"),
    }
    options = ["--once", "--by", "key", "--size", str(SIZE)]

    def worker(kill: str) -> int:
        (tmp_path / "count").write_text("0")
        command = [str(SCRIPT), *options, "push", str(tmp_path / "program")]
        environment = {**os.environ, **places, "KILL": kill}
        return ended(subprocess.Popen(command, env=environment, start_new_session=True, stderr=subprocess.PIPE))

    run(db, calls.define_kind("push", batch=SIZE, batch_by="key"))
    start(db, "push")
    assert worker(turn) == -signal.SIGKILL

    recover(db, lambda: worker(""))
    check(db)


def start(db: DB, kind: str) -> None:
    for n in range(STEPS):
        run(db, calls.start_task(kind, {"n": n, "key": n % KEYS}))


def ended(process: subprocess.Popen[bytes]) -> int:
    """Wait for a worker, and return its exit code."""
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode in (0, -signal.SIGKILL), errors.decode()
    return process.returncode


def recover(db: DB, work: Callable[[], int]) -> None:
    """Let the leases of the dead run out, and let others do what is left."""
    assert violations(db) == []
    db.execute("update holdfast.steps set lease_until = holdfast.clock() - interval '1 s' where lease_id is not null")
    run(db, calls.rescue_steps(batch=None))
    assert violations(db) == []
    db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")  # without the backoff
    assert work() == 0


def check(db: DB) -> None:
    """Each step is done once, and with the result for its own input."""
    rows = db.execute("select state, result, (input ->> 'n')::int from holdfast.steps order by id").fetchall()
    assert rows == [("done", n, n) for n in range(STEPS)]
    once = db.execute("select count(*) from holdfast.journal where event = 'succeeded' group by step_id").fetchall()
    assert once == [(1,)] * STEPS
    assert violations(db) == []
