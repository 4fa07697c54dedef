"""Notes: messages on a step, fenced by its lease; and `started`, which the first word of a worker fires."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Level, Release, Retry, Snooze
from holdfast.testing import Clock, events, journal
from kernel.steps import DB, at_once, claim, claim_one, column, insert_step, notes, settle, settlement, start


def note(db: DB, step: ClaimedStep, message: str = "hello", level: Level = "info", **options: Any) -> int:
    return run(db, calls.note(step.step_id, step.lease_id, level, message, **options))[0]


def ops_run(db: DB) -> ClaimedStep:
    """An ops run, claimed: one step of a machine that tells claimed from running."""
    insert_step(db, "ops.run", "queued", kind="deploy")
    return claim_one(db)


def test_a_note_keeps_level_message_payload_and_whose_attempt_it_was(db: DB, clock: Clock) -> None:
    start(db, tenant="t")
    settle(db, claim_one(db), Release())
    step = claim_one(db)
    now = clock.freeze()

    number = note(db, step, "half way", "warn", payload={"done": 50})

    assert db.execute("select * from holdfast.notes").fetchall() == [
        (number, now, "t", step.step_id, None, 2, step.lease_id, "warn", "half way", {"done": 50})
    ]


def test_each_level_is_taken(db: DB) -> None:
    levels: list[Level] = ["debug", "info", "warn", "error"]
    start(db)
    step = claim_one(db)

    for level in levels:
        note(db, step, level=level)

    assert notes(db, step.step_id) == [(level, "hello") for level in levels]


def test_a_note_needs_nothing_but_step_and_lease(db: DB) -> None:
    """What a bash worker writes: all else has defaults"""
    start(db)
    step = claim_one(db)

    db.execute("select holdfast.note(%s, %s)", [step.step_id, step.lease_id])
    db.execute("select holdfast.note(%s, %s, 'info', null, null, null)", [step.step_id, step.lease_id])

    assert notes(db, step.step_id) == [("info", ""), ("info", "")]


def test_a_note_with_a_key_is_written_once(db: DB) -> None:
    start(db)
    step = claim_one(db)

    first = note(db, step, "page 1", key="page:1")
    again = note(db, step, "page 1 once more", key="page:1")
    other = note(db, step, "page 2", key="page:2")

    assert (again, other > first) == (first, True)
    assert notes(db, step.step_id) == [("info", "page 1"), ("info", "page 2")]


def test_a_notes_key_is_its_steps_own_and_outlives_the_attempt(db: DB) -> None:
    start(db), start(db)
    one, two = claim(db, batch=2)
    first = note(db, one, key="k")

    assert note(db, two, key="k") != first

    settle(db, one, Release())
    assert note(db, claim_one(db), key="k") == first


def test_a_notes_key_is_none_of_the_starters_keys(db: DB) -> None:
    """A task may be started under any key, also one that looks like a note's"""
    start(db)
    step = claim_one(db)
    number = note(db, step, key="k")

    task = start(db, key=f"note:{step.step_id}:k")

    assert start(db, key=f"note:{step.step_id}:k") == task
    assert note(db, step, key="k") == number
    assert column(db, task, "state") == "pending"


def test_the_same_note_sent_twice_at_once_is_written_once(db: DB, dsn: str) -> None:
    start(db)
    step = claim_one(db)

    numbers = at_once(dsn, *[partial(note, step=step, key="k")] * 10)

    assert len(set(numbers)) == 1
    assert len(notes(db, step.step_id)) == 1


def test_notes_and_moves_have_one_order(db: DB) -> None:
    """X-07: ids from one sequence"""
    start(db)
    step = claim_one(db)
    note(db, step, "one")
    note(db, step, "two")
    settle(db, step, Done())

    story = db.execute(
        "select entry, what, message from holdfast.step_story where step_id = %s order by id", [step.step_id]
    )

    assert story.fetchall() == [
        ("move", "claimed", None),
        ("note", "info", "one"),
        ("note", "info", "two"),
        ("move", "succeeded", None),
    ]


def test_only_who_holds_the_step_may_write_on_it(db: DB) -> None:
    """W-61"""
    step_id = start(db)
    with pytest.raises(errors.LeaseLost):
        run(db, calls.note(step_id, 1, "info", "not claimed yet"))
    step = claim_one(db)
    with pytest.raises(errors.LeaseLost, match="stop working"):
        run(db, calls.note(step_id, step.lease_id + 1, "info", "not its lease"))
    settle(db, step, Done())

    with pytest.raises(errors.LeaseLost):
        note(db, step, "over")

    assert notes(db, step_id) == []


def test_a_task_has_no_move_for_its_first_word(db: DB) -> None:
    start(db)
    step = claim_one(db)

    note(db, step)

    assert events(db, step=step.step_id) == ["claimed"]


def test_the_first_word_on_an_ops_run_starts_it_and_the_second_does_not(db: DB) -> None:
    step = ops_run(db)
    assert column(db, step.step_id, "state") == "claimed"

    note(db, step)
    note(db, step)

    assert column(db, step.step_id, "state") == "running"
    assert [(e.event, e.actor_kind, e.actor, e.lease_id) for e in journal(db, step=step.step_id)] == [
        ("claimed", "worker", "a", step.lease_id),
        ("started", "worker", "a", step.lease_id),
    ]
    assert settle(db, step, Done()) == ["succeeded"]
    assert events(db, step=step.step_id) == ["claimed", "started", "succeeded"]


@pytest.mark.parametrize(
    ("outcome", "event", "state"),
    [(Done({"ok": 1}), "succeeded", "success"), (Fail("e"), "failed", "failed"), (Retry("e"), "failed", "failed")],
    ids=["done", "fail", "retry"],
)
def test_an_ops_run_finished_without_a_word_makes_both_moves(db: DB, outcome: Any, event: str, state: str) -> None:
    """Where a machine needs two moves both are made, in order, in that transaction"""
    step = ops_run(db)

    assert settle(db, step, outcome) == [event]

    assert column(db, step.step_id, "state") == state
    assert [(e.from_state, e.event, e.to_state, e.actor) for e in journal(db, step=step.step_id)] == [
        ("queued", "claimed", "claimed", "a"),
        ("claimed", "started", "running", "a"),
        ("running", event, state, "a"),
    ]


def test_an_outcome_that_the_machine_has_no_move_for_is_noted_and_left_out(db: DB) -> None:
    """An ops run cannot be put off; its lease then runs out as it would have"""
    step = ops_run(db)
    start(db)
    task = claim_one(db)

    settled = run(db, calls.settle_steps([settlement(step, Snooze(timedelta(0))), settlement(task, Release())]))

    assert [s.step_id for s in settled] == [task.step_id]
    assert column(db, step.step_id, "lease_id") == step.lease_id
    ((level, message),) = notes(db, step.step_id)
    assert level == "error"
    assert message.startswith("machine ops.run has no move snoozed from state claimed")
