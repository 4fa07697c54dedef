"""Tasks and steps as the views show them, at each turn of their life."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from flow.asking import done, failed, hold, retried, rows, step
from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.models import Done
from holdfast.testing import Clock
from kernel.steps import ids_by_name, node, rescue, seconds, settle, start_flow, value
from security.conftest import Login, login

__all__ = ["login"]
DB = Connection[Any]
ABOUT = {"tags": ["vip", "eu"], "initiator": "shop", "source_system": "web", "reason": "bought"}
PLAN = [node("order.a"), node("order.b", "order.a", skippable=True)]


def begin(db: DB, **options: Any) -> Any:
    """Start a task as SQL does."""
    given = {"context": {"order_id": 123}, "about": ABOUT, "skip": [], **options}
    return value(
        db,
        "select flow.initialize_task('order', %s, %s, skip => %s, about => %s)",
        Jsonb(PLAN),
        Jsonb(given["context"]),
        given["skip"],
        Jsonb(given["about"]),
    )


def test_a_new_task_is_pending_with_its_context_and_what_was_said_of_it(db: DB) -> None:
    """T-16, T-19"""
    task_id = begin(db)

    (task,) = rows(db, "select * from flow.tasks")

    assert (task["task_id"], task["name"], task["namespace"], task["version"]) == (task_id, "order", "default", "0.1.0")
    assert (task["state"], task["complete"], task["context"]) == ("pending", False, {"order_id": 123})
    assert {name: task[name] for name in ABOUT} == ABOUT
    assert (task["total_steps"], task["active_steps"], task["waiting_steps"], task["completed_steps"]) == (2, 1, 1, 0)
    assert (task["started_at"], task["finished_at"]) == (None, None)


def test_new_steps_are_pending_unprocessed_and_untried(db: DB) -> None:
    """T-20, T-43"""
    task_id = begin(db)

    for name in ("order.a", "order.b"):
        a = step(db, task_id, name)
        assert (a["state"], a["processed"], a["in_process"], a["attempts"]) == ("pending", False, False, 0)
        assert (a["retry_limit"], a["retryable"], a["last_attempted_at"], a["results"]) == (3, True, None, None)
    assert step(db, task_id, "order.b")["depends_on"] == ["order.a"]


def test_a_step_shows_who_holds_it_and_then_its_result(db: DB, clock: Clock) -> None:
    """T-07, T-47, T-49, T-54: processed and complete come together"""
    now = clock.freeze()
    task_id = start_flow(db, node("a"))
    held = hold(db, "a")
    during = step(db, task_id, "a")
    settle(db, held, Done({"sum": 7}))

    after = step(db, task_id, "a")

    assert (during["state"], during["in_process"], during["lease_id"]) == ("in_progress", True, held.lease_id)
    assert (during["last_attempted_at"], during["executions"], during["attempts"]) == (now, 1, 0)
    assert (after["state"], after["processed"], after["in_process"], after["worker"]) == ("complete", True, False, None)
    assert (after["processed_at"], after["results"], after["attempts"]) == (now, {"sum": 7}, 0)
    (task,) = rows(db, "select state, complete, completed_steps, finished_at from flow.tasks")
    assert task == {"state": "complete", "complete": True, "completed_steps": 1, "finished_at": now}


def test_a_failed_step_shows_its_error_and_when_it_is_tried_again(db: DB, clock: Clock) -> None:
    """T-08, T-50, T-51, T-69, T-75: attempts counts the failure; the time of the failure is the last attempt's"""
    task_id = start_flow(db, node("a"))
    clock.freeze()
    hold(db, "a")
    clock.advance(seconds(31))
    rescue(db)

    a = step(db, task_id, "a")

    assert (a["state"], a["processed"], a["attempts"], a["error"]["type"]) == ("error", False, 1, "LeaseExpired")
    assert a["last_attempted_at"] == a["last_failure_at"] == clock.now()
    assert (a["backoff_request_seconds"], a["next_retry_at"]) == (1, clock.now() + seconds(1))


def test_the_backoff_stands_while_a_step_waits_for_its_retry_and_no_longer(db: DB, clock: Clock) -> None:
    """T-114: null before, while it is held and after"""
    clock.freeze()
    task_id = start_flow(db, node("a"))
    seen = [step(db, task_id, "a")["backoff_request_seconds"]]
    retried(db, "a")
    seen.append(step(db, task_id, "a")["backoff_request_seconds"])
    clock.advance(seconds(1))
    held = hold(db, "a")
    seen.append(step(db, task_id, "a")["backoff_request_seconds"])
    settle(db, held, Done())
    seen.append(step(db, task_id, "a")["backoff_request_seconds"])

    assert seen == [None, 1, None, None]


def test_steps_skipped_by_request_say_so(db: DB) -> None:
    """T-145: they are resolved, and what waits for them goes on"""
    run(db, calls.define_kind("order.a"))
    db.execute("select flow.define_flow('order', %s)", [Jsonb(PLAN)])
    task_id = begin(db, skip=["order.b"])

    b = step(db, task_id, "order.b")

    assert (b["state"], b["processed"], b["skipped"], b["skippable"]) == ("resolved_manually", True, True, True)
    assert not step(db, task_id, "order.a")["skipped"]
    assert not step(db, task_id, "order.a")["skippable"]
    assert value(db, "select bypass_steps from flow.tasks") == ["order.b"]


def test_a_step_whose_condition_did_not_hold_is_skipped(db: DB) -> None:
    """T-145: its handler noted so"""
    task_id = start_flow(db, node("a"))
    held = hold(db, "a")
    run(db, calls.note(held.step_id, held.lease_id, "info", "skipped", key="skipped"))
    settle(db, held, Done())

    assert step(db, task_id, "a")["skipped"]


def test_the_dag_has_roots_leaves_parents_and_children(db: DB) -> None:
    """T-23"""
    task_id = start_flow(db, node("a"), node("b", "a"), node("c", "a", "b"))

    dag = {row["name"]: row for row in rows(db, "select * from flow.step_dag where task_id = %s", task_id)}

    told = {name: (row["parent_names"], row["child_names"]) for name, row in dag.items()}
    assert told == {"a": ([], ["b", "c"]), "b": (["a"], ["c"]), "c": (["a", "b"], [])}
    assert [name for name, row in dag.items() if row["is_root_step"]] == ["a"]
    assert [name for name, row in dag.items() if row["is_leaf_step"]] == ["c"]


def test_a_reset_step_begins_again_with_nothing_counted(db: DB, clock: Clock) -> None:
    """T-133, C-59: error → pending, no attempts, no backoff; its task leaves error"""
    clock.freeze()
    task_id = start_flow(db, node("a"))
    failed(db, "a")
    run(db, calls.retry(str(ids_by_name(db, task_id)["a"])))

    a = step(db, task_id, "a")

    assert (a["state"], a["attempts"], a["backoff_request_seconds"], a["next_retry_at"]) == ("pending", 0, None, None)
    assert value(db, "select state from flow.tasks where task_id = %s", task_id) == "pending"
    done(db, "a")
    assert value(db, "select state from flow.tasks where task_id = %s", task_id) == "complete"


def test_a_second_row_for_a_step_of_a_task_is_refused(db: DB) -> None:
    """T-22, C-88: the name stands once in its task"""
    task_id = start_flow(db, node("a"))

    with pytest.raises(psycopg.errors.UniqueViolation, match="run_step_names"):
        db.execute("insert into holdfast.run_steps values (%s, 999999, 'a')", [task_id])
    with pytest.raises(errors.BadInput, match="two steps"), translated():
        db.execute("select holdfast.add_steps(%s, 'flow.step', %s)", [task_id, Jsonb([node("a")])])


def test_a_login_sees_what_is_of_its_tenants(db: DB, login: Login) -> None:
    """X-14: in every view and function"""
    mine, other = start_flow(db, node("a"), tenant="mine"), start_flow(db, node("a"), tenant="other")
    for _ in range(2):
        done(db, "a")
    own = login("hf_reader", tenants=["mine"])

    assert {row["task_id"] for row in rows(own, "select task_id from flow.tasks")} == {mine}
    assert {row["task_id"] for row in rows(own, "select task_id from flow.steps")} == {mine}
    assert {row["task_id"] for row in rows(own, "select task_id from flow.step_dag")} == {mine}
    assert {row["tenant"] for row in rows(own, "select tenant from flow.task_transitions")} == {"mine"}
    assert {row["tenant"] for row in rows(own, "select tenant from flow.step_transitions")} == {"mine"}
    for question in ("get_step_readiness_status", "get_task_execution_context", "states_from_history"):
        assert len(rows(own, f"select * from flow.{question}(%s)", mine)) >= 1
        assert rows(own, f"select * from flow.{question}(%s)", other) == []
    assert rows(own, "select * from flow.calculate_dependency_levels(%s)", other) == []
    assert rows(own, "select total_tasks, total_steps from flow.get_system_health_counts()") == [
        {"total_tasks": 1, "total_steps": 1}
    ]
