"""Document 004 against the schema. HOLDFAST_SEEDS names the folder with the documents; without it these are skipped."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from kernel.steps import start

DB = Connection[Any]
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.fixture
def document() -> str:
    folder = os.environ.get("HOLDFAST_SEEDS")
    if not folder:
        pytest.skip("HOLDFAST_SEEDS is not set: it names the folder with the source documents")
    (path,) = Path(folder).glob("004_*")
    return path.read_text("utf-8")


@pytest.fixture
def face(db: DB) -> DB:
    db.execute("set search_path = work")
    return db


def test_the_sql_that_it_prints_runs_as_it_stands(document: str, face: DB) -> None:
    """X-11 C-90: it prints none today; what is added one day is run"""
    for statement in SQL.findall(document):
        face.execute(statement)


def test_the_functions_that_it_names_are_there_under_their_names(document: str, face: DB) -> None:
    """X-11 W-50 W-51: run_worker is the worker's, in Python"""
    step_id = start(face)
    named = set(re.findall(r"`(\w+)\(\)`", document)) - {"run_worker"}

    answers = {name: face.execute(f"select * from {name}()").fetchall() for name in sorted(named)}

    assert answers.keys() == {"claim_next_task", "recover_expired_leases"}
    assert (answers["claim_next_task"][0][0], answers["recover_expired_leases"]) == (step_id, [(0,)])


def test_the_columns_and_states_that_it_names_are_there(document: str, face: DB) -> None:
    """X-11 W-43 W-44"""
    words = set(re.findall(r"\b\w+\b", " ".join(re.findall(r"`([^`\n]+)`", document))))
    columns = {"lease_timeout", "updated_at", "try_count", "max_tries"}
    states = {"pending", "running", "done", "error"}

    assert columns | states | {"audit_logs"} <= words
    face.execute(f"select {', '.join(sorted(columns))} from tasks")
    face.execute("select * from audit_logs")
    known = face.execute("select state from holdfast.machine_states where machine = 'work.task'").fetchall()
    assert states <= {state for (state,) in known}
