"""work.tasks and the functions beside it: document 004 at the level of SQL."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.testing import Clock
from kernel.steps import node, seconds, start, start_flow, value
from work.tasks import audit, claim_next, held, report, rows, task

DB = Connection[Any]
COLUMNS = {
    "id": "bigint", "type": "text", "status": "text", "input": "jsonb", "output": "jsonb", "error": "jsonb",
    "lease_timeout": "timestamp with time zone", "lease_owner": "text", "locked_at": "timestamp with time zone",
    "try_count": "integer", "max_tries": "integer", "created_at": "timestamp with time zone",
    "updated_at": "timestamp with time zone",
}  # fmt: skip


def test_a_task_has_the_columns_of_the_document(db: DB) -> None:
    """W-43"""
    found = rows(db, "select column_name, data_type from information_schema.columns where table_schema = 'work'")

    assert COLUMNS.items() <= {(row["column_name"], row["data_type"]) for row in found}


def test_a_new_task_is_pending_and_untried(db: DB, clock: Clock) -> None:
    """W-43 W-49: try_count 0, max_tries 3"""
    now = clock.freeze()

    row = task(db, start(db, "mail", {"to": "a"}, priority=4, queue="post", tenant="t"))

    assert (row["type"], row["status"], row["input"], row["try_count"], row["max_tries"]) == (
        "mail", "pending", {"to": "a"}, 0, 3,
    )  # fmt: skip
    assert (row["created_at"], row["updated_at"], row["due_at"]) == (now, now, now)
    assert (row["priority"], row["queue"], row["tenant"]) == (4, "post", "t")
    unset = ("output", "error", "lease_timeout", "lease_owner", "lease_id", "locked_at", "usage", "duration")
    assert {name: row[name] for name in unset} == dict.fromkeys(unset)


def test_max_tries_goes_by_the_task_else_its_kind_else_the_machine(db: DB) -> None:
    """W-49: also by a kind that was defined after the task was started"""
    early = start(db)
    run(db, calls.define_policy("five", tries=5))
    run(db, calls.define_policy("seven", tries=7))
    run(db, calls.define_kind("mail", policy="five"))
    stamped = start(db)
    run(db, calls.define_kind("mail", policy="seven"))

    assert (task(db, early)["max_tries"], task(db, stamped)["max_tries"], task(db, start(db, "sms"))["max_tries"]) == (
        7, 5, 3,
    )  # fmt: skip


def test_a_claim_sets_status_lease_owner_tries_times_and_its_audit_entry_at_once(db: DB, clock: Clock) -> None:
    """W-08 W-50 W-60: and undone, it leaves nothing of them"""
    task_id = start(db)
    before = task(db, task_id)
    clock.advance(seconds(5))
    now = clock.freeze()

    with db.transaction(force_rollback=True):
        row = held(db, "host:1", lease=timedelta(seconds=60))
        assert row == task(db, task_id)
        assert audit(db, task_id) == [("claimed", "running", "host:1")]
    assert (row["status"], row["lease_owner"], row["try_count"]) == ("running", "host:1", 1)
    assert (row["lease_timeout"], row["locked_at"], row["updated_at"]) == (now + seconds(60), now, now)
    assert (task(db, task_id), audit(db, task_id)) == (before, [])


def test_a_claim_gives_a_row_or_nothing(db: DB) -> None:
    """W-50 W-05: only of the types it is asked for; without a name the worker is the login and its process"""
    task_id = start(db, "mail")

    assert claim_next(db, types=["sms"]) is None
    assert claim_next(db, queue="other") is None
    (row,) = rows(db, "select id, lease_owner from work.claim_next_task()")
    assert row["id"] == task_id
    assert row["lease_owner"] == value(db, "select session_user || ':' || pg_backend_pid()")
    assert claim_next(db) is None


@pytest.mark.parametrize("is_served", [True, False])
def test_a_step_of_a_run_that_is_due_first_is_passed_over(db: DB, *, is_served: bool) -> None:
    """It stays due where a worker takes such steps, is parked where none does, and comes back when one claims."""
    start_flow(db, node("pay"))
    if is_served:
        run(db, calls.enlist_worker("flows", ["default"], kinds=["pay"]))
    task_id = start(db, "mail")

    assert held(db)["id"] == task_id
    assert claim_next(db) is None

    (flow_step,) = rows(db, "select state, attempt, parked_for from holdfast.steps where kind = 'pay'")
    assert (flow_step["state"], flow_step["attempt"]) == ("pending", 0)
    assert flow_step["parked_for"] == (None if is_served else "handler")
    assert [step.kind for step in run(db, calls.claim_steps("flows", kinds=["pay"]))] == ["pay"]


def test_who_claims_tasks_only_may_claim_steps_of_runs_later(db: DB) -> None:
    """By the same name and in the same session: what it takes goes by its last claim."""
    start_flow(db, node("pay"))
    assert claim_next(db, "me") is None

    assert [step.kind for step in run(db, calls.claim_steps("me"))] == ["pay"]


def test_the_lease_is_as_long_as_asked_for_else_as_the_kind_says_else_300_seconds(db: DB, clock: Clock) -> None:
    """W-46"""
    now = clock.freeze()
    run(db, calls.define_kind("slow", lease=seconds(1000)))
    for name in ("mail", "slow", "mail"):
        start(db, name)

    leases = [held(db, lease=lease)["lease_timeout"] - now for lease in (None, None, seconds(7))]

    assert leases == [seconds(300), seconds(1000), seconds(7)]


def test_the_oldest_goes_first_when_it_is_due(db: DB, clock: Clock) -> None:
    """W-59"""
    now = clock.freeze()
    later = start(db, due_at=now + seconds(60))
    ids = []
    for _ in range(3):
        ids.append(start(db))
        clock.advance(seconds(1))

    assert [held(db)["id"] for _ in range(3)] == ids
    assert claim_next(db) is None
    clock.advance(seconds(60))
    assert held(db)["id"] == later


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        ({"type": "E", "message": "no", "trace": "at 1"}, {"type": "E", "message": "no", "trace": "at 1"}),
        ({"message": "no", "code": 7}, {"type": None, "message": "no", "trace": None, "code": 7}),
        ("no", {"type": None, "message": "no", "trace": None}),
        ([1], {"type": None, "message": "[1]", "trace": None}),
    ],
)
def test_an_error_has_type_message_and_trace(db: DB, given: Any, seen: dict[str, Any]) -> None:
    """W-11 W-58"""
    task_id = start(db)

    report(db, held(db), "fail", error=given)

    assert (task(db, task_id)["status"], task(db, task_id)["error"]) == ("error", seen)


def test_usage_and_duration_are_told_with_the_result(db: DB, clock: Clock) -> None:
    """W-10 W-54: the note of that key, and no other task's"""
    clock.freeze()
    task_id, other = start(db), start(db)
    claimed = held(db)
    note = calls.note(task_id, claimed["lease_id"], "info", "used", payload={"tokens": 7}, key="usage:1")
    run(db, calls.note(task_id, claimed["lease_id"], "info", "unkeyed", payload={"tokens": 1}))
    run(db, note)
    clock.advance(seconds(12))
    report(db, claimed)

    row = task(db, task_id)
    assert (row["usage"], row["duration"]) == ({"tokens": 7}, seconds(12))
    assert task(db, other)["usage"] is None


@pytest.mark.parametrize(
    ("statement", "hint"),
    [
        ("insert into work.tasks (type, status) values ('mail', 'pending')", "insert.*holdfast.start_task"),
        ("update work.tasks set status = 'done'", "update.*settle_steps.*holdfast.retry.*holdfast.cancel"),
        ("delete from work.tasks", "delete.*holdfast.cancel"),
    ],
)
def test_a_raw_write_is_refused_and_told_what_to_call(db: DB, statement: str, hint: str) -> None:
    """W-41: also to the owner of the database"""
    task_id = start(db)
    before = task(db, task_id)

    with pytest.raises(errors.BadInput, match=hint), translated():
        db.execute(statement)

    assert task(db, task_id) == before
    with pytest.raises(psycopg.errors.WrongObjectType):
        db.execute("truncate work.tasks")
