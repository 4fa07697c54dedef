"""The bash worker for batches: the claim's calls, mixed outcomes in one settle, and what happens without outcomes."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from holdfast import embedded
from holdfast.kernel import calls
from holdfast.kernel.db import run

DB = Connection[Any]
SCRIPT = Path(__file__).parents[2] / "examples" / "bash_batch_worker.sh"
PATIENCE = 120
# Writes down what it reads; the outcome of an item is its own field.
PROGRAM = """#!/usr/bin/env python3
import json, os, sys
items = json.load(sys.stdin)
with open(os.environ["SEEN"], "a") as seen:
    print(json.dumps(items), file=seen)
if any(item.get("kill") for item in items):
    os.kill(os.getppid(), 9)  # the worker, with its leases
if any(item.get("mute") for item in items):
    sys.exit(int(items[0]["mute"]))
print(json.dumps([item["outcome"] for item in items]))
"""


def work(dsn: str, folder: Path, *options: str) -> list[list[dict[str, Any]]]:
    """Let a worker run until nothing is due; the items of each call."""
    program, seen = folder / "program", folder / "seen"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    seen.write_text("")
    places = {"SEEN": str(seen), "HOLDFAST_DSN": dsn, "PSQL": str(embedded.binary("psql"))}
    command: list[str | Path] = [SCRIPT, "--once", "--beat", "1", "--by", "shop", *options, "push", program]
    subprocess.run(command, env={**os.environ, **places}, check=False, timeout=PATIENCE, capture_output=True)
    return [json.loads(line) for line in seen.read_text().splitlines()]


def push(db: DB, shop: str, **fields: Any) -> int:
    return run(db, calls.start_task("push", {"shop": shop, **fields}, batch_key=shop))[0]


def outcomes(db: DB) -> list[tuple[str, Any]]:
    return db.execute("select state, result from holdfast.steps order by id").fetchall()


@pytest.mark.one_server
def test_it_serves_the_calls_of_the_claim_and_reports_mixed_outcomes(db: DB, dsn: str, tmp_path: Path) -> None:
    done = {"outcome": "done", "result": {"sent": True}}
    for number in range(3):
        push(db, "ab"[number % 2], outcome=done)
    push(db, "a", outcome={"outcome": "fail", "error": {"message": "it's; drop table holdfast.steps"}})
    push(db, "b", outcome={"outcome": "snooze", "retry_after": "1 hour"})

    seen = work(dsn, tmp_path, "--size", "10")

    assert sorted(len(items) for items in seen) == [2, 3]
    assert all(len({item["shop"] for item in items}) == 1 for items in seen)
    assert outcomes(db) == [
        ("done", {"sent": True}), ("done", {"sent": True}), ("done", {"sent": True}), ("error", None),
        ("pending", None),
    ]  # fmt: skip


@pytest.mark.one_server
@pytest.mark.parametrize("mute", ["0", "7"], ids=["no array", "another code"])
def test_without_outcomes_each_step_is_retried(db: DB, dsn: str, tmp_path: Path, mute: str) -> None:
    push(db, "a", mute=mute)
    push(db, "a", mute=mute)

    work(dsn, tmp_path)

    last = db.execute("select distinct last_event, failures, error ->> 'type' from holdfast.steps").fetchall()
    assert last == [("failed", 3, "NoOutcomes")]


@pytest.mark.one_server
def test_after_kill_9_each_step_is_retried_alone(db: DB, dsn: str, tmp_path: Path) -> None:
    """R24: by a worker in another language too."""
    poison = push(db, "a", kill=True, outcome={"outcome": "done"})
    others = [push(db, "a", outcome={"outcome": "done"}) for _ in range(2)]

    work(dsn, tmp_path, "--lease", "1 s")
    db.execute("update holdfast.steps set lease_until = holdfast.clock() - interval '1 s' where lease_id is not null")
    run(db, calls.rescue_steps(batch=None))
    db.execute("update holdfast.steps set due_at = holdfast.clock() + interval '1 day' where id = %s", [poison])
    seen = work(dsn, tmp_path)

    assert [len(items) for items in seen if not items[0].get("kill")] == [1, 1]
    states = dict(db.execute("select id, state from holdfast.steps").fetchall())
    assert [states[step] for step in others] == ["done", "done"]
    assert states[poison] != "done"
