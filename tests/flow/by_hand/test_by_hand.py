"""What people do to tasks and steps, and what becomes of the others then: reset, resolve, cancel."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from flow.told import Told, diamond, mapped, moves_by_hand, nested, states, step_id
from holdfast import Holdfast, RunFailed
from holdfast.errors import WrongState
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.testing import drain, events

pytestmark = pytest.mark.one_server

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
    assert run.status().state == "error"
    told.taken()
    told.failing = set()

    make(db, calls.retry(step_id(run, "left"), "mended"))

    assert db.execute(ROW, [step_id(run, "left")]).fetchone() == ("pending", 0, True, False)
    assert run.status().state == "pending"
    drain(hf)
    assert told.taken() == ["join", "left"]
    assert run.result(1)["join"] == "join1(left2(top1) right1(top1))"
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
    assert run.status().state == "complete"


def test_a_resolved_step_lets_those_that_wait_for_it_go_on_with_the_result_given(
    hf: Holdfast, db: DB, told: Told
) -> None:
    """T-53, T-133: as if it had given it"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    told.taken()

    run.resolve("done by phone", step="left", result="by phone")
    drain(hf)

    assert told.taken() == ["join"]
    assert run.result(1)["join"] == "join1(by phone right1(top1))"
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

    run.resolve("never mind", step="first")
    drain(hf)

    assert run.result_of("second") == "second1None"


def test_a_step_that_still_waits_may_be_resolved_before_it_is_done(hf: Holdfast, told: Told) -> None:
    """T-53: its parents come later, and it stays as it is"""
    run = diamond(hf, told).start()

    run.resolve("not needed", step="left", result="none needed")
    drain(hf)

    assert told.taken() == ["join", "right", "top"]
    assert run.result(1)["join"] == "join1(none needed right1(top1))"


def test_a_map_may_be_resolved_with_a_list_of_ones_own(hf: Holdfast, told: Told) -> None:
    """T-53: what a person gave counts, not what its items did"""
    told.failing = {"ship 2"}
    run = mapped(hf, told).start()
    drain(hf)

    run.resolve("counted by hand", step="ship", result=["a", "b"])
    drain(hf)

    assert (run.result_of("ship"), run.result_of("report")) == (["a", "b"], ["a", "b"])
    assert run.status().state == "error"  # an item failed, and nobody said anything of that


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

    run.resolve("one is enough", step="ship")
    drain(hf)

    assert run.result_of("report") == ["ship 01", None]


def test_a_failed_item_resolved_lets_its_map_end(hf: Holdfast, told: Told) -> None:
    """T-53: the join has what was given for it, in its place"""
    told.failing = {"ship 1"}
    run = mapped(hf, told).start()
    drain(hf)

    run.resolve("by hand", step="ship[1]", result="by hand")
    drain(hf)

    assert run.result(1)["report"] == ["ship 01(items1.0)", "by hand", "ship 21(items1.2)"]


def test_a_failed_step_inside_a_sub_flow_is_reset(hf: Holdfast, db: DB, told: Told) -> None:
    """T-133: the sub-flow goes on where it was"""
    told.failing = {"send"}
    run = nested(hf, told).start()
    drain(hf)
    assert (states(run)["bill"], states(run)["bill.send"], run.status().state) == ("pending", "error", "error")
    told.taken()
    told.failing = set()

    make(db, calls.retry(step_id(run, "bill.send"), "mended"))
    drain(hf)

    assert told.taken() == ["close", "send"]
    assert run.status().state == "complete"


def test_a_cancelled_task_takes_all_its_open_steps_with_it_and_leaves_what_is_complete(
    hf: Holdfast, told: Told
) -> None:
    """T-68, T-87: done is done"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    run.retry("it is open again")

    run.cancel("no longer wanted")

    assert states(run) == {"top": "complete", "left": "cancelled", "right": "complete", "join": "cancelled"}
    assert run.status().state == "cancelled"
    assert drain(hf) == 0


def test_a_task_that_a_cancelled_step_ended_says_so_and_what_can_be_done(hf: Holdfast, db: DB, told: Told) -> None:
    """C-59: a cancelled step is final, so there is nothing to retry; it is done again in a new task."""
    run = diamond(hf, told).start()
    run.cancel("not wanted", step="left")
    drain(hf)
    before = events(db)

    with pytest.raises(RunFailed) as ended:
        run.result(1)
    with pytest.raises(WrongState) as refused:
        run.retry("mended")

    assert "step left was cancelled" in str(ended.value)
    assert f"holdfast flow retry {run.id} --from left" in str(ended.value)
    assert str(run.id) in str(refused.value)
    assert "left" in str(refused.value)
    assert events(db) == before
    again = run.retry_from("left")
    drain(hf)
    assert again.result(1)["join"] == "join1(left1(top1) right1(top1))"


def test_a_retry_of_a_task_with_failed_and_cancelled_steps_retries_the_failed(hf: Holdfast, told: Told) -> None:
    told.failing = {"right"}
    run = diamond(hf, told).start()
    run.cancel("not wanted", step="left")
    drain(hf)
    with pytest.raises(RunFailed, match=r"right: .*left .*cancelled"):
        run.result(1)
    told.failing = set()

    run.retry("mended")
    drain(hf)

    assert states(run) == {"top": "complete", "left": "cancelled", "right": "complete", "join": "pending"}
    with pytest.raises(RunFailed, match=r"left .*cancelled"):
        run.result(1)
