"""The transitions of tasks and steps: who moved what, when and why, and the states that follow from it alone."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from flow.asking import adjust, done, exhausted, failed, give, hold, retried, rows
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Release
from holdfast.testing import Clock
from kernel.steps import add_steps, ids_by_name, node, rescue, seconds, start_flow, states, value

DB = Connection[Any]
TRANSITIONS = ["from_state", "to_state", "metadata", "sort_key", "most_recent", "created_at"]


def columns(db: DB, view: str) -> list[str]:
    query = "select attname from pg_attribute where attrelid = %s::regclass and attnum > 0 order by attnum"
    return [row["attname"] for row in rows(db, query, view)]


def test_both_histories_have_the_same_columns_but_for_whose_they_are(db: DB) -> None:
    """T-81, T-148"""
    of_tasks, of_steps = columns(db, "flow.task_transitions"), columns(db, "flow.step_transitions")

    assert [name.replace("task_id", "step_id") for name in of_tasks] == of_steps
    assert [name for name in of_steps if name in TRANSITIONS] == TRANSITIONS


def test_a_retried_step_tells_its_whole_story(db: DB) -> None:
    """T-73, T-87, C-50: a retry is error → pending → in_progress, with the attempt, the lease and the error of each"""
    task_id = start_flow(db, node("a"))
    step_id = ids_by_name(db, task_id)["a"]
    first = retried(db, "a")
    adjust(db, step_id, backoff_request_seconds=0)
    second = hold(db, "a")

    story = rows(db, "select * from flow.step_transitions where step_id = %s order by sort_key", step_id)

    assert [(row["from_state"], row["to_state"], row["metadata"]["event"]) for row in story] == [
        (None, "pending", "created"),
        ("pending", "in_progress", "claimed"),
        ("in_progress", "error", "retried"),
        ("error", "pending", "reopened"),
        ("pending", "in_progress", "claimed"),
    ]
    assert story[2]["metadata"]["error"] == {"type": "Busy", "message": "again"}
    assert [story[n]["metadata"]["lease_id"] for n in (1, 2, 4)] == [first.lease_id, first.lease_id, second.lease_id]
    assert [story[n]["metadata"]["attempt"] for n in (1, 2, 4)] == [1, 1, 2]


def test_who_acted_by_hand_and_why_is_in_the_history(db: DB) -> None:
    """T-87, T-133"""
    task_id = start_flow(db, node("a"))
    failed(db, "a")
    run(db, calls.retry(str(task_id), "the shop is back"))

    told = rows(db, "select * from flow.task_transitions where task_id = %s order by sort_key", task_id)

    assert [row["to_state"] for row in told] == ["pending", "in_progress", "error", "pending"]
    assert told[0]["from_state"] is None
    assert told[-1]["metadata"]["reason"] == "the shop is back"
    assert told[-1]["metadata"]["actor_kind"] == "user"
    assert told[-1]["metadata"]["actor"] == value(db, "select session_user::text")


def test_exactly_one_transition_is_the_most_recent(db: DB) -> None:
    """T-88, T-135: of each task and step, and it is the last"""
    for _ in range(2):
        start_flow(db, node("a"), node("b", "a"))
    exhausted(db, "a")
    give(db, "a", Release())
    done(db, "a")

    for view, key in (("task_transitions", "task_id"), ("step_transitions", "step_id")):
        flagged = rows(db, f"select {key}, sort_key from flow.{view} where most_recent")
        last = rows(db, f"select {key}, max(sort_key) as sort_key from flow.{view} group by 1")
        assert sorted(flagged, key=str) == sorted(last, key=str)
        assert len(flagged) == {"task_id": 2, "step_id": 4}[key]


def test_the_first_transition_of_a_step_is_its_creation(db: DB, clock: Clock) -> None:
    """T-20, T-88, T-148, C-88: to pending, before all that is journaled; also of one that was added later"""
    now = clock.freeze()
    task_id = start_flow(db, node("a"))
    add_steps(db, task_id, node("late", "a"))
    a, late = ids_by_name(db, task_id).values()
    untouched = rows(
        db, "select step_id, from_state, to_state, sort_key, most_recent, created_at from flow.step_transitions"
    )
    clock.advance(seconds(1))
    hold(db, "a")

    flags = (
        "select sort_key > 0 as has_moved, most_recent from flow.step_transitions where step_id = %s order by sort_key"
    )
    first = {"from_state": None, "to_state": "pending", "sort_key": 0, "most_recent": True, "created_at": now}
    assert sorted(untouched, key=str) == [{"step_id": a, **first}, {"step_id": late, **first}]
    assert [tuple(row.values()) for row in rows(db, flags, a)] == [(False, False), (True, True)]
    assert [tuple(row.values()) for row in rows(db, flags, late)] == [(False, True)]
    (task,) = rows(db, "select from_state, to_state from flow.task_transitions where task_id = %s limit 1", task_id)
    assert task == {"from_state": None, "to_state": "pending"}


@pytest.mark.parametrize("end", ["done", "failed", "cancelled", "rescued"])
def test_states_are_rebuilt_from_the_history_alone(db: DB, clock: Any, end: str) -> None:
    """T-134: whatever became of the task; also of steps that were planned later"""
    task_id = start_flow(db, node("a"), node("b"), node("c", "a"))
    done(db, "a")
    add_steps(db, task_id, node("late", "c"))
    match end:
        case "done":
            done(db, "b", "c", "late")
        case "failed":
            failed(db, "b")
            exhausted(db, "c")
        case "cancelled":
            run(db, calls.cancel(str(task_id)))
        case "rescued":
            hold(db, "b")
            clock.advance(value(db, "select interval '31 s'"))
            rescue(db)

    told = rows(db, "select * from flow.states_from_history(%s)", task_id)

    assert {row["name"]: row["state"] for row in told if row["step_id"]} == states(db, task_id)
    (task,) = [row for row in told if row["step_id"] is None]
    assert task["state"] == value(db, "select state from flow.tasks where task_id = %s", task_id)
