"""The execution context of a task: each status by fixture, what counts first, and the figures beside it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from flow.asking import adjust, context, done, exhausted, failed, hold, retried, rows, step
from holdfast.flow import calls as flow
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry
from holdfast.testing import Clock
from kernel.steps import claim, ids_by_name, node, seconds, settlement, start_flow, value

DB = Connection[Any]
Made = Callable[[DB], UUID]


def fresh(db: DB) -> UUID:
    return start_flow(db, node("a"), node("b", "a"))


def held(db: DB) -> UUID:
    task_id = fresh(db)
    hold(db, "a")
    return task_id


def finished(db: DB) -> UUID:
    task_id = fresh(db)
    done(db, "a", "b")
    return task_id


def out_of_tries(db: DB) -> UUID:
    task_id = fresh(db)
    exhausted(db, "a")
    return task_id


def failed_for_good(db: DB) -> UUID:
    task_id = fresh(db)
    failed(db, "a")
    return task_id


def backing_off(db: DB) -> UUID:
    task_id = fresh(db)
    retried(db, "a")
    return task_id


def cancelled(db: DB) -> UUID:
    task_id = fresh(db)
    run(db, calls.cancel(str(task_id)))
    return task_id


def resolved(db: DB) -> UUID:
    task_id = failed_for_good(db)
    run(db, calls.resolve(str(task_id)))
    return task_id


def resolved_step(db: DB) -> UUID:
    task_id = failed_for_good(db)
    run(db, calls.resolve(str(ids_by_name(db, task_id)["a"])))
    done(db, "b")
    return task_id


@pytest.mark.parametrize(
    ("made", "status", "action", "health"),
    [
        (fresh, "has_ready_steps", "execute_ready_steps", "healthy"),
        (held, "processing", "wait_for_completion", "healthy"),
        (finished, "all_complete", "finalize_task", "healthy"),
        (out_of_tries, "blocked_by_failures", "handle_failures", "blocked"),
        (failed_for_good, "blocked_by_failures", "handle_failures", "blocked"),
        (backing_off, "waiting_for_dependencies", "wait_for_dependencies", "recovering"),
        (cancelled, "blocked_by_failures", "handle_failures", "blocked"),
        (resolved, "all_complete", "finalize_task", "healthy"),
        (resolved_step, "all_complete", "finalize_task", "healthy"),
    ],
    ids=lambda made: getattr(made, "__name__", None),
)
def test_each_status_has_its_action(db: DB, clock: Clock, made: Made, status: str, action: str, health: str) -> None:
    """T-57, T-66, C-52"""
    clock.freeze()

    row = context(db, made(db))

    assert (row["execution_status"], row["recommended_action"], row["health_status"]) == (status, action, health)


@pytest.mark.parametrize(
    ("made", "state"),
    [(finished, "complete"), (out_of_tries, "error"), (failed_for_good, "error"), (backing_off, "in_progress")],
    ids=lambda made: getattr(made, "__name__", None),
)
def test_the_task_ends_as_its_status_says(db: DB, clock: Clock, made: Made, state: str) -> None:
    """T-10, T-11, T-58, T-59, T-70: not an error while retries remain"""
    clock.freeze()

    assert context(db, made(db))["state"] == state


def test_what_counts_first_is_ready_then_in_progress_then_blocked(db: DB, clock: Clock) -> None:
    """T-67, C-53: one branch given up beside others; complete before waiting only when all are"""
    clock.freeze()
    task_id = start_flow(db, node("bad"), node("b"), node("c", "b"), node("d", "c"))
    failed(db, "bad")
    said = [context(db, task_id)["execution_status"]]
    hold(db, "b")
    said.append(context(db, task_id)["execution_status"])
    other = start_flow(db, node("bad"), node("again"))
    failed(db, "bad")
    retried(db, "again")
    said.append(context(db, other)["execution_status"])

    assert said == ["has_ready_steps", "processing", "blocked_by_failures"]
    assert context(db, other)["health_status"] == "blocked"


def test_it_counts_its_steps(db: DB, clock: Clock) -> None:
    """T-56, T-65, T-66: the percentage has two decimals; the earliest retry is the nearest one"""
    clock.freeze()
    task_id = start_flow(db, *(node(name) for name in "abcdef"), node("g", "f"))
    done(db, "a")
    hold(db, "b")
    failed(db, "c")
    retried(db, "d")
    retried(db, "e")
    adjust(db, ids_by_name(db, task_id)["d"], backoff_request_seconds=20)
    adjust(db, ids_by_name(db, task_id)["e"], backoff_request_seconds=3)

    row = context(db, task_id)

    counts = {name: count for name, count in row.items() if name.endswith("_steps")}
    assert counts == {
        "total_steps": 7,
        "pending_steps": 2,
        "in_progress_steps": 1,
        "completed_steps": 1,
        "failed_steps": 3,
        "ready_steps": 1,
        "blocked_steps": 1,
    }
    assert str(row["completion_percentage"]) == "14.29"
    assert row["earliest_retry_at"] == clock.now() + seconds(3) == step(db, task_id, "e")["next_retry_at"]
    assert row["health_status"] == "recovering"


def test_the_batch_form_gives_the_rows_of_single_calls_and_none_for_what_is_not_there(db: DB) -> None:
    """T-46, T-136"""
    tasks = [fresh(db), fresh(db)]
    nowhere = value(db, "select gen_random_uuid()")

    batch = rows(db, "select * from flow.get_task_execution_context_batch(%s)", [*tasks, nowhere])

    assert batch == [context(db, task_id) for task_id in sorted(tasks)]


def test_a_task_without_steps_counts_as_complete(db: DB) -> None:
    """C-57"""
    (task_id,) = run(db, calls.start_run("flow.task", "empty", "flow.step", steps=[]))

    row = context(db, task_id)

    assert (row["execution_status"], row["completion_percentage"], row["health_status"]) == (
        "all_complete",
        100,
        "unknown",
    )


def test_levels_are_the_longest_ways(db: DB) -> None:
    """T-23: of a diamond with a short cut"""
    task_id = start_flow(db, node("a"), node("b", "a"), node("c", "b"), node("d", "a", "c"), node("e"))

    answer = rows(db, "select name, dependency_level from flow.calculate_dependency_levels(%s)", task_id)

    levels = {row["name"]: row["dependency_level"] for row in answer}
    assert levels == {"a": 0, "e": 0, "b": 1, "c": 2, "d": 3}


def test_levels_of_many_ways_are_found_without_going_each(db: DB) -> None:
    """Forty layers of three, each step after all three before it: 3 to the 40th ways."""
    layers = [[f"s{layer}_{n}" for n in range(3)] for layer in range(40)]
    plan = [node(name, *(layers[at - 1] if at else [])) for at, layer in enumerate(layers) for name in layer]

    task_id = start_flow(db, *plan)

    assert value(db, "select max(dependency_level) from flow.calculate_dependency_levels(%s)", task_id) == 39


def test_the_health_of_all_is_the_sum_of_each(db: DB, clock: Clock) -> None:
    """T-66: counted from the runs and what is open, it agrees with the steps read one by one"""
    clock.freeze()
    over = (finished, out_of_tries, failed_for_good, cancelled, resolved, resolved_step)
    for made in (*over, backing_off, held, fresh):
        made(db)

    (health,) = rows(db, "select * from flow.get_system_health_counts()")

    tasks = rows(db, "select state, count(*) from flow.tasks group by state")
    steps = {row["state"]: row["count"] for row in rows(db, "select state, count(*) from flow.steps group by state")}
    assert {row["state"]: row["count"] for row in tasks} == {
        "pending": health["pending_tasks"],
        "in_progress": health["in_progress_tasks"],
        "complete": health["complete_tasks"],
        "error": health["error_tasks"],
        "cancelled": health["cancelled_tasks"],
        "resolved_manually": health["resolved_tasks"],
    }
    assert health["total_tasks"] == 9
    assert health["complete_steps"] == steps["complete"] + steps["resolved_manually"]
    names = {"pending": "pending", "in_progress": "in_progress", "error": "error", "cancelled": "cancelled"}
    assert {state: health[f"{name}_steps"] for state, name in names.items()} == {state: steps[state] for state in names}
    contexts = "select sum(c.ready_steps) from flow.tasks t, lateral flow.get_task_execution_context(t.task_id) c"
    assert health["ready_steps"] == value(db, contexts)
    assert (health["retryable_error_steps"], health["in_backoff_steps"]) == (1, 1)
    assert health["exhausted_retry_steps"] == steps["error"] - 1
    assert 1 <= health["connections"] <= health["max_connections"]


def test_of_a_wide_task_a_settle_says_what_it_is_sure_of(db: DB, clock: Clock) -> None:
    """Beyond 300 steps it looks around those settled; totals are the task's own, and what it did not see goes on."""
    clock.freeze()
    names = [f"s{number}" for number in range(400)]
    task_id = start_flow(db, *(node(name) for name in names), node("join", *names))
    taken = claim(db, batch=390)
    seen = []
    for outcome, batch in ((Retry(after=60), taken[:1]), (Fail("no"), taken[1:2]), (Done(), taken[2:])):
        run(db, calls.settle_steps([settlement(step, outcome) for step in batch]))
        (row,) = run(db, flow.settled_tasks("a", [step.step_id for step in batch]))
        seen.append(row)
    ready = [row.execution_status for row in seen]
    last = claim(db, "b", batch=10)
    run(db, calls.settle_steps([settlement(step, Done()) for step in last]))
    (end,) = run(db, flow.settled_tasks("b", [step.step_id for step in last]))

    told = context(db, task_id)
    assert ready == ["has_ready_steps"] * 3
    assert [(row.total_steps, row.completed_steps, row.blocked_steps) for row in seen] == [
        (401, 0, 0),
        (401, 0, 1),
        (401, 388, 1),
    ]
    assert (end.completed_steps, end.blocked_steps) == (told["completed_steps"], told["blocked_steps"]) == (398, 1)
    # The first waits for its next try, out of sight: something goes on, and nobody says that nothing is viable.
    assert (end.execution_status, end.ready_steps, end.in_progress_steps) == ("processing", 0, 0)
