"""A task that is over is done again from one of its steps: a new task takes over what need not be done again."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from flow.told import Told, diamond, mapped, moves_by_hand, nested, states, step_id
from holdfast import Holdfast, RunFailed
from holdfast.errors import NotFound, WrongState
from holdfast.flow.handle import FlowRun
from holdfast.testing import drain

pytestmark = pytest.mark.one_server

DB = Connection[Any]


@pytest.fixture
def told() -> Told:
    return Told()


def rows(db: DB, run: FlowRun) -> list[Any]:
    """Read a task and its steps whole."""
    task = db.execute("select to_jsonb(r) from holdfast.runs r where r.id = %s", [run.id])
    steps = db.execute("select to_jsonb(s) from holdfast.steps s where s.run_id = %s order by id", [run.id])
    return [*task, *steps]


def test_only_a_step_and_what_waits_for_it_is_done_again(hf: Holdfast, told: Told) -> None:
    """T-74, T-130, T-139: what is complete and does not wait for it is taken over with its result"""
    run = diamond(hf, told).start()
    drain(hf)
    assert told.taken() == ["join", "left", "right", "top"]

    again = run.retry_from("left")
    drain(hf)

    assert told.taken() == ["join", "left"]
    assert again.result(1)["join"] == "join2(left2(top1) right1(top1))"
    assert states(again) == {
        "top": "resolved_manually", "right": "resolved_manually", "left": "complete", "join": "complete"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("name", "done"), [("top", ["join", "left", "right", "top"]), ("right", ["join", "right"]), ("join", ["join"])]
)
def test_it_begins_anywhere(hf: Holdfast, told: Told, name: str, done: list[str]) -> None:
    """T-139: from the first step all, from the last that alone"""
    run = diamond(hf, told).start()
    drain(hf)
    told.taken()

    again = run.retry_from(name)
    drain(hf)

    assert told.taken() == done
    assert again.status().state == "complete"


def test_the_old_task_stays_as_it_was_and_the_new_one_names_it(hf: Holdfast, db: DB, told: Told) -> None:
    """T-87: its history is not written over"""
    run = diamond(hf, told).options(tags=["x"]).start()
    drain(hf)
    before = rows(db, run)

    again = run.retry_from("join", "the printer was out of paper")
    drain(hf)

    assert rows(db, run) == before
    kept = """select of_run, input -> 'tags', input -> 'retried_from', input ->> 'reason'
                from holdfast.runs where id = %s"""
    old_step = int(step_id(run, "join"))
    assert db.execute(kept, [again.id]).fetchone() == (run.id, ["x"], old_step, "the printer was out of paper")


def test_it_is_journaled_with_actor_and_reason(hf: Holdfast, db: DB, told: Told) -> None:
    """T-87, T-141: also where nothing is taken over"""
    run = diamond(hf, told).start()
    drain(hf)

    partly, whole = run.retry_from("join", "no paper"), run.retry_from("top", "once more")

    taken = [(name, "resolved", "user", "no paper") for name in ("top", "left", "right")]
    assert sorted(moves_by_hand(db, partly)) == sorted([("the task", "created", "user", "no paper"), *taken])
    assert moves_by_hand(db, whole) == [("the task", "created", "user", "once more")]
    drain(hf)


def test_a_failed_task_goes_on_from_its_failure_or_from_elsewhere(hf: Holdfast, told: Told) -> None:
    """T-133: what failed beside the chosen step is done too: the new task is whole"""
    told.failing = {"left", "right"}
    run = diamond(hf, told).start()
    drain(hf)
    with pytest.raises(RunFailed):
        run.result(1)
    told.taken()
    told.failing = set()

    again = run.retry_from("left")
    drain(hf)

    assert told.taken() == ["join", "left", "right"]
    assert again.status().state == "complete"


def test_a_cancelled_task_is_taken_up_again(hf: Holdfast, told: Told) -> None:
    """T-133: its cancelled steps are planned anew"""
    run = diamond(hf, told).start()
    run.cancel()

    again = run.retry_from("top")
    drain(hf)

    assert told.taken() == ["join", "left", "right", "top"]
    assert (run.status().state, again.status().state) == ("cancelled", "complete")


def test_a_new_task_may_be_done_again_in_its_turn(hf: Holdfast, told: Told) -> None:
    """T-130: what was taken over is taken over once more"""
    run = diamond(hf, told).start()
    drain(hf)
    second = run.retry_from("left")
    drain(hf)
    told.taken()

    third = second.retry_from("right")
    drain(hf)

    assert told.taken() == ["join", "right"]
    assert third.result_of("join") == "join3(left2(top1) right2(top1))"


def test_from_inside_a_map_only_that_item_and_the_join_are_done_again(hf: Holdfast, told: Told) -> None:
    """T-130: the others keep what they gave"""
    run = mapped(hf, told).start()
    drain(hf)
    told.taken()

    again = run.retry_from("ship[1]")
    drain(hf)

    assert told.taken() == ["report", "ship 1"]
    assert again.result_of("report") == ["ship 01(items1.0)", "ship 12(items1.1)", "ship 21(items1.2)"]


def test_from_a_failed_item_of_a_map_the_map_is_completed(hf: Holdfast, told: Told) -> None:
    """T-133: in the task that failed the join never came"""
    told.failing = {"ship 2"}
    run = mapped(hf, told).start()
    drain(hf)
    assert told.taken() == ["items", "ship 0", "ship 1", "ship 2"]
    told.failing = set()

    again = run.retry_from("ship[2]")
    drain(hf)

    assert told.taken() == ["report", "ship 2"]
    assert again.result_of("ship") == ["ship 01(items1.0)", "ship 11(items1.1)", "ship 22(items1.2)"]


@pytest.mark.parametrize("name", ["items", "ship"])
def test_from_a_map_or_before_it_its_items_are_planned_anew(hf: Holdfast, told: Told, name: str) -> None:
    """T-22: each item once, whatever there was before"""
    run = mapped(hf, told).start()
    drain(hf)
    told.taken()

    again = run.retry_from(name)
    drain(hf)

    expected = ["report", "ship 0", "ship 1", "ship 2"]
    assert told.taken() == (["items", *expected] if name == "items" else expected)
    assert list(states(again)) == list(states(run))
    assert again.status().state == "complete"


def test_from_after_a_map_its_items_are_taken_over(hf: Holdfast, told: Told) -> None:
    """T-53: the join reads what they gave"""
    run = mapped(hf, told).start()
    drain(hf)
    told.taken()

    again = run.retry_from("report")
    drain(hf)

    assert told.taken() == ["report"]
    assert again.result_of("report") == run.result_of("report")


@pytest.mark.parametrize(
    ("name", "done", "gave"),
    [
        ("bill.draw", ["close", "draw", "send"], "close2(send2(draw2(order1)))"),
        ("bill.send", ["close", "send"], "close2(send2(draw1(order1)))"),
        ("bill", ["bill", "close", "draw", "send"], "close2(send2(draw2(order1)))"),
        ("close", ["close"], "close2(send1(draw1(order1)))"),
    ],
)
def test_from_inside_a_sub_flow_what_waits_for_the_step_within_and_without(
    hf: Holdfast, told: Told, name: str, done: list[str], gave: str
) -> None:
    """T-130: the sub-flow's own context is kept, unless it is begun again"""
    run = nested(hf, told).start()
    drain(hf)
    told.taken()

    again = run.retry_from(name)
    drain(hf)

    assert told.taken() == done
    assert again.result_of("close") == gave


def test_a_task_that_is_not_over_is_refused(hf: Holdfast, db: DB, told: Told) -> None:
    """T-139: two tasks would do the same"""
    run = diamond(hf, told).start()

    with pytest.raises(WrongState, match=r"is pending"):
        run.retry_from("top")

    assert db.execute("select count(*) from holdfast.runs").fetchone() == (1,)
    run.cancel()


def test_a_step_that_is_not_there_is_refused(hf: Holdfast, told: Told) -> None:
    """T-17: by its name, and by its number"""
    run = diamond(hf, told).start()
    drain(hf)

    with pytest.raises(NotFound, match="bottom"):
        run.retry_from("bottom")
