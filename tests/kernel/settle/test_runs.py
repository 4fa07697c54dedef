"""Runs: counted as they go, started by the first claim, closed by the last settle, with joins in between."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Continue, Done, Fail, Outcome, Release, Retry, Snooze
from holdfast.testing import Clock, events, journal
from kernel.steps import (
    DB,
    add_steps,
    at_once,
    claim,
    claim_one,
    column,
    counts,
    finish,
    ids_by_name,
    node,
    run_row,
    seconds,
    settle,
    settlement,
    start,
    start_flow,
    step_row,
    value,
)

DIAMOND = (node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))


def drain(db: DB, outcomes: dict[str, Outcome] | None = None) -> list[str]:
    """Claim and settle one by one until nothing is due; the kinds as they came."""
    seen = []
    while steps := claim(db):
        settle(db, steps[0], (outcomes or {}).get(steps[0].kind, Done()))
        seen.append(steps[0].kind)
    return seen


def test_a_run_is_started_by_its_first_claim_and_closed_by_its_last_settle(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    run_id = start_flow(db, node("a"), node("b"), input={"order": 1})
    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("pending", {"total": 2, "live": 2})

    first = claim_one(db)
    row = run_row(db, run_id)
    assert (row["state"], row["started_at"], row["input"]) == ("in_progress", now, {"order": 1})
    settle(db, first, Done())
    assert (run_row(db, run_id)["state"], counts(db, run_id)) == (
        "in_progress",
        {"total": 2, "live": 1, "succeeded": 1},
    )
    settle(db, claim_one(db, "b"), Done())

    row = run_row(db, run_id)
    assert (row["state"], row["finished_at"]) == ("complete", now)
    assert counts(db, run_id) == {"total": 2, "succeeded": 2}
    assert [(e.event, e.actor_kind, e.actor) for e in journal(db, run=run_id)] == [
        ("created", "api", value(db, "select session_user::text")),
        ("started", "worker", "a"),
        ("all_succeeded", "worker", "b"),
    ]


def test_a_run_whose_machine_begins_open_is_queued_when_it_is_created(db: DB, clock: Clock) -> None:
    """A-110, A-111."""
    created_at = clock.freeze()
    run_id = start_flow(db, node("a"))
    clock.advance(seconds(5))
    finish(db, claim(db))

    row = run_row(db, run_id)
    assert (row["queued_at"], row["started_at"], row["finished_at"]) == (created_at, clock.now(), clock.now())


@pytest.mark.parametrize("is_settled_first", [True, False])
def test_a_child_that_is_freed_in_a_paused_run_waits_for_its_resumption(db: DB, is_settled_first: bool) -> None:
    run_id = start_flow(db, node("a"), node("b", "a"))
    parent = claim_one(db)
    moves = [lambda: settle(db, parent, Done()), lambda: run(db, calls.pause_run(str(run_id)))]
    for move in moves if is_settled_first else moves[::-1]:
        move()

    assert claim(db) == []
    assert value(db, "select count(*) from holdfast.steps where due_at is not null or lease_id is not null") == 0

    run(db, calls.resume_run(str(run_id)))
    assert [step.kind for step in claim(db)] == ["b"]


def test_the_start_of_a_run_stands_with_its_first_claim(db: DB) -> None:
    run_id = start_flow(db, node("a"))

    with db.transaction(force_rollback=True):
        claim_one(db)

    assert run_row(db, run_id)["state"] == "pending"
    assert events(db, run=run_id) == ["created"]


@pytest.mark.parametrize(
    ("outcomes", "event", "left"),
    [
        ({}, "all_succeeded", {"succeeded": 3}),
        ({"b": Fail("e")}, "some_failed", {"succeeded": 2, "failed": 1}),
        ({"a": Fail("e"), "b": Fail("e"), "c": Fail("e")}, "none_succeeded", {"failed": 3}),
    ],
    ids=["all", "some", "none"],
)
def test_a_run_is_closed_by_what_became_of_its_steps(db: DB, outcomes: Any, event: str, left: dict[str, int]) -> None:
    run_id = start_flow(db, node("a"), node("b"), node("c"))

    drain(db, outcomes)

    assert events(db, run=run_id)[-1] == event
    assert counts(db, run_id) == {"total": 3, **left}
    assert run_row(db, run_id)["state"] == ("complete" if event == "all_succeeded" else "error")


def test_a_run_whose_steps_wait_for_a_failed_one_is_blocked(db: DB) -> None:
    run_id = start_flow(db, *DIAMOND)

    assert drain(db, {"b": Fail("e")}) == ["a", "b", "c"]

    assert events(db, run=run_id)[-1] == "blocked"
    assert (run_row(db, run_id)["state"], column(db, ids_by_name(db, run_id)["d"], "state")) == ("error", "pending")
    assert counts(db, run_id) == {"total": 4, "succeeded": 2, "failed": 1}


@pytest.mark.parametrize("outcome", [Retry("e"), Snooze(seconds(9)), Release(), Continue(1)])
def test_a_run_stays_open_while_a_step_is_to_come_again(db: DB, outcome: Outcome) -> None:
    run_id = start_flow(db, node("a"))

    settle(db, claim_one(db), outcome)

    assert run_row(db, run_id)["finished_at"] is None
    assert counts(db, run_id) == {"total": 1, "live": 1}


def test_a_step_waits_for_all_its_parents_and_comes_once(db: DB) -> None:
    run_id = start_flow(db, *DIAMOND)
    ids = ids_by_name(db, run_id)
    assert {name: column(db, i, "waits") for name, i in ids.items()} == {"a": 0, "b": 1, "c": 1, "d": 2}

    assert drain(db) == ["a", "b", "c", "d"]

    assert {name: events(db, step=i) for name, i in ids.items()} == {name: ["claimed", "succeeded"] for name in "abcd"}
    assert run_row(db, run_id)["state"] == "complete"


def test_a_child_is_due_from_the_moment_its_last_parent_is_done(db: DB, clock: Clock) -> None:
    run_id = start_flow(db, node("a"), node("b"), node("c", "a", "b"))
    child = ids_by_name(db, run_id)["c"]
    first, second = claim(db, batch=10)
    settle(db, first, Done())
    assert (column(db, child, "waits"), column(db, child, "due_at")) == (1, None)
    clock.freeze()
    clock.advance(seconds(100))

    settle(db, second, Done())

    assert (column(db, child, "waits"), column(db, child, "due_at")) == (0, clock.now())


def test_both_parents_in_one_batch_free_their_child_once(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b"), node("c", "a", "b"))

    finish(db, claim(db, batch=10))

    assert counts(db, run_id) == {"total": 3, "live": 1, "succeeded": 2}
    assert [s.kind for s in claim(db, batch=10)] == ["c"]


def test_joins_of_many_parents_settled_at_the_same_time_come_once_each(db: DB, dsn: str) -> None:
    """A hundred runs of eight parents and a join; eight workers, so that parents of one join are settled together"""
    for _ in range(100):
        start_flow(db, *(node(f"p{n}") for n in range(8)), node("join", *(f"p{n}" for n in range(8))))

    def work(name: str, own: DB) -> int:
        return sum(len(finish(own, steps)) for steps in iter(partial(claim, own, name, batch=7), []))

    at_once(dsn, *(partial(work, f"w{n}") for n in range(8)))
    work("last", db)

    assert value(db, "select array_agg(distinct state) from holdfast.runs") == ["complete"]
    moves = db.execute("select event, attempt, count(*) from holdfast.journal where step_id is not null group by 1, 2")
    assert sorted(moves.fetchall()) == [("claimed", 1, 900), ("succeeded", 1, 900)]
    assert value(db, "select count(*) from holdfast.journal where event = 'all_succeeded'") == 100


def test_steps_added_to_a_run_wait_for_those_that_are_not_done(db: DB) -> None:
    run_id = start_flow(db, node("a"), node("b"))
    settle(db, claim_one(db), Done())

    added = add_steps(db, run_id, node("c", "a", "b"), node("d", "a"), node("e", "c"))

    assert [column(db, i, "waits") for i in added] == [1, 0, 1]
    assert counts(db, run_id) == {"total": 5, "live": 2, "succeeded": 1}
    assert sorted(drain(db)) == ["b", "c", "d", "e"]
    assert run_row(db, run_id)["state"] == "complete"


def test_a_parent_named_twice_is_one_parent(db: DB) -> None:
    start_flow(db, node("a"), node("b", "a", "a"))

    assert drain(db) == ["a", "b"]


def test_the_plan_says_kind_queue_priority_policy_and_due_time_of_each_step(db: DB, clock: Clock) -> None:
    later = clock.freeze() + seconds(60)
    db.execute("insert into holdfast.kinds (kind, policy, queue) values ('slow', 'flow.sql', 'bulk')")
    own = {"queue": "fast", "priority": 7, "policy": "rules.429", "due_at": later.isoformat(), "input": {"n": 1}}
    run_id = start_flow(
        db, {"kind": "slow", "name": "a"}, {"kind": "slow", "name": "b", **own}, {"kind": "plain"}, tenant="t"
    )

    rows = db.execute(
        "select queue, priority, policy, due_at, input, tenant, run_id from holdfast.steps order by id"
    ).fetchall()

    now = clock.now()
    assert rows == [
        ("bulk", 0, "flow.sql", now, {}, "t", run_id),
        ("fast", 7, "rules.429", later, {"n": 1}, "t", run_id),
        ("default", 0, None, now, {}, "t", run_id),
    ]


def test_a_failed_flow_step_rests_in_error_and_is_tried_again_through_pending(db: DB, clock: Clock) -> None:
    """T-109: an error step that is claimed again makes both moves, in order"""
    run_id = start_flow(db, node("a"))
    step = claim_one(db)
    now = clock.freeze()

    assert settle(db, step, Retry("e")) == ["retried"]

    row = step_row(db, step.step_id)
    assert (row["state"], row["due_at"], row["finished_at"]) == ("error", now + seconds(1), None)
    assert counts(db, run_id) == {"total": 1, "live": 1}
    clock.advance(seconds(1))
    again = claim_one(db, "b")
    assert (again.attempt, column(db, step.step_id, "failures")) == (2, 1)
    assert [(e.from_state, e.event, e.to_state, e.actor) for e in journal(db, step=step.step_id)][-2:] == [
        ("error", "reopened", "pending", "b"),
        ("pending", "claimed", "in_progress", "b"),
    ]


def test_a_flow_step_is_executed_three_times_and_then_over(db: DB, clock: Clock) -> None:
    """C-30 T-109: waits of 1 and 2 s"""
    run_id = start_flow(db, node("a"))
    clock.freeze()
    seen = []
    for wait in (1, 2, 0):
        step = claim_one(db)
        seen += settle(db, step, Retry("e"))
        clock.advance(seconds(wait))

    assert seen == ["retried", "retried", "failed"]
    assert column(db, step.step_id, "finished_at") is not None
    assert run_row(db, run_id)["state"] == "error"
    clock.advance(seconds(10**6))
    assert claim(db) == []


def test_a_mixed_batch_counts_each_step_in_its_own_run(db: DB) -> None:
    runs = [start_flow(db, node("a"), node("b")) for _ in range(3)]
    start(db)
    steps = claim(db, batch=10)
    outcomes: list[Outcome] = [Done(), Done(), Fail("e"), Done(), Retry("e"), Fail("e"), Done()]

    run(db, calls.settle_steps([settlement(s, o) for s, o in zip(steps, outcomes, strict=True)]))

    assert [run_row(db, r)["state"] for r in runs] == ["complete", "error", "in_progress"]
    assert [counts(db, r) for r in runs] == [
        {"total": 2, "succeeded": 2},
        {"total": 2, "succeeded": 1, "failed": 1},
        {"total": 2, "live": 1, "failed": 1},
    ]


def test_a_run_without_steps_waits_for_them(db: DB) -> None:
    run_id = start_flow(db)

    assert (run_row(db, run_id)["state"], counts(db, run_id)) == ("pending", {})
    add_steps(db, run_id, node("a"))
    drain(db)
    assert run_row(db, run_id)["state"] == "complete"


def test_run_ids_sort_by_the_time_of_their_creation(db: DB, clock: Clock) -> None:
    """Version 7"""
    ids = []
    for _ in range(5):
        ids.append(start_flow(db))
        clock.advance(seconds(0.01))

    assert ids == sorted(ids)
    assert {(i.version, i.variant) for i in ids} == {(7, "specified in RFC 4122")}


def test_a_plan_given_as_json_text_is_what_python_sends(db: DB) -> None:
    row = db.execute(
        "select holdfast.start_run('flow.task', 'order', 'flow.step', %s)", [Jsonb([node("a"), node("b", "a")])]
    ).fetchone()

    assert row is not None
    assert counts(db, row[0]) == {"total": 2, "live": 1}
    assert drain(db) == ["a", "b"]
