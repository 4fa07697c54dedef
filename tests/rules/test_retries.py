"""Failures: backoff, budgets, ends by what was applied, the dead letter, and retries by hand."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast.models import Done, Fail, Release, Retry
from holdfast.testing import Clock
from kernel.steps import rescue, value
from rules.plans import (
    applied,
    called,
    claim,
    fails,
    ids,
    moves,
    previewed,
    refused,
    run,
    settle,
    status,
    statuses,
    target_moves,
    targets,
    work,
)

DB = Connection[Any]
TIMEOUT = {"message": "no answer", "class": "TIMEOUT"}


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def tries_until_failed(db: DB, clock: Clock) -> list[timedelta]:
    """Fail the only target at each try, and give the waits between them."""
    waits = []
    while True:
        steps = claim(db)
        settle(db, steps, Retry(TIMEOUT))
        (due,) = db.execute("select due_at - holdfast.clock() from holdfast.steps").fetchone() or (None,)
        if due is None:
            return waits
        waits.append(due)
        clock.advance(due)


def test_a_target_that_always_fails_is_tried_four_times_and_then_dead(db: DB, clock: Clock) -> None:
    """A-28, A-33, A-34, A-38 to A-42, A-44 to A-46, A-49, A-51, A-61, A-84, C-01: ten o'clock, and 2, 6 and 14 later"""
    clock.freeze()
    clock.fix_chance(0.5)
    run_id = previewed(db, 1)
    applied(db, run_id)

    assert tries_until_failed(db, clock) == [seconds(2), seconds(4), seconds(8)]

    (target,) = targets(db, run_id)
    assert (target["status"], target["attempts"], target["reason"]) == ("FAILED", 3, "max_retries")
    assert (target["error_class"], target["retryable"]) == ("TIMEOUT", True)
    assert status(db, run_id) == "FAILED"
    assert run(db, run_id)["error"] == "no answer"
    keys = db.execute("select event_key from rules.events where event_type = 'automation.target.apply' order by id")
    assert [key for (key,) in keys] == [f"{run_id}:{target['id']}:apply:{n}" for n in range(4)]
    assert value(db, "select count(*) from holdfast.dead_steps") == 1
    again = [("QUEUED", "APPLYING", "worker"), ("APPLYING", "QUEUED", "worker")]
    assert target_moves(db, target["id"])[1:] == [*again * 3, again[0], ("APPLYING", "FAILED", "worker")]


def test_attempts_count_from_zero_and_a_retry_is_due_later(db: DB, clock: Clock) -> None:
    """A-33, A-50, A-51: any worker takes it at its due time"""
    clock.freeze()
    run_id = previewed(db, 1)
    applied(db, run_id)
    assert targets(db, run_id)[0]["attempts"] == 0
    settle(db, claim(db), Retry(TIMEOUT))

    (target,) = targets(db, run_id)
    assert (target["status"], target["attempts"], status(db, run_id)) == ("QUEUED", 1, "APPLYING")
    assert target["next_due_at"] > clock.now()
    assert claim(db) == []
    clock.advance(seconds(2.4))
    assert len(claim(db, worker="another")) == 1


def test_each_parameter_of_the_policy_can_be_set(db: DB, clock: Clock) -> None:
    """A-43"""
    clock.freeze()
    clock.fix_chance(0.75)
    db.execute("select holdfast.define_policy('slow', tries => 4, base => '4 s', growth => 3, longest => '25 s', "
               "jitter => 0.1)")  # fmt: skip
    db.execute("select holdfast.define_kind('rules:shop', policy => 'slow')")
    run_id = previewed(db, 1)
    applied(db, run_id)

    assert tries_until_failed(db, clock) == [seconds(4.2), seconds(12.6), seconds(26.25)]  # 4, 12 and 36, then 5 % more


def test_waits_are_whole_milliseconds_with_a_fifth_of_jitter_after_the_cap(db: DB) -> None:
    """A-40, A-42, A-46 to A-48, C-02"""
    bounds = (
        "select array_agg(holdfast.backoff('rules.target', %s, c) order by c) from unnest('{0,0.999999}'::float8[]) c"
    )
    samples = db.execute(
        "select holdfast.backoff('rules.target', 1, random()) from generate_series(1, 2000)"
    ).fetchall()
    capped = db.execute("select holdfast.backoff('rules.target', 6, random()) from generate_series(1, 2000)").fetchall()
    exact = db.execute("select holdfast.backoff('rules.target', n, 0.5) from generate_series(1, 7) n").fetchall()

    assert [wait.total_seconds() for (wait,) in exact] == [2, 4, 8, 16, 32, 64, 64]
    assert all(1.6 <= wait.total_seconds() < 2.4 and wait.microseconds % 1000 == 0 for (wait,) in samples)
    assert abs(sum(wait.total_seconds() for (wait,) in samples) / 2000 - 2) < 0.05
    assert all(51.2 <= wait.total_seconds() < 76.8 for (wait,) in capped)
    assert value(db, bounds, 1) == [seconds(1.6), seconds(2.399)]
    assert value(db, bounds, 6) == [seconds(51.2), seconds(76.799)]


def test_a_run_ends_by_what_was_applied(db: DB) -> None:
    """A-05 to A-07, A-12, A-13, A-108, C-08: all, some or none; and only when no target is left"""
    ends = {}
    for failing in ((), ("SKU-1",), ("SKU-1", "SKU-2", "SKU-3")):
        run_id = previewed(db, 3)
        applied(db, run_id)
        work(db, fails(*failing))
        ends[failing] = status(db, run_id)
        assert run(db, run_id)["counts"]["failed"] == len(failing)
        if failing:
            assert moves(db, run_id)[-1][1:] == (ends[failing], "worker")

    assert list(ends.values()) == ["APPLIED", "PARTIAL", "FAILED"]


def test_an_unrecoverable_error_uses_no_retry(db: DB) -> None:
    """A-28, A-62 as far as a channel says so"""
    run_id = previewed(db, 2)
    applied(db, run_id)

    assert work(db, fails("SKU-2")) == 2

    target = targets(db, run_id)[1]
    assert (target["status"], target["attempts"], target["reason"], target["retryable"]) == (
        "FAILED", 0, "unrecoverable", False,
    )  # fmt: skip


def test_a_timeout_of_a_target_is_its_reason(db: DB) -> None:
    """A-63, A-64, C-09: the handler says so; the thresholds are the channel's"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db, fails("SKU-1", error={"message": "60 s", "class": "TIMEOUT", "reason": "timeout"}))

    assert targets(db, run_id)[0]["reason"] == "timeout"
    assert db.execute("select request_timeout, target_timeout from rules.channels").fetchall() == [
        (seconds(10), seconds(60))
    ]


def test_a_worker_that_dies_leaves_no_target_in_applying(db: DB, clock: Clock) -> None:
    """A-121, C-15"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    for expected in ("QUEUED", "QUEUED", "QUEUED", "FAILED"):
        claim(db)
        clock.advance(seconds(31))
        rescue(db)
        assert statuses(db, run_id) == [expected] * 2
        clock.advance(seconds(10))

    assert status(db, run_id) == "FAILED"


def test_a_worker_that_lost_its_lease_settles_nothing(db: DB, clock: Clock) -> None:
    """A-121, X-02, X-06: neither the target nor the ledger"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    late = claim(db)
    clock.advance(seconds(31))
    rescue(db)
    clock.advance(seconds(10))
    taken = claim(db, worker="another")

    assert settle(db, late) == []
    assert value(db, "select count(*) from rules.price_changes") == 0
    settle(db, taken, Done({"effect": "found"}))
    assert db.execute("select effect from rules.price_changes").fetchall() == [("found",)]


def test_a_retry_by_hand_has_a_fresh_budget_and_keys_that_go_on(db: DB, clock: Clock) -> None:
    """A-13, A-15, A-36, A-69, A-84, C-13, C-78: it stays APPLYING while a target has retries left"""
    clock.freeze()
    run_id = previewed(db, 2)
    applied(db, run_id)
    first, second = ids(db, run_id)
    ends = []
    for _ in range(4):
        work(db, fails("SKU-2", error=TIMEOUT, final=False))
        ends.append(status(db, run_id))
        clock.advance(seconds(20))
    assert ends == ["APPLYING"] * 3 + ["PARTIAL"]
    before = run(db, run_id)

    assert called(db, "retry_failed", run_id=run_id) == [
        {"target_id": second, "item_id": "SKU-2", "outcome": "queued", "why": None}
    ]
    after = run(db, run_id)
    assert (after["status"], after["finished_at"]) == ("APPLYING", None)
    assert (after["queued_at"], after["started_at"]) == (before["queued_at"], before["started_at"])
    assert (targets(db, run_id)[1]["attempts"], targets(db, run_id)[1]["apply_seq"]) == (0, 4)
    assert work(db) == 1  # what was applied is not sent again

    assert (status(db, run_id), statuses(db, run_id)) == ("APPLIED", ["APPLIED"] * 2)
    assert [move[1:] for move in moves(db, run_id)][-2:] == [("APPLYING", "api"), ("APPLIED", "worker")]
    assert ("FAILED", "QUEUED", "api") in target_moves(db, second)
    keys = db.execute("select event_key from rules.events where event_key like '%%:apply:%%' order by event_key")
    assert [key for (key,) in keys] == [f"{run_id}:{first}:apply:0"] + [
        f"{run_id}:{second}:apply:{n}" for n in range(5)
    ]


def test_a_claim_that_was_given_back_is_the_same_try(db: DB) -> None:
    """A-84, C-13"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    settle(db, claim(db), Release())
    settle(db, claim(db))

    (target,) = targets(db, run_id)
    keys = db.execute("select event_key from rules.events where event_key like '%%:apply:%%'").fetchall()
    assert keys == [(f"{run_id}:{target['id']}:apply:0",)]
    assert (target["attempts"], target["apply_seq"]) == (0, 0)


def test_a_try_that_used_no_retry_has_a_key_of_its_own(db: DB, clock: Clock) -> None:
    """A-84, C-13: `apply_seq` is the last part of the key of the try that is under way, and then of the next one"""
    clock.freeze()
    run_id = previewed(db, 1)
    applied(db, run_id)
    (target,) = ids(db, run_id)
    uncharged = Retry({"message": "429", "class": "RATE_LIMIT"}, timedelta(0), is_charged=False)
    outcomes = [uncharged, Retry(TIMEOUT), Release(), uncharged, *[Retry(TIMEOUT)] * 2, Fail(TIMEOUT), "again", Done()]
    seen = []
    for outcome in outcomes:
        if outcome == "again":
            called(db, "retry_failed", run_id=run_id)
            continue
        steps = claim(db)
        number = targets(db, run_id)[0]["apply_seq"]
        key = f"{run_id}:{target}:apply:{number}"
        written = value(db, "select rules.write_event(%s, 'automation.target.apply')", key)
        assert value(db, "select max(id) from rules.events where event_key = %s", key) == written
        settle(db, steps, outcome)
        seen.append((number, targets(db, run_id)[0]["apply_seq"]))
        clock.advance(seconds(20))

    assert seen == [(0, 1), (1, 2), (2, 2), (2, 3), (3, 4), (4, 5), (5, 5), (6, 6)]
    assert value(db, "select count(*) from rules.stored_events") == 0
    keys = db.execute("select event_key from rules.events where event_key like '%%:apply:%%' order by id").fetchall()
    assert keys == [(f"{run_id}:{target}:apply:{number}",) for number in range(7)]


def test_a_retry_takes_what_it_is_told_to_and_reports_the_rest(db: DB) -> None:
    """A-15, A-68, A-70: ids that are not FAILED, or of another run, change nothing"""
    stale = {"message": "changed", "reason": "stale", "found": {"unit_amount": 1}, "class": "VALIDATION"}
    run_id, other = previewed(db, 5), previewed(db, 1, channel="other")
    applied(db, run_id)
    work(db, lambda given: {
        "SKU-1": Done({"effect": "found"}), "SKU-2": Fail(stale), "SKU-3": Fail(TIMEOUT), "SKU-4": Fail(TIMEOUT),
    }.get(given["item_id"], Fail({"message": "404", "class": "NOT_FOUND"})))  # fmt: skip
    assert targets(db, run_id)[1]["found_json"] == {"unit_amount": 1}
    own, (foreign,) = ids(db, run_id), ids(db, other)

    report = called(db, "retry_failed", run_id=run_id, only_ids=[own[0], own[1], own[2], foreign])
    assert [(t["target_id"], t["outcome"]) for t in report] == [
        (own[0], "skipped"), (own[1], "skipped"), (own[2], "queued"), (foreign, "skipped"),
    ]  # fmt: skip
    assert all((t["why"] is None) == (t["outcome"] == "queued") for t in report)
    assert statuses(db, run_id) == ["APPLIED", "FAILED", "QUEUED", "FAILED", "FAILED"]
    assert refused(db, "select rules.retry_failed(%s)", [run_id]) == "RN010"
    work(db)

    by_class = called(db, "retry_failed", run_id=run_id, classes=["TIMEOUT"], without_ids=[own[4]])
    assert [(t["target_id"], t["outcome"]) for t in by_class] == [
        (own[1], "skipped"), (own[3], "queued"), (own[4], "skipped"),
    ]  # fmt: skip
    work(db)
    assert [t["outcome"] for t in called(db, "retry_failed", run_id=run_id, only_ids=[own[1]])] == ["skipped"]
    assert status(db, run_id) == "PARTIAL"


def test_retry_all_of_a_failed_run_sends_all_that_was_not_applied(db: DB) -> None:
    """A-16"""
    run_id = previewed(db, 3)
    applied(db, run_id)
    work(db, fails("SKU-1", "SKU-2", "SKU-3"))
    assert status(db, run_id) == "FAILED"

    assert len(called(db, "retry_all", run_id=run_id, actor="ann", reason="fixed")) == 3
    assert moves(db, run_id)[-1] == ("FAILED", "APPLYING", "api")
    assert work(db) == 3
    assert status(db, run_id) == "APPLIED"


@pytest.mark.parametrize("state", ["PREVIEW", "QUEUED", "APPLYING", "APPLIED"])
def test_a_run_that_cannot_be_retried_says_so(db: DB, state: str) -> None:
    """A-19, A-21, A-107: a retry is offered where something failed, and nowhere else"""
    run_id = previewed(db, 1)
    if state != "PREVIEW":
        applied(db, run_id)
    if state in ("APPLYING", "APPLIED"):
        held = claim(db)
        if state == "APPLIED":
            settle(db, held)
    assert status(db, run_id) == state

    for function in ("rules.retry_failed(%s)", "rules.retry_all(%s)"):
        assert refused(db, f"select {function}", [run_id]) == "RN010"
    if state in ("PREVIEW", "APPLIED"):
        assert refused(db, "select holdfast.retry(%s)", [str(run_id)]) == "RN010"
    assert status(db, run_id) == state


def test_a_run_that_was_rolled_back_asks_for_a_new_run(db: DB) -> None:
    """A-20"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db)
    called(db, "rollback", run_id=run_id, apply=True)
    work(db)

    for function in ("rules.retry_all(%s)", "rules.apply(%s)"):
        with pytest.raises(Exception, match="new run") as raised:
            db.execute(f"select {function}", [run_id])
        assert getattr(raised.value, "sqlstate", None) == "RN010"


def test_the_dead_letter_is_a_report_that_changes_nothing(db: DB, clock: Clock) -> None:
    """A-65 to A-67, C-06, C-10"""
    run_id = previewed(db, 4, project_id="p1")
    previewed(db, 1, channel="other", project_id="p2")
    applied(db, run_id)
    errors = {"SKU-1": TIMEOUT, "SKU-2": {"message": "404", "class": "NOT_FOUND"}, "SKU-3": {"message": "?"}}
    work(db, lambda given: Fail(errors[given["item_id"]]) if given["item_id"] in errors else Done())
    clock.advance(timedelta(hours=25))

    report, again = (value(db, "select rules.dlq_report('p1')") for _ in range(2))
    assert report == again
    assert (report["project"], report["total"], report["olderThan24h"]) == ("p1", 3, 3)
    assert report["byClass"] == {"TIMEOUT": 1, "NOT_FOUND": 1, "UNKNOWN": 1}
    assert [sentence.split(" ")[0] for sentence in report["advice"]] == ["1", "1", "3"]  # of the network, gone, old
    assert {(e["itemId"], e["retryable"]) for e in report["entries"]} == {
        ("SKU-1", True), ("SKU-2", False), ("SKU-3", True),
    }  # fmt: skip
    assert all(e["ruleRunId"] == str(run_id) and e["failedAt"] and e["attempts"] == 0 for e in report["entries"])
    assert [(e["targetId"], e["error"], e["errorClass"]) for e in report["entries"]] == [
        (target, error["message"], error.get("class", "UNKNOWN"))
        for target, error in zip(ids(db, run_id), errors.values(), strict=False)
    ]
    assert [e["reason"] for e in report["entries"]] == ["unrecoverable"] * 3
    assert value(db, "select rules.dlq_report('p2')")["total"] == 0
    listed = "select count(*) from rules.rule_targets where status = 'FAILED' and resolved_at is null"
    assert value(db, listed) == report["total"]

    second = ids(db, run_id)[1]
    assert called(db, "resolve", run_id=run_id, targets=[second], reason="gone") == [{"resolve": second}]
    assert value(db, "select rules.dlq_report('p1')")["total"] == value(db, listed) == 2
    assert statuses(db, run_id).count("FAILED") == 3


def test_the_dead_letter_gives_each_target_the_reason_that_the_view_gives(db: DB, clock: Clock) -> None:
    """A-61 to A-63, A-67"""
    clock.freeze()
    run_id = previewed(db, 5)
    applied(db, run_id)
    outcomes = {
        "SKU-1": Retry(TIMEOUT),
        "SKU-2": Fail({"message": "404", "class": "NOT_FOUND"}),
        "SKU-3": Fail({**TIMEOUT, "reason": "timeout"}),
        "SKU-4": Fail({**TIMEOUT, "unknown": True}),
        "SKU-5": Fail({"message": "changed", "reason": "stale"}),
    }
    for _ in range(4):
        work(db, lambda given: outcomes[given["item_id"]])
        clock.advance(seconds(20))

    entries = value(db, "select rules.dlq_report()")["entries"]

    assert {entry["itemId"]: entry["reason"] for entry in entries} == {
        "SKU-1": "max_retries", "SKU-2": "unrecoverable", "SKU-3": "timeout", "SKU-4": "outcome_unknown",
        "SKU-5": "stale",
    }  # fmt: skip
    assert {entry["targetId"]: entry["reason"] for entry in entries} == {
        target["id"]: target["reason"] for target in targets(db, run_id)
    }


# fmt: off
ADVICE: list[tuple[dict[str, int], int, list[str]]] = [
    ({}, 0, []),
    ({"RATE_LIMIT": 20, "UNKNOWN": 80}, 0, []),
    ({"RATE_LIMIT": 21, "UNKNOWN": 79}, 0,
     ["21 targets hit a rate limit: lower the limit of the channel before you retry them"]),
    ({"NETWORK": 10, "UNKNOWN": 90}, 0, []),
    ({"NETWORK": 4, "TIMEOUT": 4, "SERVER_ERROR": 3, "UNKNOWN": 89}, 0,
     ["11 targets failed on the way: check the network and the channel's health, then retry them"]),
    ({"AUTHORIZATION": 1, "UNKNOWN": 99}, 0,
     ["1 targets were not authorized: renew the channel's credentials, then retry them"]),
    ({"VALIDATION": 1, "UNKNOWN": 99}, 0,
     ["1 targets were refused as invalid: correct the rule or the items, then preview again"]),
    ({"NOT_FOUND": 1, "UNKNOWN": 99}, 0, ["1 items no longer exist: resolve their targets"]),
    ({"UNKNOWN": 7}, 3, ["3 targets are older than 24 hours: retry or resolve them"]),
]
# fmt: on


@pytest.mark.parametrize(("by_class", "older", "expected"), ADVICE)
def test_the_dead_letter_advises_by_share_and_by_class(
    db: DB, by_class: dict[str, int], older: int, expected: list[str]
) -> None:
    """A-67: more than 20 % of rate limits and 10 % of failures on the way; the others from the first one"""
    assert value(db, "select rules.advice(%s, %s)", Jsonb(by_class), older) == expected


def test_the_advice_keeps_its_order_when_all_of_it_applies(db: DB) -> None:
    classes = ["RATE_LIMIT", "NETWORK", "AUTHORIZATION", "VALIDATION", "NOT_FOUND"]
    counts = {name: 50 - number for number, name in enumerate(classes)}
    sentences = value(db, "select rules.advice(%s, %s)", Jsonb(counts), 35)

    assert [int(sentence.split(" ")[0]) for sentence in sentences] == [50, 49, 48, 47, 46, 35]


def test_a_retry_refuses_a_class_that_does_not_exist_and_two_choices_at_once(db: DB) -> None:
    """A-68 to A-70: the error names the argument, and nothing is queued"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-2"))
    first, second = ids(db, run_id)
    wrong: list[tuple[str, str, dict[str, Any]]] = [
        ("classes", "NETWROK", {"classes": ["TIMEOUT", "NETWROK"]}),
        ("only", "both", {"only_ids": [second], "without_ids": [first]}),
    ]

    for where, shown, given in wrong:
        with pytest.raises(psycopg.Error) as exc_info:
            called(db, "retry_failed", run_id=run_id, **given)
        diag = exc_info.value.diag
        assert (exc_info.value.sqlstate, diag.column_name) == ("RN005", where)
        assert shown in str(diag.message_primary)
    assert statuses(db, run_id) == ["APPLIED", "FAILED"]


def test_a_resolve_that_names_a_target_of_another_run_is_refused_and_marks_nothing(db: DB) -> None:
    run_id, other_id = previewed(db, 2), previewed(db, 2, channel="other")
    for each in (run_id, other_id):
        applied(db, each)
    work(db, fails("SKU-2"))
    first, second = ids(db, run_id)
    stray = ids(db, other_id)[1]

    with pytest.raises(psycopg.Error) as exc_info, db.transaction():
        called(db, "resolve", run_id=run_id, targets=[first, second, stray])

    error = exc_info.value
    assert (error.sqlstate, str(error.diag.message_primary).endswith(f" {stray}")) == ("RN005", True)
    assert value(db, "select count(*) from holdfast.resolutions") == 0
    assert called(db, "resolve", run_id=run_id, targets=[first, second]) == [{"resolve": second}]


def test_a_target_that_was_resolved_retried_and_failed_again_can_be_resolved_again(db: DB, clock: Clock) -> None:
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-2"))
    second = ids(db, run_id)[1]
    resolve = {"run_id": run_id, "targets": [second]}
    assert called(db, "resolve", **resolve, reason="gone") == [{"resolve": second}]
    called(db, "retry_failed", run_id=run_id)
    clock.advance(seconds(1))
    work(db, fails("SKU-2"))
    assert value(db, "select count(*) from holdfast.dead_steps") == 1

    assert called(db, "resolve", **resolve, reason="really") == [{"resolve": second}]

    assert value(db, "select count(*) from holdfast.dead_steps") == 0
    assert value(db, "select reason from holdfast.resolutions") == "really"
    assert called(db, "resolve", **resolve) == []
