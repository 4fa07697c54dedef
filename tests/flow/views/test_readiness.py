"""Readiness, condition by condition: the function says ready where the document does, and a claim takes just that."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from flow.asking import (
    adjust,
    done,
    exhausted,
    failed,
    give,
    hold,
    names_of,
    readiness,
    ready,
    retried,
    rows,
    set_due,
    step,
)
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Continue, Done, Fail, Release, Retry, Snooze
from holdfast.testing import Clock
from kernel.steps import claim, column, ids_by_name, node, rescue, seconds, settle, start_flow, wish_in_chunks

DB = Connection[Any]
MOMENT = timedelta(milliseconds=1)
COLUMNS = {
    "step_id", "task_id", "name", "current_state", "dependencies_satisfied", "retry_eligible", "ready_for_execution",
    "last_failure_at", "next_retry_at", "total_parents", "completed_parents", "attempts", "retry_limit",
    "backoff_request_seconds", "last_attempted_at",
}  # fmt: skip


@pytest.fixture(autouse=True)
def still(clock: Clock) -> Clock:
    """The clock stands: due times can be met to the millisecond."""
    clock.freeze()
    return clock


def taken(db: DB, task_id: UUID, **options: Any) -> set[str]:
    """What a claim would take, by name; it is undone."""
    with db.transaction(force_rollback=True):
        return names_of(db, task_id, [s.step_id for s in claim(db, "asks", batch=1000, **options)])


def test_it_says_of_each_step_all_that_the_document_names(db: DB) -> None:
    """T-32, T-45, T-80: both forms, by plain SQL"""
    task_id = start_flow(db, node("a"), node("b", "a"), node("c", "a", "b"))
    done(db, "a")

    answer = readiness(db, task_id)
    chosen = readiness(db, task_id, [answer["b"]["step_id"]])

    assert set(answer["a"]) >= COLUMNS
    assert chosen == {"b": answer["b"]}
    parents = {name: (row["completed_parents"], row["total_parents"]) for name, row in answer.items()}
    assert parents == {"a": (0, 0), "b": (1, 1), "c": (1, 2)}


def test_the_batch_form_gives_the_rows_of_single_calls(db: DB) -> None:
    """T-46, T-136"""
    tasks = [start_flow(db, node("a"), node("b", "a")) for _ in range(3)]
    done(db, "a")

    batch = rows(db, "select * from flow.get_step_readiness_status_batch(%s)", tasks[:2])

    assert batch == [row for task_id in sorted(tasks[:2]) for row in readiness(db, task_id).values()]


def test_states_that_may_be_executed_are_pending_and_error(db: DB) -> None:
    """T-33: what is in progress, complete, cancelled or resolved is not ready"""
    task_id = start_flow(db, *(node(name) for name in "abcdef"))
    ids = ids_by_name(db, task_id)
    hold(db, "a")
    done(db, "b")
    run(db, calls.cancel(str(ids["c"])))
    run(db, calls.resolve(str(ids["d"])))
    retried(db, "e")
    adjust(db, ids["e"], backoff_request_seconds=0)

    said = {name: (row["current_state"], row["ready_for_execution"]) for name, row in readiness(db, task_id).items()}

    assert said == {
        "a": ("in_progress", False),
        "b": ("complete", False),
        "c": ("cancelled", False),
        "d": ("resolved_manually", False),
        "e": ("error", True),
        "f": ("pending", True),
    }
    assert taken(db, task_id) == {"e", "f"}


def test_a_processed_step_is_never_executed_and_cannot_be_made_an_error(db: DB) -> None:
    """T-34, T-142"""
    task_id = start_flow(db, node("a"), node("b"))
    done(db, "a")
    a = readiness(db, task_id)["a"]

    with pytest.raises(psycopg.Error) as refused:
        db.execute("update holdfast.steps set state = 'error', finished_at = null where id = %s", [a["step_id"]])

    assert (a["processed"], refused.value.sqlstate) == (True, "RN001")
    with pytest.raises(psycopg.errors.CheckViolation, match="due_only_when_free"):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where id = %s", [a["step_id"]])
    assert ready(db, task_id) == taken(db, task_id) == {"b"}


def test_all_parents_must_be_complete_or_resolved(db: DB) -> None:
    """T-35: a root is ready at once"""
    task_id = start_flow(db, node("a"), node("b"), node("c", "a", "b"))
    roots = ready(db, task_id)
    done(db, "a")
    waiting = readiness(db, task_id)["c"]
    run(db, calls.resolve(str(ids_by_name(db, task_id)["b"])))

    assert roots == {"a", "b"}
    assert (waiting["dependencies_satisfied"], waiting["ready_for_execution"]) == (False, False)
    assert ready(db, task_id) == taken(db, task_id) == {"c"}


@pytest.mark.unsound
def test_a_parent_that_is_gone_holds_its_children_up_and_fails_nothing(db: DB) -> None:
    """T-129, C-56"""
    task_id = start_flow(db, node("a"), node("b", "a"))
    db.execute("delete from holdfast.steps where id = %s", [ids_by_name(db, task_id)["a"]])

    b = readiness(db, task_id)["b"]

    assert (b["total_parents"], b["completed_parents"], b["dependencies_satisfied"]) == (1, 0, False)
    assert ready(db, task_id) == taken(db, task_id) == set()
    (context,) = rows(db, "select * from flow.get_task_execution_context(%s)", task_id)
    assert (context["state"], context["execution_status"]) == ("pending", "waiting_for_dependencies")


def test_a_step_that_has_used_up_its_tries_is_not_ready(db: DB, clock: Clock) -> None:
    """T-36, T-43: three executions unless its policy says otherwise"""
    task_id = start_flow(db, node("a"), node("b"))
    exhausted(db, "a")
    clock.advance(timedelta(days=1))

    a = readiness(db, task_id)["a"]

    assert (a["attempts"], a["retry_limit"], a["retry_eligible"]) == (3, 3, False)
    assert ready(db, task_id) == taken(db, task_id) == {"b"}


def test_what_is_not_retryable_runs_once_and_not_again(db: DB, clock: Clock) -> None:
    """T-37, C-51: also with a limit of 0; a flag set to null counts as retryable"""
    task_id = start_flow(db, node("a"), node("b"), node("c"))
    ids = ids_by_name(db, task_id)
    adjust(db, ids["a"], retryable=False)
    adjust(db, ids["b"], retry_limit=0)
    adjust(db, ids["c"], retryable=None)
    first = ready(db, task_id)
    for name in "abc":
        retried(db, name)
    clock.advance(timedelta(days=1))

    assert first == {"a", "b", "c"}
    assert [name for name, row in readiness(db, task_id).items() if row["retryable"]] == ["b", "c"]
    assert ready(db, task_id) == taken(db, task_id) == {"c"}


def test_a_step_that_failed_for_good_is_not_retryable_though_tries_are_left(db: DB) -> None:
    """T-37, C-52"""
    task_id = start_flow(db, node("a"), node("b"))
    failed(db, "a")

    a = readiness(db, task_id)["a"]

    assert (a["attempts"], a["retry_limit"], a["retryable"], a["retry_eligible"]) == (1, 3, False, False)


def test_a_step_is_in_process_just_as_long_as_a_worker_holds_it(db: DB, clock: Clock) -> None:
    """T-38, T-54, C-55: a lost worker's is an error, with one try charged"""
    task_id = start_flow(db, node("a"))
    hold(db, "a")
    during = readiness(db, task_id)["a"]
    clock.advance(seconds(31))
    rescue(db)

    after = readiness(db, task_id)["a"]

    assert (during["in_process"], during["ready_for_execution"]) == (True, False)
    assert (after["in_process"], after["current_state"], after["attempts"]) == (False, "error", 1)


@pytest.mark.parametrize(("early", "is_ready"), [(MOMENT, False), (timedelta(0), True), (-MOMENT, True)])
def test_the_backoff_ends_to_the_millisecond(db: DB, clock: Clock, early: timedelta, is_ready: bool) -> None:
    """T-39, T-72: one millisecond before, at and after its end; the claim agrees"""
    task_id = start_flow(db, node("a"))
    retried(db, "a")
    clock.set(step(db, task_id, "a")["next_retry_at"] - early)

    assert ready(db, task_id) == taken(db, task_id) == ({"a"} if is_ready else set())
    assert readiness(db, task_id)["a"]["retry_eligible"] is is_ready


@pytest.mark.parametrize("early", [MOMENT, timedelta(0)])
def test_due_times_set_by_sql_are_followed(db: DB, clock: Clock, early: timedelta) -> None:
    """X-04, T-31"""
    task_id = start_flow(db, node("a"))
    set_due(db, ids_by_name(db, task_id)["a"], clock.now() + early)

    assert ready(db, task_id) == taken(db, task_id) == (set() if early else {"a"})


@pytest.mark.parametrize("outcome", [Snooze(seconds(5)), Release(), Continue({"page": 1})])
def test_a_step_that_was_handed_back_is_ready_when_a_claim_takes_it(db: DB, clock: Clock, outcome: Any) -> None:
    """T-31: nothing is charged"""
    task_id = start_flow(db, node("a"))
    give(db, "a", outcome)
    before = ready(db, task_id), taken(db, task_id)
    clock.advance(seconds(5))

    assert before[0] == before[1]
    assert ready(db, task_id) == taken(db, task_id) == {"a"}
    assert readiness(db, task_id)["a"]["attempts"] == 0


def test_what_no_claim_takes_is_not_ready(db: DB) -> None:
    """T-31: steps of a paused queue, parked ones, and those of a task that is over but not yet moved"""
    paused = start_flow(db, node("a", queue="slow"))
    parked = start_flow(db, node("nobody", queue="odd"))
    ended = start_flow(db, node("x", queue="third"), node("y", queue="third"))
    run(db, calls.pause_queue("slow"))
    claim(db, "other", queue="odd", kinds=["else"])
    wish_in_chunks(db, ended, "cancelled", 1)

    assert column(db, ids_by_name(db, parked)["nobody"], "parked_for") == "handler"
    assert column(db, ids_by_name(db, ended)["y"], "due_at") is not None
    assert [ready(db, task_id) for task_id in (paused, parked, ended)] == [set(), set(), set()]
    assert taken(db, paused, queue="slow") == taken(db, parked, queue="odd", kinds=["else"]) == set()
    assert taken(db, ended, queue="third") == set()
    run(db, calls.resume_queue("slow"))
    claim(db, "serves", queue="third")  # it meets what was left and cancels it
    assert ready(db, paused) == {"a"}


def test_what_is_not_ready_has_a_reason(db: DB, clock: Clock) -> None:
    """T-29, T-31: none where it is ready, held or over"""
    clock.freeze()
    later = (clock.now() + seconds(60)).isoformat()
    names = ["ready", "held", "done", "lost", "backoff", "snoozed", "parked"]
    elsewhere = {"unserved": "odd", "queue_paused": "slow", "no_move": "third"}
    waiting = [node("dependencies", "ready"), node("scheduled", due_at=later)]
    others = [node(name, queue=queue) for name, queue in elsewhere.items()]
    task_id = start_flow(db, *map(node, names), *waiting, *others)
    for name, outcome in {"done": Done(), "lost": Fail(), "backoff": Retry(), "snoozed": Snooze(seconds(9))}.items():
        give(db, name, outcome)
    hold(db, "held")
    claim(db, "other", queue="odd", kinds=["else"])
    run(db, calls.pause_queue("slow"))
    stuck = ids_by_name(db, task_id)["no_move"]
    db.execute("select holdfast.park_unmovable_due(array[%s]::bigint[], 'claimed', holdfast.clock())", [stuck])
    run(db, calls.park_steps([ids_by_name(db, task_id)["parked"]], "approval"))
    ended = start_flow(db, node("x"), node("task_over"))
    wish_in_chunks(db, ended, "cancelled", 1)

    reasons = {
        name: row["waiting_reason"] for row_of in (task_id, ended) for name, row in readiness(db, row_of).items()
    }
    db.execute(
        "update holdfast.steps set due_at = parked_due_at, parked_due_at = null, parked_for = null where id = %s",
        [stuck],
    )
    claim(db, "last", kinds=["task_over"])  # it meets what was left and cancels it

    settled = {"ready", "held", "done", "lost", "x"}
    assert reasons == {name: None if name in settled else name for name in reasons}
    assert len(reasons) == 14


def test_the_backoff_that_the_engine_stored_is_what_counts(db: DB, clock: Clock) -> None:
    """T-41, T-109, T-114, C-43, C-44: 1 and 2 s as configured, or as the handler asked"""
    task_id = start_flow(db, node("a"))
    stored = []
    for outcome in (Retry("x"), Retry("x"), Retry("x", after=seconds(30))):
        adjust(db, ids_by_name(db, task_id)["a"], retry_limit=9)
        settle(db, hold(db, "a"), outcome)
        a = step(db, task_id, "a")
        stored.append(a["backoff_request_seconds"])
        assert a["next_retry_at"] == a["last_attempted_at"] + seconds(float(a["backoff_request_seconds"]))
        clock.set(a["next_retry_at"])

    assert stored == [1, 2, 30]


def test_without_a_stored_backoff_it_is_two_to_the_attempts_and_at_most_thirty_seconds(db: DB) -> None:
    """T-41, T-44, C-43, C-58: set to NULL by SQL after failures 1 to 6"""
    task_id = start_flow(db, node("a"))
    step_id = ids_by_name(db, task_id)["a"]
    adjust(db, step_id, retry_limit=9)
    waits = []
    for _ in range(6):
        retried(db, "a")
        adjust(db, step_id, backoff_request_seconds=None)
        waits.append(step(db, task_id, "a")["backoff_request_seconds"])
        adjust(db, step_id, backoff_request_seconds=0)

    assert waits == [2, 4, 8, 16, 30, 30]


def test_a_done_step_frees_its_children_for_the_very_next_claim(db: DB) -> None:
    """T-26, T-29: a diamond goes {a}, {b, c}, {d}"""
    task_id = start_flow(db, node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))
    passes = []
    while names := ready(db, task_id):
        passes.append(names)
        assert taken(db, task_id) == names
        for name in sorted(names):
            give(db, name, Done())

    assert passes == [{"a"}, {"b", "c"}, {"d"}]
