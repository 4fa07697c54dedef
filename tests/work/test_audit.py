"""work.audit_logs and updated_at: nothing happens to a task without a trace, and no trace is changed."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.testing import Clock
from kernel.steps import node, seconds, start, start_flow, value
from work.tasks import audit, held, recover, report, rows, task

DB = Connection[Any]


def test_an_entry_has_the_columns_of_the_document(db: DB, clock: Clock) -> None:
    """W-44: id, event type, resource, time, actor and metadata"""
    now = clock.freeze()
    task_id = start(db, tenant="t")
    claimed = held(db, "host:1")

    (log,) = rows(db, "select * from work.audit_logs")

    assert log.pop("id") > 0
    assert log == {
        "event_type": "claimed", "resource_id": task_id, "created_at": now, "actor": "host:1", "actor_kind": "worker",
        "tenant": "t",
        "metadata": {
            "from_status": "pending", "to_status": "running", "try_count": 1, "lease_id": claimed["lease_id"],
        },
    }  # fmt: skip


def test_every_move_of_a_task_has_one_entry(db: DB, clock: Clock) -> None:
    """W-42 C-69: also back to pending, and by hand"""
    task_id = start(db)
    held(db, "a")
    clock.advance(seconds(31))
    recover(db)
    report(db, held(db, "b"), "fail", error="no")
    run(db, calls.retry(str(task_id)))
    report(db, held(db, "c"))

    me = value(db, "select session_user::text")
    assert audit(db, task_id) == [
        ("claimed", "running", "a"), ("expired", "pending", "rescue"),
        ("claimed", "running", "b"), ("failed", "error", "b"), ("reopened", "pending", me),
        ("claimed", "running", "c"), ("succeeded", "done", "c"),
    ]  # fmt: skip


def test_it_holds_tasks_and_no_steps_of_runs(db: DB) -> None:
    start_flow(db, node("pay"))
    run(db, calls.claim_steps("a"))

    assert (rows(db, "select * from work.audit_logs"), rows(db, "select * from work.tasks")) == ([], [])


@pytest.mark.parametrize(
    "statement",
    [
        "update work.audit_logs set actor = 'nobody'",
        "delete from work.audit_logs",
        "insert into work.audit_logs (event_type, resource_id) values ('claimed', 1)",
    ],
)
def test_an_entry_is_never_changed(db: DB, statement: str) -> None:
    """W-42 X-07: by nobody, through the view; the journal beneath has its own guard"""
    task_id = start(db)
    held(db, "a")

    with pytest.raises(errors.AppendOnly, match=r"audit_logs .*append-only"), translated():
        db.execute(statement)

    assert audit(db, task_id) == [("claimed", "running", "a")]
    with pytest.raises(psycopg.errors.WrongObjectType):
        db.execute("truncate work.audit_logs")


@pytest.mark.parametrize(("outcome", "status"), [("done", "done"), ("fail", "error"), ("retry", "pending")])
def test_a_report_refreshes_updated_at(db: DB, clock: Clock, outcome: str, status: str) -> None:
    """W-41"""
    task_id = start(db)
    claimed = held(db)
    clock.advance(seconds(9))
    now = clock.freeze()

    report(db, claimed, outcome)

    row = task(db, task_id)
    assert (row["status"], row["updated_at"]) == (status, now)


@pytest.mark.parametrize("state", ["done", "error"])
def test_an_end_that_is_written_by_hand_refreshes_updated_at_whatever_times_it_sets(
    db: DB, clock: Clock, state: str
) -> None:
    """W-41: straight to the table beneath, with times of long ago"""
    task_id = start(db)
    held(db)
    clock.advance(seconds(9))
    now = clock.freeze()

    db.execute(
        """update holdfast.steps set state = %s, finished_at = '2001-01-01', claimed_at = '2001-01-01',
                  created_at = '2001-01-01', lease_id = null, lease_owner = null, lease_until = null""",
        [state],
    )

    row = task(db, task_id)
    assert (row["status"], row["updated_at"]) == (state, now)


def test_what_a_task_does_not_show_itself_is_found_by_index(db: DB) -> None:
    """Of 5 000 tasks with a move and a note each, one is read."""
    for _ in range(10):
        run(db, calls.start_tasks([{"name": "mail"}] * 500))
    steps = run(db, calls.claim_steps("a", batch=5000))
    db.execute("select holdfast.note(id, lease_id, key => 'usage:1') from holdfast.steps")
    db.execute("analyze holdfast.steps, holdfast.journal, holdfast.notes, holdfast.note_keys")

    plan = db.execute(
        "explain select usage, updated_at, max_tries from work.tasks where id = %s", [steps[0].step_id]
    ).fetchall()

    scanned = re.findall(r"Seq Scan on (steps|note_keys|(?:journal|notes)\w*)", "\n".join(line for (line,) in plan))
    assert [
        name for name in scanned if value(db, f"select count(*) from holdfast.{name}")
    ] == []  # months to come are empty
