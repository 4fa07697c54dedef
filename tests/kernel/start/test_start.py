"""Starting tasks: defaults, keys, many at once, in the caller's own transaction, and who is woken."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Retry
from holdfast.testing import Clock, events
from kernel.steps import (
    DB,
    add_steps,
    claim,
    claim_one,
    column,
    fingerprint,
    finish,
    node,
    seconds,
    settle,
    stage,
    start,
    start_flow,
    step_row,
    value,
)


def start_many(db: DB, *tasks: Any) -> list[int]:
    return run(db, calls.start_tasks(tasks))


def hints(db: DB, wanted: int = 1) -> list[str]:
    """The hints that reach a listening connection; a query behind them has taken its turn, so none is under way."""
    db.execute("select 1")
    return [hint.payload for hint in db.notifies(timeout=0, stop_after=wanted)]


def test_a_task_needs_only_a_name_and_an_input(db: DB, clock: Clock) -> None:
    """W-43 W-49"""
    now = clock.freeze()
    step_id = value(db, "select holdfast.start_task('mail', '{\"to\": 1}')")

    row = step_row(db, step_id)

    assert (row["machine"], row["state"], row["kind"], row["input"]) == ("work.task", "pending", "mail", {"to": 1})
    assert (row["queue"], row["priority"], row["tenant"], row["policy"]) == ("default", 0, "default", None)
    assert (row["due_at"], row["created_at"], row["attempt"], row["failures"]) == (now, now, 0, 0)
    assert events(db, step=step_id) == []


def test_what_a_start_leaves_out_comes_from_its_kind(db: DB) -> None:
    """Plain-SQL starters get a handler's defaults too"""
    db.execute("insert into holdfast.kinds (kind, policy, queue) values ('mail', 'rules.429', 'post')")

    left_out, said = start(db, "mail"), start(db, "mail", queue="own")

    assert [(column(db, i, "queue"), column(db, i, "policy")) for i in (left_out, said)] == [
        ("post", "rules.429"),
        ("own", "rules.429"),
    ]


def test_a_null_is_as_if_it_was_left_out(db: DB, clock: Clock) -> None:
    now = clock.freeze()

    step_id = value(db, "select holdfast.start_task('mail', null, null, null, null, null, 0, 'default')")

    row = step_row(db, step_id)
    assert (row["input"], row["queue"], row["unique_key"], row["due_at"]) == ({}, "default", None, now)


def test_the_same_key_gives_the_same_task_for_good(db: DB) -> None:
    """R22 X-14: also when it is over; in each tenant its own"""
    step_id = start(db, key="k")
    settle(db, claim_one(db), Done())

    assert start(db, key="k") == step_id
    assert start(db, key="k", tenant="other") != step_id
    assert start(db, key="other") != step_id


def test_the_order_of_an_inputs_keys_makes_no_other_input(db: DB) -> None:
    assert start(db, given={"a": 1, "b": 2}, key="k") == start(db, given={"b": 2, "a": 1}, key="k")


def test_a_unique_key_gives_the_open_task_and_a_new_one_when_that_is_over(db: DB) -> None:
    first = start(db, unique_key="nightly")
    assert start(db, given={"other": "input"}, unique_key="nightly") == first

    settle(db, claim_one(db), Retry("e", after=seconds(0)))
    assert start(db, unique_key="nightly") == first
    step = claim_one(db)
    assert start(db, unique_key="nightly") == first
    settle(db, step, Fail("e"))
    second = start(db, unique_key="nightly")

    assert second != first
    assert start(db, unique_key="nightly", tenant="other") not in {first, second}


def test_a_failed_task_is_not_reopened_beside_its_successor(db: DB) -> None:
    """Two open tasks of one unique key are what it forbids"""
    first = start(db, unique_key="nightly")
    settle(db, claim_one(db), Fail("e"))
    start(db, unique_key="nightly")
    before = fingerprint(db)

    with pytest.raises(errors.KeyConflict, match="unique_key"):
        run(db, calls.retry(str(first)))

    assert fingerprint(db) == before


def test_a_key_and_a_unique_key_together(db: DB) -> None:
    first = start(db, unique_key="u")

    assert start(db, key="k", unique_key="u") == first
    settle(db, claim_one(db), Done())

    assert start(db, key="k", unique_key="u") == first


def test_tasks_are_started_in_their_order(db: DB, clock: Clock) -> None:
    later = clock.freeze() + seconds(60)

    ids = start_many(
        db,
        {"name": "a", "input": {"n": 1}},
        {"name": "b", "queue": "q", "priority": 3, "tenant": "t", "due_at": later.isoformat()},
        {"name": "c", "key": "k"},
        {"name": "c", "key": "k"},
        {"name": "d", "unique_key": "u"},
        {"name": "e", "unique_key": "u"},
    )

    assert ids[2] == ids[3]
    assert ids[4] == ids[5]
    assert sorted(set(ids)) == list(dict.fromkeys(ids))
    rows = db.execute("select kind, input, queue, priority, tenant, due_at from holdfast.steps order by id").fetchall()
    assert rows == [
        ("a", {"n": 1}, "default", 0, "default", later - seconds(60)),
        ("b", {}, "q", 3, "t", later),
        ("c", {}, "default", 0, "default", later - seconds(60)),
        ("d", {}, "default", 0, "default", later - seconds(60)),
    ]


def test_no_tasks_are_started_from_an_empty_list(db: DB) -> None:
    assert start_many(db) == []


def test_one_bad_task_refuses_them_all(db: DB) -> None:
    before = fingerprint(db)
    bad: list[Any] = [
        {}, {"input": {}}, {"name": ""}, {"name": "x" * 201}, {"name": "a", "colour": 1}, "mail", 7, None, ["a"],
        {"name": "a", "priority": 10}, {"name": "a", "priority": -1}, {"name": "a", "priority": "high"},
        {"name": "a", "due_at": "someday"},
    ]  # fmt: skip

    for odd in bad:
        with pytest.raises(errors.BadInput):
            start_many(db, {"name": "a", "key": "k"}, odd)

    assert fingerprint(db) == before


def test_tasks_are_an_array(db: DB) -> None:
    for odd in ("{}", "1", "null", '"a"'):
        with pytest.raises(psycopg.Error, match=r"tasks .*array"):
            db.execute("select holdfast.start_tasks(%s::jsonb)", [odd])


def test_a_start_that_is_rolled_back_leaves_nothing(db: DB) -> None:
    """X-02: in the caller's own transaction, or not at all"""
    before = fingerprint(db)

    with db.transaction(force_rollback=True):
        start(db, key="k", unique_key="u", queue="new")
        start_many(db, {"name": "a"})
        start_flow(db, node("a"), node("b", "a"), key="r")

    assert fingerprint(db) == before
    assert start(db, given={"other": 1}, key="k") > 0


def test_a_started_task_is_invisible_until_its_transaction_ends(db: DB, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as worker:
        with db.transaction():
            step_id = start(db)
            assert claim(worker) == []
        assert claim_one(worker).step_id == step_id


def test_a_start_hints_only_where_a_worker_sleeps(db: DB, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as worker:
        worker.execute("listen holdfast")
        claim(worker, "w", queue="mine")
        start(db, queue="mine", unique_key="u")
        assert hints(worker) == []
        finish(worker, claim(worker, "w", queue="mine"))

        run(worker, calls.mark_asleep("w", "mine"))
        start(db, queue="other")
        assert hints(worker) == []
        start(db, queue="mine")
        assert hints(worker) == ["mine"]

        claim(worker, "w", queue="mine")
        start(db, queue="mine")
        assert hints(worker) == []


def test_whatever_makes_something_due_hints_who_sleeps(db: DB, dsn: str) -> None:
    """Started, staged, freed by a parent, opened again by hand, resumed"""
    run_id = start_flow(db, node("a"), node("b", "a"), node("c"))
    with psycopg.connect(dsn, autocommit=True) as worker:
        worker.execute("listen holdfast")
        claim(worker, "w", kinds=[])
        run(worker, calls.mark_asleep("w"))
        first, second = claim(db, "b", batch=2)

        settle(db, second, Fail("e"))
        assert hints(worker) == []
        settle(db, first, Done())
        assert hints(worker) == ["default"]
        run(db, calls.retry(str(second.step_id)))
        assert hints(worker) == ["default"]
        run(db, calls.pause_queue("default"))
        run(db, calls.resume_queue("default"))
        assert hints(worker) == ["default"]
        stage(db, [("mail", "{}")])
        assert hints(worker) == ["default"]
        start_flow(db, node("a"))
        assert hints(worker) == ["default"]
        add_steps(db, run_id, node("d"))
        assert hints(worker) == ["default"]


def test_a_hint_is_sent_when_the_start_commits_and_not_when_it_is_rolled_back(db: DB, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as worker:
        worker.execute("listen holdfast")
        claim(worker, "w")
        run(worker, calls.mark_asleep("w"))

        with db.transaction(force_rollback=True):
            start(db)
        assert hints(worker) == []
        with db.transaction():
            start(db)
            assert hints(worker) == []
        assert hints(worker) == ["default"]


def test_a_worker_that_died_asleep_is_not_sent_hints_for_ever(db: DB, dsn: str, clock: Clock) -> None:
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute("listen holdfast")
        claim(listener, "w")
        run(listener, calls.mark_asleep("w"))
        clock.advance(seconds(200))

        start(db)

        assert hints(listener) == []
