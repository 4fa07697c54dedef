"""Document 003 against the schema. HOLDFAST_SEEDS names the folder with the documents; without it these are skipped."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from psycopg import Connection

from flow.asking import adjust, exhausted, give, hold, retried
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Snooze
from holdfast.testing import Clock
from kernel.steps import ids_by_name, node, seconds, start_flow

DB = Connection[Any]
SQL = re.compile(r"^```sql\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FRAGMENT = "-- CRITICAL CONDITIONS for ready_for_execution = true:"  # of the body of the readiness function
# Columns of steps that the document names; a step's id and its task's are named in its transitions' index.
COLUMNS = ["attempts", "processed", "retryable", "retry_limit", "in_process", "backoff_request_seconds", "task_id"]


@pytest.fixture
def document() -> str:
    folder = os.environ.get("HOLDFAST_SEEDS")
    if not folder:
        pytest.skip("HOLDFAST_SEEDS is not set: it names the folder with the source documents")
    (path,) = Path(folder).glob("003_*")
    return path.read_text("utf-8")


@pytest.fixture
def face(db: DB) -> DB:
    db.execute("set search_path = flow")
    return db


def test_the_sql_that_it_prints_runs_as_it_stands(document: str, face: DB) -> None:
    """X-11, C-90: task_id and step_ids are what its statement is asked for; the fragment of a body has a test below"""
    task_id = start_flow(face, node("a"), node("b", "a"))
    ids = list(ids_by_name(face, task_id).values())
    blocks = SQL.findall(document)
    statements = [block for block in blocks if not block.startswith(FRAGMENT)]

    answers = [
        face.execute(
            "select printed.* from (select %s::uuid as task_id, %s::bigint[] as step_ids) given, "
            f"lateral ({statement.strip().rstrip(';')}) printed",
            [task_id, ids],
        ).fetchall()
        for statement in statements
    ]

    assert (len(blocks), len(statements)) == (2, 1)
    assert [sorted(row[0] for row in answer) for answer in answers] == [ids]


def test_the_condition_that_it_prints_holds_for_what_is_ready(document: str, face: DB, clock: Clock) -> None:
    """T-29, T-33 to T-40, C-51: we know more reasons to wait, and allow each first try"""
    clock.freeze()
    (condition,) = (block for block in SQL.findall(document) if block.startswith(FRAGMENT))
    names = ["ready", "held", "done", "lost", "waiting", "once", "spent", "snoozed", "paused"]
    plan = [node(name, *(["held"] if name == "waiting" else [])) for name in names[:-1]]
    task_id = start_flow(face, *plan, node("paused", queue="slow"))
    ids = ids_by_name(face, task_id)
    for name, outcome in {"done": Done(), "lost": Fail(), "snoozed": Snooze(seconds(5))}.items():
        give(face, name, outcome)
    hold(face, "held")
    adjust(face, ids["once"], retryable=False)
    retried(face, "ready")
    exhausted(face, "spent")
    run(face, calls.pause_queue("slow"))
    seen = []
    for _ in range(2):  # before and after the backoff of what is ready then
        query = (
            f"select s.name, {condition}, s.ready_for_execution, s.waiting_reason from get_step_readiness_status(%s) s"
        )
        seen.append({name: said for name, *said in face.execute(query, [task_id])})
        clock.advance(seconds(1))

    assert [seen[0].pop("ready"), seen[1].pop("ready")] == [[False, False, "backoff"], [True, True, None]]
    assert seen[0] == seen[1]
    assert [name for name, said in seen[0].items() if said[0] == said[1]] == [
        "held",
        "done",
        "lost",
        "waiting",
        "spent",
    ]
    assert seen[0]["once"] == [False, True, None]
    assert (seen[0]["snoozed"], seen[0]["paused"]) == ([True, False, "snoozed"], [True, False, "queue_paused"])


def test_the_functions_that_it_names_are_there_under_their_names(document: str, face: DB) -> None:
    """T-03, X-11"""
    task_id = start_flow(face, node("a"))
    named = set(re.findall(r"\b(get_step_readiness_status|get_task_execution_context)\(", document))

    answers = {name: face.execute(f"select * from {name}(%s)", [task_id]).fetchall() for name in sorted(named)}

    assert {name: len(rows) for name, rows in answers.items()} == {
        "get_step_readiness_status": 1,
        "get_task_execution_context": 1,
    }


def test_the_columns_states_and_statuses_that_it_names_are_there(document: str, face: DB) -> None:
    """T-57, X-11"""
    start_flow(face, node("a"))
    statuses = set(re.findall(r"^when '(\w+)'", document, re.MULTILINE))

    assert all(re.search(rf"\b{name}\b", document) for name in COLUMNS)
    face.execute(f"select {', '.join(COLUMNS)} from steps")
    face.execute("select task_id, most_recent from task_transitions")
    known = face.execute("select state from holdfast.machine_states where machine = 'flow.step'").fetchall()
    assert {"pending", "in_progress", "complete", "error"} <= {state for (state,) in known}
    body = face.execute("select pg_get_functiondef('judge_counts'::regproc)").fetchone()
    assert body is not None
    assert len(statuses) == 5
    assert all(f"'{status}'" in body[0] for status in statuses)
