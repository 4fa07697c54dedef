"""What must not be possible: retry loops around a task, states written past the engine, processed steps done again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from flow.told import Told, diamond, states, step_id
from holdfast import Ctx, Holdfast
from holdfast.errors import BY_SQLSTATE, IllegalTransition, WrongState
from holdfast.flow import calls as flow_calls
from holdfast.kernel import calls
from holdfast.kernel.db import run as make
from holdfast.models import Done, Json
from holdfast.testing import Clock, drain, events, journal
from kernel.steps import claim, claim_one, settle

pytestmark = pytest.mark.one_server

DB = Connection[Any]
FLOW = Path(__file__).parents[1]
PLAN, EMPTY = Json('[{"name": "a", "kind": "plain.a"}]'), Json("{}")


@pytest.fixture
def told() -> Told:
    return Told()


def test_a_step_that_fails_twice_is_run_three_times_and_the_one_before_it_once(
    hf: Holdfast, clock: Clock, db: DB
) -> None:
    """T-74, T-130, T-139, T-73: it is the step that is tried again, each time with a number of its own"""
    flow = hf.flow("order")
    done: list[tuple[str, int]] = []

    @flow.step
    def first(ctx: Ctx) -> int:
        done.append(("first", ctx.attempt))
        return 1

    @flow.step(after=first)
    def second(ctx: Ctx, first: int) -> int:
        done.append(("second", ctx.attempt))
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return first + 1

    run = flow.start()
    for _ in range(3):
        drain(hf)
        clock.advance(timedelta(minutes=5))

    assert done == [("first", 1), ("second", 1), ("second", 2), ("second", 3)]
    assert run.result(1) == {"first": 1, "second": 2}
    assert events(db, step=int(step_id(run, "first"))) == ["claimed", "succeeded"]


def test_a_task_tried_again_does_not_do_again_what_is_complete(hf: Holdfast, told: Told) -> None:
    """T-139: nor does one that is tried again and again"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)

    for _ in range(3):
        run.retry()
        drain(hf)

    assert sorted(told.done) == ["left"] * 4 + ["right", "top"]


def test_a_task_that_is_complete_cannot_be_tried_again(hf: Holdfast, told: Told) -> None:
    """T-139, T-68: nor can a step of it"""
    run = diamond(hf, told).start()
    drain(hf)

    for thing in (str(run.id), step_id(run, "top")):
        with pytest.raises(WrongState):
            make_retry(hf, thing)

    assert drain(hf) == 0


def make_retry(hf: Holdfast, thing: str) -> None:
    with hf._engine.connection() as connection:
        make(connection, calls.retry(thing))


def test_the_tests_ask_the_database_what_is_ready() -> None:
    """T-140: readiness is what the function says, and the claim shares its predicate; the model is held against both"""
    asking = [path.name for path in FLOW.rglob("*.py") if "get_step_readiness_status" in path.read_text()]

    assert "stage.py" in asking
    assert len(asking) > 1


ILLEGAL = [
    ("complete", "pending"), ("complete", "in_progress"), ("complete", "error"), ("complete", "cancelled"),
    ("pending", "complete"), ("pending", "error"), ("error", "complete"), ("error", "in_progress"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ILLEGAL)
def test_a_states_plain_update_that_the_machine_does_not_list_is_refused(
    hf: Holdfast, db: DB, told: Told, before: str, after: str
) -> None:
    """T-141, T-52: even by the owner of the tables, and nothing is journaled"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    name = {"complete": "top", "pending": "join", "error": "left"}[before]
    step = int(step_id(run, name))
    story = events(db, step=step)

    with pytest.raises(psycopg.Error) as refusal:
        db.execute("update holdfast.steps set state = %s where id = %s", [after, step])

    assert BY_SQLSTATE[refusal.value.sqlstate or ""] is IllegalTransition
    assert states(run)[name] == before
    assert events(db, step=step) == story


def test_a_plain_update_along_a_legal_move_is_journaled_as_done_by_hand(hf: Holdfast, db: DB, told: Told) -> None:
    """T-141, T-87: who did it stands there, and what waits for the step goes on"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    step = int(step_id(run, "left"))

    db.execute("update holdfast.steps set state = 'resolved_manually', result = '\"by hand\"' where id = %s", [step])

    last = journal(db, step=step)[-1]
    assert (last.event, last.from_state, last.to_state) == ("by_hand", "error", "resolved_manually")
    assert (last.actor_kind, last.actor) == ("user", db.info.user)
    drain(hf)
    assert run.result(1)["join"] == "join1(by hand right1(top1))"


def test_the_history_of_transitions_cannot_be_written(hf: Holdfast, db: DB, told: Told) -> None:
    """T-141, T-87: neither the journal nor the views of it"""
    diamond(hf, told).start()
    drain(hf)
    for statement in (
        "update holdfast.journal set to_state = 'complete'",
        "delete from holdfast.journal",
        "update flow.step_transitions set to_state = 'complete'",
        "delete from flow.task_transitions",
    ):
        with pytest.raises(psycopg.Error, match=r"append-only|stays|refused"):
            db.execute(statement)


def test_a_safe_transition_made_twice_is_made_once(hf: Holdfast, db: DB, told: Told) -> None:
    """T-141: the second tells that it did nothing; one that cannot be is refused"""
    told.failing = {"left"}
    run = diamond(hf, told).start()
    drain(hf)
    step = step_id(run, "left")
    move = "select flow.safe_transition_to(%s, %s, 'a person said so')"

    answers = [db.execute(move, [step, "resolved_manually"]).fetchone() for _ in range(2)]

    assert answers == [(True,), (False,)]
    assert events(db, step=int(step)).count("resolved") == 1
    with pytest.raises(psycopg.Error, match="cannot be"):
        db.execute(move, [step, "pending"])
    drain(hf)


def test_a_step_that_is_processed_is_never_executed(db: DB) -> None:
    """T-142, T-34: whatever its due time is made to say"""
    (task_id,) = make(db, flow_calls.initialize_task("plain", PLAN, EMPTY))
    step = claim_one(db)
    settle(db, step, Done())

    with pytest.raises(psycopg.errors.CheckViolation):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where id = %s", [step.step_id])

    assert claim(db, batch=5) == []
    ready = "select processed, ready_for_execution from flow.get_step_readiness_status(%s)"
    assert db.execute(ready, [task_id]).fetchall() == [(True, False)]


def test_a_processed_step_cannot_be_forced_into_error(db: DB) -> None:
    """T-142, T-34, T-141: processed is the state itself, and the two cannot differ"""
    (task_id,) = make(db, flow_calls.initialize_task("plain", PLAN, EMPTY))
    step = claim_one(db)
    settle(db, step, Done())

    for table in ("holdfast.steps set state = 'error' where id", "flow.steps set state = 'error' where step_id"):
        with pytest.raises(psycopg.Error):
            db.execute(f"update {table} = %s", [step.step_id])

    assert claim(db, batch=5) == []
    query = "select state, processed from flow.steps where task_id = %s"
    assert db.execute(query, [task_id]).fetchall() == [("complete", True)]
