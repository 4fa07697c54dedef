"""A self-test beside an engine at work: neither sees the other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scenarios.crew import Crew, Database, until
from scenarios.proof import Proof
from selftest.traces import catalog

SEEN = {
    "kinds": "select kind from holdfast.kinds order by 1",
    "workers": "select worker, queue from holdfast.workers order by 1, 2",
    "actors": "select distinct actor_kind, actor from holdfast.journal order by 1, 2",
    "events": "select event, count(*) from holdfast.journal group by 1 order by 1",
}


def self_test(dsn: str, folder: Path) -> subprocess.Popen[str]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST_")}
    command = [sys.executable, "-m", "holdfast", "doctor", "--self-test", "--tasks", "120", "--kills", "2", "--json"]
    return subprocess.Popen(
        command, env=clean | {"HOLDFAST_DSN": dsn, "TMPDIR": str(folder)}, stdout=subprocess.PIPE, text=True
    )


@pytest.mark.long
def test_a_self_test_beside_a_worker_at_work_changes_nothing_of_it(
    database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R1: its kills and cuts hit its own workers only, and the real one is neither woken nor disturbed by it."""
    worker = crew.hire_ready("--concurrency", "4", lease="5s")
    before = catalog(database.dsn)
    running = self_test(database.dsn, folder)
    try:
        started = 0
        while running.poll() is None:
            started += database.start_many("deposit", 20, seconds=0.02)
            until(lambda wanted=started: database.count("succeeded") >= wanted, "the real worker went on")
        out, _ = running.communicate()
    finally:
        running.kill()
        running.wait()

    found: Any = json.loads(out)
    proof.add(rounds=1, **{what: sum(fault[what] for fault in found["faults"]) for what in ("kills", "lost", "twice")})
    proof.check(database, folder, started=started)
    assert found["ok"], found
    assert catalog(database.dsn) == before
    [(identity, queue)] = database.rows(SEEN["workers"])
    assert (identity.split("/")[0], queue) == (worker.name, "default")
    assert database.rows(SEEN["actors"]) == [("worker", identity)]
    assert database.rows(SEEN["events"]) == [("claimed", started), ("succeeded", started)]
    assert not [kind for (kind,) in database.rows(SEEN["kinds"]) if kind.startswith("selftest.")]
    assert not worker.said("listener.lost")
