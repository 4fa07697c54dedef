"""The sections that measure ours alone, in their smallest size, and the parts that they stand on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

import history
import statement_log
from holdfast.embedded import locks
from holdfast.kernel import bulk, calls
from holdfast.kernel import db as kernel
from holdfast.models import Done, Settlement

RUN = Path(__file__).resolve().parents[2] / "bench/run.py"


WHATS = {
    "hot": {"tasks", "one run", "diamonds"},
    "cost": {"as shipped", "without the guard", "without the journal", "without both"},
    "producers": {"beside a worker", "beside it, hints made impossible", "every start sends a hint"},
    "own": {
        f"{library}, {what}"
        for library in ("SQLAlchemy", "SQLAlchemy over asyncpg", "asyncpg")
        for what in ("bare", "start()")
    },
    "retention": {"alone", "beside a sweep"},
    "targets": {"start"},
    "shell": {"time", "memory"},
    "masked": {"no secrets", "three secrets"},
    "ops": {"queue_run", "append_event", "claim_next_run", "8 claimers", "p99 alone", "p99 in a crowd", "logs -f"},
    "ingest": {
        "pages of 1000",
        "pages of 30",
        *(f"batches, {label}" for label in ("1 process", "2 processes", "8 processes")),
        "log of a first run",
        "log of an unchanged run",
        "24-hour query",
    },
    "feeds": {
        "a record of few",
        "a record of many",
        "memory, few",
        "memory, many",
        "the document's example",
        "tables after one run",
        "tables after five runs",
    },
    "rules": {
        "preview",
        "apply",
        "apply answers",
        "after a pause",
        "after a stop",
        "100 alone",
        "100 beside",
        "previewer, a tenth",
        "previewer, all",
        "worker, a tenth",
        "worker, all",
        "apply to a shop",
        "rollback",
        "pass",
        "50 calls/s over 4 workers",
        "newest, few changes",
        "newest, many changes",
    },
    "ticks": {"all queued"},
    "diamonds": {"1 process", "2 processes", "1 process, with context and results"},
    "subscribers": {
        f"{width} items{more}"
        for width in ("100", "1 000", "10 000")
        for more in ("", ", flow.run.completed", ", ratio, flow.run.completed", ", all events", ", ratio, all events")
    },
    "limits": {
        *(
            f"{what}, {label}"
            for what in ("no limit", "limits that never bind")
            for label in ("1 process", "2 processes")
        ),
        "no limit, 200 at once",
        "1 000 keys",
        "free tasks alone",
        "free tasks behind parked ones",
        "100/s over 4 workers",
    },
    "batches": {"one by one", "in batches of 250", "a key per task", "rows"},
    "pause": {
        *(f"{call}, {size}" for call in ("queue", "pause", "resume", "stop") for size in ("small", "large")),
        "last call after pause",
        "last call after stop",
        "100 alone",
        "100 beside",
        "memory at 10 %",
        "memory at 100 %",
    },
    "cancel": {f"{call}{more}" for call in ("cancel", "retry") for more in ("", ", longest wait")},
    "memory": {"at 10 %", "at 50 %", "at 100 %"},
}


LONG = ("diamonds", "subscribers", "limits", "ops", "rules", "masked", "batches", "pause", "ingest", "feeds")


@pytest.mark.timeout(900)  # dozens of processes are started, and machines are busy
@pytest.mark.parametrize(
    ("names", "tasks"),
    [
        ([name for name in WHATS if name not in LONG], "700"),
        pytest.param(["diamonds", "subscribers"], "140", marks=pytest.mark.long),
        pytest.param(["limits", "ops", "rules", "masked", "ingest", "feeds"], "700", marks=pytest.mark.long),
        pytest.param(["batches", "pause"], "1500", marks=pytest.mark.long),
    ],
    ids=["tasks", "flows", "faces", "runs"],
)
def test_the_sections_measure_holdfast(tmp_path: Path, names: Sequence[str], tasks: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("HOLDFAST")}
    sections = [option for name in names for option in ("--only", name)]
    options = [*sections, "--quick", "--engines", "holdfast", "--tasks", tasks, "--results", tmp_path]
    with tempfile.TemporaryDirectory(prefix="hf-bench-", dir="/tmp") as home:
        ran = subprocess.run(
            [sys.executable, RUN, *options], env={**environment, "BENCH_HOME": home}, capture_output=True, text=True
        )

    assert ran.returncode == 0, ran.stderr
    for name in names:
        written = json.loads((tmp_path / f"{name}.json").read_text())
        assert {row["what"] for row in written["readings"] if row["value"] > 0} == WHATS[name]


@pytest.mark.one_server
def test_a_grown_history_is_as_the_engine_would_have_written_it(dsn: str, db: Connection[Any]) -> None:
    with db.transaction():
        bulk.start_tasks(db, [bulk.Start("noop", "{}")] * 3)
    claimed = kernel.run(db, calls.claim_steps("bench", batch=2))
    kernel.run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done(None)) for step in claimed]))

    history.grow(dsn, "holdfast", 50)

    counted = "select state, count(*), count(distinct id) from holdfast.steps group by state order by state"
    assert db.execute(counted).fetchall() == [("done", 50, 50), ("pending", 1, 1)]
    told = (
        "select event, count(distinct step_id), count(distinct id) from holdfast.journal group by event order by event"
    )
    assert db.execute(told).fetchall() == [("claimed", 50, 50), ("succeeded", 50, 50)]
    assert kernel.run(db, calls.violations()) == []


@pytest.mark.one_server
def test_statements_are_counted_by_database_as_they_reach_the_server(dsn: str, db: Connection[Any]) -> None:
    name = db.info.dbname
    with statement_log.logged(dsn, [name]) as log:
        since = statement_log.position(log)
        with psycopg.connect(dsn) as connection:
            for number in range(3):
                connection.execute("select %s,\n2", [number], prepare=True)

        # Begin, three times the prepared one, commit; the server's log comes a moment later.
        assert locks.until(lambda: statement_log.counts(log, since) == {name: 5}, within=timedelta(seconds=5))
