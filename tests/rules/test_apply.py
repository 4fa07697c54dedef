"""Apply: which targets, by which plan, once, and never beside another run of the same items."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection

from holdfast.models import Fail, Retry
from holdfast.testing import Clock
from kernel.steps import at_once, value
from rules.plans import (
    applied,
    called,
    claim,
    define,
    fails,
    ids,
    inputs,
    moves,
    preview,
    previewed,
    refused,
    row,
    rows,
    run,
    settle,
    status,
    statuses,
    target_moves,
    targets,
    work,
)

DB = Connection[Any]
APPLY = "select * from rules.apply(%s)"


def test_a_run_goes_from_preview_to_applied_and_each_target_with_it(db: DB) -> None:
    """A-02 to A-05, A-10 to A-12, A-23 to A-27, A-30 to A-32: and the journal says who made each move"""
    run_id = previewed(db, 3)
    assert statuses(db, run_id) == ["PREVIEW"] * 3

    answer = applied(db, run_id, actor="ann")
    assert (answer["status"], answer["included"], answer["is_new"]) == ("QUEUED", 3, True)
    assert (status(db, run_id), statuses(db, run_id)) == ("QUEUED", ["QUEUED"] * 3)
    steps = claim(db)
    assert (status(db, run_id), statuses(db, run_id)) == ("APPLYING", ["APPLYING"] * 3)
    settle(db, steps[:2])
    assert status(db, run_id) == "APPLYING"
    settle(db, steps[2:])

    assert (status(db, run_id), statuses(db, run_id)) == ("APPLIED", ["APPLIED"] * 3)
    assert moves(db, run_id) == [
        ("new", "PREVIEW", "api"),
        ("PREVIEW", "QUEUED", "api"),
        ("QUEUED", "APPLYING", "worker"),
        ("APPLYING", "APPLIED", "worker"),
    ]
    assert target_moves(db, ids(db, run_id)[0]) == [
        ("PREVIEW", "QUEUED", "api"),
        ("QUEUED", "APPLYING", "worker"),
        ("APPLYING", "APPLIED", "worker"),
    ]
    assert all(target["applied_at"] is not None for target in targets(db, run_id))
    actors = db.execute("select event, actor from holdfast.journal where run_id = %s and step_id is null order by id",
                        [run_id]).fetchall()  # fmt: skip
    assert actors[1:] == [("queued", "ann"), ("started", "w"), ("all_succeeded", "w")]
    assert value(db, "select count(*) from holdfast.journal where nullif(actor, '') is null") == 0


def test_the_same_inputs_end_in_the_same_states(db: DB, clock: Clock) -> None:
    """A-01: a hundred targets and more; each status on the way is one of the document's"""
    clock.freeze()
    seen: set[str] = set()
    ends = []
    for _ in range(2):
        run_id = previewed(db, 120)
        seen.add(status(db, run_id))
        applied(db, run_id)
        while status(db, run_id) in ("QUEUED", "APPLYING"):
            steps = [step for step in claim(db, batch=50) if step.run_id == run_id]  # the queue has passes too
            seen |= {status(db, run_id), *statuses(db, run_id)}
            for step in steps:
                item = inputs(db, [step])[step.step_id]["item_id"]
                settle(db, [step], {"SKU-7": Fail("no"), "SKU-11": Retry("down")}.get(item))
            clock.advance(timedelta(seconds=20))
        ends.append((status(db, run_id), statuses(db, run_id), [t["attempts"] for t in targets(db, run_id)]))

    assert ends[0] == ends[1]
    assert (ends[0][0], ends[0][1].count("APPLIED"), ends[0][1][6], ends[0][2][10]) == ("PARTIAL", 118, "FAILED", 3)
    assert seen <= {"PREVIEW", "QUEUED", "APPLYING", "APPLIED", "PARTIAL", "FAILED"}


def test_applying_twice_is_applying_once_and_another_choice_is_refused(db: DB) -> None:
    run_id = previewed(db, 3)
    chosen = ids(db, run_id)[:2]
    applied(db, run_id, only_ids=chosen)

    assert applied(db, run_id, only_ids=chosen)["is_new"] is False
    assert applied(db, run_id)["is_new"] is False
    assert refused(db, "select rules.apply(%s, without_ids => %s)", [run_id, chosen]) == "RN010"
    work(db)
    assert applied(db, run_id) == {"status": "APPLIED", "included": 2, "left_out": 1, "is_new": False}
    assert work(db) == 0


def test_a_target_left_out_stays_a_preview_and_does_not_count(db: DB) -> None:
    """A-30: the third one is never sent, and the run is APPLIED by the other two"""
    for choice in ("only_ids", "without_ids"):
        run_id = previewed(db, 3)
        all_ids = ids(db, run_id)
        chosen = all_ids[:2] if choice == "only_ids" else all_ids[2:]

        answer = applied(db, run_id, **{choice: chosen})
        assert (answer["included"], answer["left_out"]) == (2, 1)
        assert [target["included"] for target in targets(db, run_id)] == [True, True, False]
        assert work(db) == 2

        assert (status(db, run_id), statuses(db, run_id)) == ("APPLIED", ["APPLIED", "APPLIED", "PREVIEW"])
        assert run(db, run_id)["counts"]["left"] == 0


def test_the_first_targets_are_applied_and_the_rest_waits_for_resume(db: DB) -> None:
    run_id = previewed(db, 5)
    applied(db, run_id, first=2)

    assert work(db) == 2
    assert (status(db, run_id), run(db, run_id)["halt"]) == ("APPLYING", "first")
    assert statuses(db, run_id) == ["APPLIED"] * 2 + ["PREVIEW"] * 3
    assert [target["included"] for target in targets(db, run_id)] == [True] * 5  # waiting, not left out
    assert value(db, "select count(*) from rules.exceptions") == 0  # apply writes no row per target
    db.execute("select holdfast.resume_run(%s)", [str(run_id)])
    assert work(db) == 3
    assert status(db, run_id) == "APPLIED"


def test_a_run_without_included_targets_is_applied_at_once_with_a_reason(db: DB) -> None:
    """A-122, C-16"""
    define(db)
    empty = UUID(str(preview(db, [], unchanged=5)["run_id"]))
    chosen = previewed(db, 2)

    assert applied(db, empty)["status"] == "APPLIED"
    assert applied(db, chosen, only_ids=[])["status"] == "APPLIED"

    for run_id in (empty, chosen):
        assert run(db, run_id)["reason"] == "no_targets"
        assert [move[:2] for move in moves(db, run_id)] == [
            ("new", "PREVIEW"), ("PREVIEW", "QUEUED"), ("QUEUED", "APPLYING"), ("APPLYING", "APPLIED"),
        ]  # fmt: skip


def test_a_plan_is_named_by_its_first_eight_digits_or_more(db: DB) -> None:
    run_id = previewed(db)
    whole = run(db, run_id)["plan_hash"]
    other = ("0" if whole[0] != "0" else "1") + whole[1:8]

    assert refused(db, "select rules.apply(%s, %s)", [run_id, whole[:7]]) == "RN005"
    assert refused(db, "select rules.apply(%s, %s)", [run_id, "latest!!"]) == "RN005"
    assert refused(db, "select rules.apply(%s, %s)", [run_id, other]) == "RN010"
    assert status(db, run_id) == "PREVIEW"
    assert applied(db, run_id, plan=whole[:8].upper())["is_new"] is True


def test_an_expired_plan_is_not_applied(db: DB, clock: Clock) -> None:
    run_id = previewed(db, expires_in=timedelta(hours=1))
    clock.advance(timedelta(minutes=61))

    assert refused(db, APPLY, [run_id]) == "RN010"
    assert status(db, run_id) == "PREVIEW"


def test_an_item_is_in_one_open_run_of_its_tenant_and_channel(db: DB) -> None:
    define(db)
    define(db, "other")
    first, second = (UUID(str(preview(db, rows(4, first=at))["run_id"])) for at in (1, 4))
    applied(db, first)

    with pytest.raises(psycopg.Error) as raised:
        db.execute(APPLY, [second])
    assert raised.value.sqlstate == "RN010"
    assert str(first) in str(raised.value)
    assert " 1 " in str(raised.value)
    answer = applied(db, second, leave_out_shared=True)
    assert (answer["included"], answer["left_out"]) == (3, 1)
    elsewhere = UUID(str(preview(db, rows(4), channel="other")["run_id"]))
    others = UUID(str(preview(db, rows(4), tenant="b")["run_id"]))
    assert applied(db, elsewhere)["status"] == applied(db, others)["status"] == "QUEUED"
    work(db)
    assert (status(db, first), status(db, second)) == ("APPLIED", "APPLIED")
    again = UUID(str(preview(db, rows(4))["run_id"]))
    assert applied(db, again)["included"] == 4


def test_a_retry_is_refused_while_its_items_are_in_another_open_run(db: DB) -> None:
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-1"))
    other = UUID(str(preview(db, [row("SKU-1")])["run_id"]))
    applied(db, other)

    assert refused(db, "select * from rules.retry_failed(%s)", [run_id]) == "RN010"
    assert refused(db, "select holdfast.retry(%s)", [str(run_id)]) == "RN010"
    assert status(db, run_id) == "PARTIAL"
    work(db)
    assert [t["outcome"] for t in called(db, "retry_failed", run_id=run_id)] == ["queued"]


@pytest.mark.own_database
def test_of_two_runs_applied_at_once_one_is_refused(db: DB, dsn: str) -> None:
    define(db)
    pair = [UUID(str(preview(db, rows(3))["run_id"])) for _ in range(2)]

    answers = at_once(dsn, *(lambda c, run_id=run_id: refused(c, APPLY, [run_id]) for run_id in pair))

    assert sorted(answers, key=str) == sorted([None, "RN010"], key=str)
    assert sorted(status(db, run_id) for run_id in pair) == ["PREVIEW", "QUEUED"]


def test_pause_resume_and_stop(db: DB) -> None:
    """A-13: a stopped run ends by what was applied, and what was not tried keeps its state"""
    run_id = previewed(db, 4)
    applied(db, run_id)
    held = claim(db, batch=1)
    db.execute("select holdfast.pause_run(%s, 'lunch')", [str(run_id)])
    assert claim(db) == []
    db.execute("select holdfast.resume_run(%s)", [str(run_id)])
    settle(db, held)
    db.execute("select holdfast.stop_run(%s, 'enough')", [str(run_id)])

    assert status(db, run_id) == "PARTIAL"
    assert statuses(db, run_id) == ["APPLIED"] + ["QUEUED"] * 3
    assert [t["outcome"] for t in called(db, "retry_all", run_id=run_id)] == ["queued"] * 3
    assert status(db, run_id) == "APPLYING"
    work(db)
    assert status(db, run_id) == "APPLIED"


def test_a_queued_run_that_is_stopped_passes_through_applying_to_failed(db: DB) -> None:
    run_id = previewed(db, 2)
    applied(db, run_id)

    db.execute("select holdfast.stop_run(%s)", [str(run_id)])

    assert [move[1] for move in moves(db, run_id)] == ["PREVIEW", "QUEUED", "APPLYING", "FAILED"]
    assert refused(db, "select holdfast.cancel(%s)", [str(run_id)]) == "RN010"
    called(db, "retry_all", run_id=run_id)
    work(db)
    assert status(db, run_id) == "APPLIED"


def test_a_run_cannot_be_created_in_another_state_or_without_a_plan(db: DB) -> None:
    """A-09, A-104, A-105, C-14: QUEUED is reached by both moves, in one transaction"""
    insert = """insert into holdfast.runs (id, machine, name, state, created_at, finished_at)
                values (holdfast.uuid7(), 'rules.run', 'r', %s, holdfast.clock(), %s::timestamptz)"""
    for state in ("QUEUED", "APPLYING", "APPLIED", "PARTIAL", "FAILED", "ROLLED_BACK"):
        assert refused(db, insert, [state, None]) == "RN007"
    assert refused(db, "select holdfast.start_run('rules.run', 'r', 'rules.target')") == "RN005"

    with db.transaction():
        run_id = previewed(db)
        applied(db, run_id)
    assert [move[1] for move in moves(db, run_id)] == ["PREVIEW", "QUEUED"]


def test_a_run_gets_no_targets_after_its_preview(db: DB) -> None:
    run_id = previewed(db)

    with db.transaction():
        db.execute("select holdfast.stage_steps()")
        db.execute("insert into pg_temp.staged_steps (kind) values ('rules:shop')")
        assert refused(db, "select holdfast.take_staged('rules.target', %s)", [run_id]) == "RN005"
    assert value(db, "select count(*) from holdfast.run_steps") == 3


def test_another_runs_targets_cannot_be_chosen(db: DB) -> None:
    run_id, other = previewed(db), previewed(db, channel="other")

    assert refused(db, "select rules.apply(%s, only_ids => %s)", [run_id, ids(db, other)]) == "RN005"
    assert refused(db, "select rules.apply(%s, only_ids => '{1}', without_ids => '{2}')", [run_id]) == "RN005"
    assert refused(db, "select rules.apply(%s, first => 0)", [run_id]) == "RN005"
    assert refused(db, "select rules.apply(%s)", [UUID(int=7)]) == "RN004"
