"""Every state of a task and of a step, and what a person may wish for there: done and journaled, or refused."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast.errors import WrongState
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import Done, Fail, Json, Retry
from holdfast.testing import events, journal
from kernel.steps import claim, claim_one, settle

pytestmark = pytest.mark.one_server

DB = Connection[Any]
# Where a wish leads to; None: it is refused.
WISHES = {"retry": calls.retry, "resolve": calls.resolve, "cancel": calls.cancel}
STEPS = {
    "due": {"retry": None, "resolve": "resolved_manually", "cancel": "cancelled"},
    "waiting": {"retry": None, "resolve": "resolved_manually", "cancel": "cancelled"},
    "in_progress": {"retry": None, "resolve": None, "cancel": "cancelled"},
    "backing off": {"retry": "pending", "resolve": "resolved_manually", "cancel": "cancelled"},
    "error": {"retry": "pending", "resolve": "resolved_manually", "cancel": "cancelled"},
    "complete": {"retry": None, "resolve": None, "cancel": None},
    "cancelled": {"retry": None, "resolve": None, "cancel": None},
    "resolved_manually": {"retry": None, "resolve": None, "cancel": None},
}
TASKS = {
    "pending": {"retry": None, "resolve": None, "cancel": "cancelled"},
    "in_progress": {"retry": None, "resolve": None, "cancel": "cancelled"},
    "complete": {"retry": None, "resolve": None, "cancel": None},
    "error": {"retry": "pending", "resolve": "resolved_manually", "cancel": None},
    "cancelled": {"retry": None, "resolve": None, "cancel": None},
    "resolved_manually": {"retry": None, "resolve": None, "cancel": None},
}


def flat(table: dict[str, dict[str, str | None]]) -> list[tuple[str, str, str | None]]:
    return [(state, wish, leads) for state, wishes in table.items() for wish, leads in wishes.items()]


def brought_to(db: DB, state: str) -> tuple[str, str]:
    """Start a task of a step and one that waits for it, and bring it there: the number of the step, the task's id."""
    plan = [{"name": "a", "kind": "plain.a"}, {"name": "b", "kind": "plain.b", "after": ["a"]}]
    (task_id,) = make(db, flow_calls.initialize_task("plain", Json(json.dumps(plan)), Json("{}")))
    query = "select n.step_id from holdfast.run_steps n where n.run_id = %s order by n.step_id"
    first, second = (str(number) for (number,) in db.execute(query, [task_id]))
    outcome = {"backing off": Retry(), "error": Fail(), "complete": Done()}.get(state)
    match state:
        case "waiting":
            return second, str(task_id)
        case "in_progress":
            claim_one(db)
        case "cancelled" | "resolved_manually":
            make(db, {"cancelled": calls.cancel, "resolved_manually": calls.resolve}[state](first))
        case _ if outcome is not None:
            settle(db, claim_one(db), outcome)
    return first, str(task_id)


@pytest.mark.parametrize(("state", "wish", "leads"), flat(STEPS))
def test_a_persons_wish_for_a_step_in_any_state(db: DB, state: str, wish: str, leads: str | None) -> None:
    """T-52, T-87, T-133, T-141, C-59: done and journaled with who and why, or refused and nothing moves"""
    step, _ = brought_to(db, state)
    before = events(db)

    if leads is None:
        with pytest.raises(WrongState, match=str(step)):
            make(db, WISHES[wish](step, "a person said so"))
        assert events(db) == before
        return

    assert make(db, WISHES[wish](step, "a person said so")) == [leads]
    told = next(entry for entry in journal(db, step=int(step)) if entry.reason == "a person said so")
    assert (told.to_state, told.actor_kind, told.actor) == (leads, "user", db.info.user)


@pytest.mark.parametrize(("state", "wish", "leads"), flat(TASKS))
def test_a_persons_wish_for_a_task_in_any_state(db: DB, state: str, wish: str, leads: str | None) -> None:
    """T-68, T-87, T-133, C-59: complete and cancelled are for good, error is not"""
    task = task_in(db, state)
    before = events(db)

    if leads is None:
        with pytest.raises(WrongState, match=f"{task} is {state}"):
            make(db, WISHES[wish](task, "a person said so"))
        assert events(db) == before
        return

    assert make(db, WISHES[wish](task, "a person said so")) == [leads]
    told = next(entry for entry in journal(db, run=UUID(task)) if entry.reason == "a person said so")
    assert (told.to_state, told.actor_kind, told.actor) == (leads, "user", db.info.user)


def task_in(db: DB, state: str) -> str:
    """Bring a task there, and give its id."""
    match state:
        case "pending":
            return brought_to(db, "due")[1]
        case "complete":
            task = brought_to(db, "complete")[1]
            settle(db, claim_one(db), Done())
        case "cancelled":
            task = brought_to(db, "due")[1]
            make(db, calls.cancel(task))
        case "resolved_manually":
            task = brought_to(db, "error")[1]
            make(db, calls.resolve(task))
        case other:
            task = brought_to(db, other)[1]
    return task


def test_a_cancelled_step_is_not_settled_by_who_held_it_and_what_waits_for_it_never_comes(db: DB) -> None:
    """T-54, T-87: the lease is gone with it; its task ends in error"""
    step, task = brought_to(db, "due")
    held = claim_one(db)

    make(db, calls.cancel(step, "a mistake"))

    assert settle(db, held, Done()) == []
    assert claim(db, batch=5) == []
    assert [entry.event for entry in journal(db, step=int(step))] == ["claimed", "cancelled"]
    assert journal(db, run=UUID(task))[-1].event == "blocked"
