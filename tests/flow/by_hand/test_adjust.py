"""What may be changed by SQL while a task is under way, what is refused, and the safe transition."""

from __future__ import annotations

from itertools import product
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from flow.asking import adjust, done, exhausted, failed, hold, readiness, ready, retried, rows, step
from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from holdfast.models import Fail, Retry
from holdfast.testing import Clock, events
from kernel.steps import ids_by_name, node, notes, seconds, settle, start_flow, value
from security.conftest import Login, login

pytestmark = pytest.mark.one_server

__all__ = ["login"]
DB = Connection[Any]
STATES = ["pending", "in_progress", "complete", "error", "cancelled", "resolved_manually"]
BY_HAND = {
    ("pending", "cancelled"),
    ("pending", "resolved_manually"),
    ("in_progress", "cancelled"),
    ("error", "pending"),
    ("error", "cancelled"),
    ("error", "resolved_manually"),
}


@pytest.fixture(autouse=True)
def still(clock: Clock) -> None:
    clock.freeze()


@pytest.fixture
def task_id(db: DB) -> UUID:
    return start_flow(db, node("a"), node("b", "a"))


@pytest.fixture
def a(db: DB, task_id: UUID) -> int:
    return ids_by_name(db, task_id)["a"]


def state_of(db: DB, task_id: UUID) -> str:
    state: str = value(db, "select state from flow.tasks where task_id = %s", task_id)
    return state


def test_a_limit_that_is_raised_by_sql_is_honoured_by_the_next_failure(db: DB, a: int, task_id: UUID) -> None:
    """T-24, T-76: also while a worker holds the step"""
    held = hold(db, "a")
    adjust(db, a, retry_limit=1)

    settle(db, held, Retry("x"))

    assert (step(db, task_id, "a")["retry_limit"], events(db, step=a)) == (1, ["claimed", "failed"])
    assert state_of(db, task_id) == "error"


def test_a_step_out_of_tries_waits_again_when_it_gets_more_and_its_task_goes_on(
    db: DB, a: int, task_id: UUID, clock: Clock
) -> None:
    """T-24, T-36: its attempts stay counted"""
    exhausted(db, "a")
    before = state_of(db, task_id)
    adjust(db, a, retry_limit=5)
    waiting = readiness(db, task_id)["a"]
    clock.set(waiting["next_retry_at"])

    assert (before, state_of(db, task_id)) == ("error", "pending")
    assert (waiting["attempts"], waiting["retry_limit"], waiting["backoff_request_seconds"]) == (3, 5, 4)
    assert ready(db, task_id) == {"a"}
    done(db, "a", "b")
    assert state_of(db, task_id) == "complete"


@pytest.mark.parametrize("change", [{"retry_limit": 1}, {"retry_limit": 0}, {"retryable": False}])
def test_a_step_that_may_not_be_tried_again_is_given_up_at_once(
    db: DB, a: int, task_id: UUID, change: dict[str, Any]
) -> None:
    """T-36, T-37: and its task with it, when nothing else is under way"""
    retried(db, "a")

    adjust(db, a, **change)

    assert (ready(db, task_id), state_of(db, task_id)) == (set(), "error")
    assert step(db, task_id, "a")["retryable"] == ("retryable" not in change)
    assert step(db, task_id, "a")["next_retry_at"] is None


def test_a_step_that_failed_for_good_is_tried_again_when_it_is_made_retryable(db: DB, a: int, task_id: UUID) -> None:
    """T-37: more tries alone do not do it: it did not lack any"""
    failed(db, "a")
    adjust(db, a, retry_limit=9)
    more_tries = state_of(db, task_id)
    adjust(db, a, retryable=True)

    assert (more_tries, state_of(db, task_id)) == ("error", "pending")
    assert step(db, task_id, "a")["next_retry_at"] is not None


def test_whether_a_step_is_retryable_is_apart_from_its_limit(db: DB, a: int, task_id: UUID) -> None:
    """T-37, T-43: one may be set without the other, and a step of one try is retryable"""
    seen = []
    changes: list[dict[str, Any]] = [
        {"retryable": False},
        {"retry_limit": 1},
        {"retryable": True},
        {"retryable": False},
        {"retry_limit": 3},
        {"retryable": True},
    ]
    for change in changes:
        adjust(db, a, **change)
        row = step(db, task_id, "a")
        seen.append((row["retry_limit"], row["retryable"]))

    assert seen == [(3, False), (1, False), (1, True), (1, False), (3, False), (3, True)]
    assert value(db, "select policy from holdfast.steps where id = %s", a) == "flow.step"


def test_a_backoff_set_by_hand_counts_from_the_last_attempt(db: DB, a: int, task_id: UUID, clock: Clock) -> None:
    """T-42, T-77: 100 s later and not earlier, whatever time has passed"""
    retried(db, "a")
    clock.advance(seconds(60))
    adjust(db, a, backoff_request_seconds=100)
    clock.advance(seconds(39.999))
    before = ready(db, task_id)
    clock.advance(seconds(0.001))

    assert (before, ready(db, task_id)) == (set(), {"a"})
    assert step(db, task_id, "a")["backoff_request_seconds"] == 100


def test_the_other_laws_of_the_steps_policy_stay(db: DB, a: int, task_id: UUID) -> None:
    """T-24: only the budget is another; a policy that changes later is followed"""
    run(db, calls.define_policy("slow", tries=2, waits=[seconds(7)], jitter=0))
    other = start_flow(db, node("z", policy="slow"))
    adjust(db, ids_by_name(db, other)["z"], retry_limit=4)
    retried(db, "z")

    assert step(db, other, "z")["backoff_request_seconds"] == 7
    assert rows(db, "select policy, tries from holdfast.policies where policy like 'slow%%' order by 1") == [
        {"policy": "slow", "tries": 2},
        {"policy": "slow with 4 tries", "tries": 4},
    ]


def test_a_note_tells_who_set_what(db: DB, a: int, task_id: UUID) -> None:
    """T-87"""
    adjust(db, a, retry_limit=7)

    login = value(db, "select session_user::text")
    (payload,) = [row["payload"] for row in rows(db, "select payload from holdfast.notes where step_id = %s", a)]
    assert notes(db, a) == [("info", f"adjusted by {login}")]
    assert payload == {"retry_limit": 7, "actor": login}


@pytest.mark.parametrize(
    ("change", "code"),
    [({"backoff_request_seconds": 5}, "RN010"), ({"retry_limit": -1}, "RN005"), ({"state": "complete"}, "RN005")],
)
def test_a_change_that_makes_no_sense_changes_nothing(db: DB, a: int, change: dict[str, Any], code: str) -> None:
    """T-141: a backoff of what has not failed, a limit below none, a state"""
    with pytest.raises(psycopg.Error) as refused:
        adjust(db, a, **change)

    assert refused.value.sqlstate == code
    assert refused.value.diag.message_hint
    assert notes(db, a) == []


@pytest.mark.parametrize("end", ["done", "cancelled"])
def test_a_step_that_is_over_cannot_be_adjusted(db: DB, a: int, task_id: UUID, end: str) -> None:
    """T-142: nor can a failed one of a task that was cancelled"""
    if end == "done":
        done(db, "a")
    else:
        failed(db, "a")
        run(db, calls.resolve(str(task_id)))

    with pytest.raises(psycopg.Error) as refused:
        adjust(db, a, retryable=end == "cancelled")

    assert refused.value.sqlstate == "RN010"


@pytest.mark.parametrize("group", ["hf_producer", "hf_worker", "hf_reader"])
def test_only_operators_adjust_and_move(db: DB, a: int, login: Login, group: str) -> None:
    """X-15"""
    other = login(group)

    for statement in ("update flow.steps set retry_limit = 5", f"select flow.safe_transition_to({a}, 'cancelled')"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            other.execute(statement)
    assert notes(db, a) == []


def test_an_operator_adjusts_and_moves_what_is_of_its_tenants(db: DB, a: int, task_id: UUID, login: Login) -> None:
    """X-14, X-15"""
    stranger, own = login("hf_operator", tenants=["other"]), login("hf_operator", tenants=["default"])

    adjust(stranger, a, retry_limit=5)  # it sees no such row
    for statement in (
        f"select flow.adjust_step({a}, 5)",
        f"select flow.safe_transition_to({a}, 'cancelled')",
        f"select flow.safe_transition_to('{task_id}', 'cancelled')",
    ):
        with pytest.raises(psycopg.Error) as refused:
            stranger.execute(statement)
        assert refused.value.sqlstate == "RN004"
    adjust(own, a, retry_limit=6)
    assert step(db, task_id, "a")["retry_limit"] == 6


@pytest.mark.parametrize("write", ["insert", "update", "delete"])
@pytest.mark.parametrize("view", ["tasks", "steps", "task_transitions", "step_transitions"])
def test_other_writes_are_refused_with_what_to_call_instead(db: DB, task_id: UUID, view: str, write: str) -> None:
    """T-141: states and transitions are not written by anybody"""
    done(db, "a")
    changed = {"tasks": "state = 'complete'", "steps": "state = 'complete'"}.get(view, "to_state = 'complete'")
    statement = {
        "insert": f"insert into flow.{view} (tenant) values ('x')",
        "update": f"update flow.{view} set {changed} where tenant = 'default'",
        "delete": f"delete from flow.{view}",
    }[write]

    with pytest.raises(psycopg.Error) as refused:
        db.execute(statement)

    assert refused.value.sqlstate == ("RN008" if view.endswith("transitions") else "RN005")
    assert refused.value.diag.message_hint


def test_a_step_that_waits_for_its_retry_is_reset_to_its_first_try(db: DB, a: int, task_id: UUID) -> None:
    """T-133, C-59: attempts 0, no backoff, ready now; who did it is journaled"""
    for _ in range(2):
        retried(db, "a")
        adjust(db, a, backoff_request_seconds=100)
        assert value(db, "select flow.safe_transition_to(%s, 'pending', 'the shop is back')", a) is True

    row = step(db, task_id, "a")
    (last,) = rows(db, "select metadata from flow.step_transitions where step_id = %s and most_recent", a)
    assert (row["state"], row["attempts"], row["backoff_request_seconds"]) == ("pending", 0, None)
    assert last["metadata"]["reason"] == "the shop is back"
    assert ready(db, task_id) == {"a"}
    done(db, "a", "b")
    assert state_of(db, task_id) == "complete"


@pytest.mark.parametrize("kind", [UUID, str])
def test_a_task_is_moved_as_a_step_is(db: DB, task_id: UUID, kind: Any) -> None:
    """T-81, T-141: by its id, typed or as text; done twice it is a no-op, and only workers complete"""
    subject = task_id if kind is UUID else str(task_id)
    move = "select flow.safe_transition_to(%s, %s, 'because')"
    failed(db, "a")
    moved = [value(db, move, subject, "pending") for _ in range(2)]
    with pytest.raises(errors.WrongState), translated():
        db.execute(move, [subject, "complete"])
    moved += [value(db, move, subject, "cancelled") for _ in range(2)]

    assert moved == [True, False, True, False]
    with pytest.raises(errors.WrongState), translated():
        db.execute(move, [subject, "pending"])
    with pytest.raises(errors.NotFound), translated():
        db.execute(move, ["00000000-0000-7000-8000-000000000000", "pending"])


def bring(db: DB, task_id: UUID, state: str) -> int:
    """Bring step a to a state; an error is one for good."""
    step_id = ids_by_name(db, task_id)["a"]
    match state:
        case "in_progress":
            hold(db, "a")
        case "complete":
            done(db, "a")
        case "error":
            settle(db, hold(db, "a"), Fail("x"))
        case "cancelled":
            run(db, calls.cancel(str(step_id)))
        case "resolved_manually":
            run(db, calls.resolve(str(step_id)))
    return step_id


@pytest.mark.parametrize(("before", "after"), list(product(STATES, STATES)))
def test_a_safe_transition_moves_refuses_or_finds_it_there(db: DB, before: str, after: str) -> None:
    """T-52, T-133, T-141, C-59: each pair; done twice it is a no-op, and only a worker completes"""
    task_id = start_flow(db, node("a"), node("other"))
    step_id = bring(db, task_id, before)
    move = "select flow.safe_transition_to(%s, %s, 'because')"

    if before == after:
        assert value(db, move, step_id, after) is False
    elif (before, after) in BY_HAND:
        assert value(db, move, step_id, after) is True
        assert value(db, move, step_id, after) is False
        assert step(db, task_id, "a")["state"] == after
        assert step(db, task_id, "a")["attempts"] == 0 or after != "pending"
    else:
        with pytest.raises(errors.WrongState), translated():
            db.execute(move, [step_id, after])
        assert step(db, task_id, "a")["state"] == before
