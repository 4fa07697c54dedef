"""What people do to tasks and steps: reset, resolve, cancel; each in every state, and each in the journal."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from flow.told import Told, diamond, mapped, moves_by_hand, nested, states, step_id
from holdfast import Holdfast
from holdfast.errors import WrongState
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import Done, Fail, Json, Retry
from holdfast.testing import drain, events, journal
from kernel.steps import claim, claim_one, settle

DB = Connection[Any]
ROW = "select s.state, s.failures, s.due_at <= holdfast.clock(), s.error is null from holdfast.steps s where s.id = %s"


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_reset_step_runs_again_with_a_fresh_budget_and_its_task_leaves_error(
    hf: Holdfast, db: DB, told: Told
) -> None:
    """T-133, T-87, C-59: error to pending, attempts 0, due at once; the others are not run again"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    assert run.look().state == "error"
    told.taken()
    told.failing = set()

    make(db, calls.retry(step_id(run, "left"), "mended"))

    assert db.execute(ROW, [step_id(run, "left")]).fetchone() == ("pending", 0, True, False)
    assert run.look().state == "pending"
    drain(hf)
    assert told.taken() == ["join", "left"]
    assert run.wait(1)["join"] == "join1(left2(top1) right1(top1))"
    assert events(db, run=run.id) == [
        "created", "started", "blocked", "reopened", "started", "all_succeeded"
    ]  # fmt: skip
    assert moves_by_hand(db, run)[1:] == [
        ("the task", "reopened", "user", "mended"), ("left", "reopened", "user", "mended")
    ]  # fmt: skip


def test_a_reset_task_runs_all_its_failed_steps_again_and_no_other(hf: Holdfast, told: Told) -> None:
    """T-133, T-139, C-59"""
    told.failing = {"left", "right"}
    run = diamond(hf, told).start()
    drain(hf)
    told.taken()
    told.failing = set()

    run.retry("mended")
    drain(hf)

    assert told.taken() == ["join", "left", "right"]
    assert run.look().state == "complete"


def test_a_resolved_step_lets_those_that_wait_for_it_go_on_with_the_result_given(
    hf: Holdfast, db: DB, told: Told
) -> None:
    """T-53, T-133: as if it had given it"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    told.taken()

    run.resolve("left", "done by phone", result="by phone")
    drain(hf)

    assert told.taken() == ["join"]
    assert run.wait(1)["join"] == "join1(by phone right1(top1))"
    assert states(run)["left"] == "resolved_manually"
    assert ("left", "resolved", "user", "done by phone") in moves_by_hand(db, run)


def test_a_resolved_step_without_a_result_gives_none(hf: Holdfast, told: Told) -> None:
    """T-53: who waits for it has to take None; one that does not fails for good, and says why"""
    flow = hf.flow("plain")

    @flow.step
    def first() -> str:
        return told.run("first")

    @flow.step(after=first)
    def second(first: str | None) -> str:
        return told.run("second") + str(first)

    told.failing = {"first"}
    run = flow.start()
    drain(hf)

    run.resolve("first", "never mind")
    drain(hf)

    assert run.result("second") == "second1None"


def test_a_step_that_still_waits_may_be_resolved_before_it_is_done(hf: Holdfast, told: Told) -> None:
    """T-53: its parents come later, and it stays as it is"""
    run = diamond(hf, told).start()

    run.resolve("left", "not needed", result="none needed")
    drain(hf)

    assert told.taken() == ["join", "right", "top"]
    assert run.wait(1)["join"] == "join1(none needed right1(top1))"


def test_a_map_may_be_resolved_with_a_list_of_ones_own(hf: Holdfast, told: Told) -> None:
    """T-53: what a person gave counts, not what its items did"""
    told.failing = {"ship 2"}
    run = mapped(hf, told).start()
    drain(hf)

    run.resolve("ship", "counted by hand", result=["a", "b"])
    drain(hf)

    assert (run.result("ship"), run.result("report")) == (["a", "b"], ["a", "b"])
    assert run.look().state == "error"  # an item failed, and nobody said anything of that


def test_a_map_that_is_resolved_without_a_list_gives_what_its_items_gave(hf: Holdfast, told: Told) -> None:
    """T-53: in the place of what failed stands nothing"""
    flow = hf.flow("gaps")

    @flow.step
    def items() -> list[int]:
        return [0, 1]

    @flow.step(each=items)
    def ship(item: int) -> str:
        return told.run(f"ship {item}")

    @flow.step(after=ship)
    def report(ship: list[str | None]) -> list[str | None]:
        return ship

    told.failing = {"ship 1"}
    run = flow.start()
    drain(hf)

    run.resolve("ship", "one is enough")
    drain(hf)

    assert run.result("report") == ["ship 01", None]


def test_a_failed_item_resolved_lets_its_map_end(hf: Holdfast, told: Told) -> None:
    """T-53: the join has what was given for it, in its place"""
    told.failing = {"ship 1"}
    run = mapped(hf, told).start()
    drain(hf)

    run.resolve("ship[1]", "by hand", result="by hand")
    drain(hf)

    assert run.wait(1)["report"] == ["ship 01(items1.0)", "by hand", "ship 21(items1.2)"]


def test_a_failed_step_inside_a_sub_flow_is_reset(hf: Holdfast, db: DB, told: Told) -> None:
    """T-133: the sub-flow goes on where it was"""
    told.failing = {"send"}
    run = nested(hf, told).start()
    drain(hf)
    assert (states(run)["bill"], states(run)["bill.send"], run.look().state) == ("pending", "error", "error")
    told.taken()
    told.failing = set()

    make(db, calls.retry(step_id(run, "bill.send"), "mended"))
    drain(hf)

    assert told.taken() == ["close", "send"]
    assert run.look().state == "complete"


# Every state of a step and of a task, and what a person may do to it. The wish leads to a state, or is refused.
WISHES = {"retry": calls.retry, "resolve": calls.resolve, "cancel": calls.cancel}
STEPS = {
    "due": {"retry": None, "resolve": "resolved_manually", "cancel": "cancelled"},
    "waiting": {"retry": None, "resolve": "resolved_manually", "cancel": "cancelled"},
    "in_progress": {"retry": None, "resolve": None, "cancel": "cancelled"},
    "backing off": {"retry": None, "resolve": "resolved_manually", "cancel": "cancelled"},
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
        with pytest.raises(WrongState, match=f"step {step} is"):
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
        with pytest.raises(WrongState, match=f"run {task} is {state}"):
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


def test_a_cancelled_task_takes_all_its_open_steps_with_it_and_leaves_what_is_complete(hf: Holdfast, told: Told) -> None:
    """T-68, T-87: done is done"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    run.retry("it is open again")

    run.cancel("no longer wanted")

    assert states(run) == {"top": "complete", "left": "cancelled", "right": "complete", "join": "cancelled"}
    assert run.look().state == "cancelled"
    assert drain(hf) == 0
