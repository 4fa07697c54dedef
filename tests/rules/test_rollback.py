"""Rollback: the inverse plan, the two moves of one settle, conflicts, what is refused, and unknown outcomes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast.models import Done, Fail, Outcome
from kernel.steps import value
from rules.plans import (
    applied,
    called,
    claim,
    define,
    fails,
    ids,
    preview,
    previewed,
    refused,
    row,
    run,
    settle,
    status,
    statuses,
    target_moves,
    targets,
    work,
)

DB = Connection[Any]
CONFLICT = {"message": "conflict", "class": "VALIDATION", "reason": "conflict"}
UNKNOWN = {"message": "lost", "class": "TIMEOUT", "reason": "outcome_unknown"}


def ended(db: DB, count: int = 3, *failing: str, error: dict[str, Any] | None = None) -> UUID:
    """Apply so many targets, of which some fail."""
    run_id = previewed(db, count)
    applied(db, run_id)
    work(db, fails(*failing, error=error))
    return run_id


def rollback(db: DB, run_id: UUID, **options: Any) -> dict[str, Any]:
    """Plan a rollback and give what the function returns."""
    (answer,) = called(db, "rollback", run_id=run_id, **options)
    return answer


def rolled_back(db: DB, run_id: UUID, **options: Any) -> UUID:
    """Plan a rollback, apply it and let it work."""
    undo = rollback(db, run_id, apply=True, **options)["rollback_id"]
    work(db)
    return UUID(str(undo))


def test_a_rollback_is_the_inverse_plan_and_moves_both_targets(db: DB) -> None:
    """A-08, A-17, A-123, C-95: price and compare-at, null included, and only what the rule wrote"""
    define(db)
    rows = [row("both", 1000, 800, compare_before=None, compare_after=1000, writes_compare_at=True),
            row("price", 500, 400, compare_before=900, compare_after=900),
            row("compare", 700, 700, compare_before=800, compare_after=None, writes_compare_at=True)]  # fmt: skip
    run_id = UUID(str(preview(db, rows)["run_id"]))
    applied(db, run_id)
    work(db)

    undo = rollback(db, run_id)["rollback_id"]

    assert (run(db, undo)["source"], run(db, undo)["parent_run_id"], status(db, undo)) == (
        "rollback", run_id, "PREVIEW")  # fmt: skip
    forward = {t["item_id"]: t for t in targets(db, run_id)}
    back = {t["item_id"]: t for t in targets(db, undo)}
    assert forward.keys() == back.keys()
    for item, target in back.items():
        assert (target["before_json"], target["after_json"]) == (
            forward[item]["after_json"], forward[item]["before_json"])  # fmt: skip
        assert (target["writes_price"], target["writes_compare_at"]) == (
            forward[item]["writes_price"], forward[item]["writes_compare_at"])  # fmt: skip
    applied(db, undo)
    work(db)
    assert (status(db, undo), set(statuses(db, undo))) == ("APPLIED", {"APPLIED"})
    assert (status(db, run_id), set(statuses(db, run_id))) == ("ROLLED_BACK", {"ROLLED_BACK"})
    assert run(db, run_id)["counts"]["rolledBack"] == 3
    assert target_moves(db, ids(db, run_id)[0])[-1] == ("APPLIED", "ROLLED_BACK", "system")
    assert value(db, "select count(*) from rules.price_changes where source = 'rollback'") == 3


def test_the_last_target_moves_the_run_and_its_failed_targets_leave_the_dead_letter(db: DB) -> None:
    """A-18, A-29, A-35, A-123, C-06, C-07: a failure leaves its target APPLIED; the retry completes the rollback"""
    run_id = ended(db, 4, "SKU-4")
    assert value(db, "select count(*) from holdfast.dead_steps") == 1
    undo = rollback(db, run_id, apply=True)["rollback_id"]
    work(db, fails("SKU-2", error={"message": "down", "class": "SERVER_ERROR"}))

    assert (status(db, run_id), status(db, undo)) == ("PARTIAL", "PARTIAL")
    assert statuses(db, run_id) == ["ROLLED_BACK", "APPLIED", "ROLLED_BACK", "FAILED"]
    assert refused(db, "select rules.retry_failed(%s)", [run_id]) is None
    work(db, fails("SKU-4"))
    called(db, "retry_failed", run_id=undo)
    work(db)

    assert (status(db, run_id), status(db, undo)) == ("ROLLED_BACK", "APPLIED")
    assert statuses(db, run_id) == ["ROLLED_BACK", "ROLLED_BACK", "ROLLED_BACK", "FAILED"]
    assert targets(db, run_id)[3]["resolved_at"] is not None
    assert value(db, "select reason from holdfast.resolutions") == "run_rolled_back"
    assert value(db, "select count(*) from holdfast.dead_steps") == 0


def test_what_cannot_be_rolled_back_is_refused(db: DB) -> None:
    """A-105, C-07, R27: PREVIEW, QUEUED, APPLYING, FAILED, a second time, and a part of an APPLIED run"""
    statement = "select rules.rollback(%s)"
    run_id = previewed(db, 3)
    assert refused(db, statement, [run_id]) == "RN010"
    applied(db, run_id)
    assert refused(db, statement, [run_id]) == "RN010"
    settle(db, claim(db, batch=1))
    assert refused(db, statement, [run_id]) == "RN010"
    work(db)
    (first, *_) = ids(db, run_id)
    assert refused(db, "select rules.rollback(%s, array[%s]::bigint[])", [run_id, first]) == "RN010"
    rolled_back(db, run_id)
    assert refused(db, statement, [run_id]) == "RN010"
    failing = previewed(db, 2)
    applied(db, failing)
    work(db, fails("SKU-1", "SKU-2"))
    assert (status(db, failing), refused(db, statement, [failing])) == ("FAILED", "RN010")


def test_a_part_of_a_partial_run_is_rolled_back(db: DB) -> None:
    """A-109, C-07"""
    run_id = ended(db, 4, "SKU-4")
    first, second, third, fourth = ids(db, run_id)
    assert refused(db, "select rules.rollback(%s, array[%s]::bigint[])", [run_id, fourth]) == "RN005"

    undo = rolled_back(db, run_id, only_ids=[second])

    assert statuses(db, run_id) == ["APPLIED", "ROLLED_BACK", "APPLIED", "FAILED"]
    assert (status(db, run_id), status(db, undo)) == ("PARTIAL", "APPLIED")
    rest = rolled_back(db, run_id, without_ids=[first])
    assert [t["item_id"] for t in targets(db, rest)] == ["SKU-3"]
    rolled_back(db, run_id)
    assert status(db, run_id) == "ROLLED_BACK"
    assert third in ids(db, run_id)


def test_of_two_rollbacks_one_is_open_and_an_older_plan_is_refused(db: DB) -> None:
    """R27: neither a retry nor another rollback runs beside it"""
    run_id = ended(db, 4, "SKU-4")
    first, second, *_ = ids(db, run_id)
    old = rollback(db, run_id)["rollback_id"]
    undo = rollback(db, run_id, only_ids=[first], apply=True)["rollback_id"]

    assert refused(db, "select rules.rollback(%s, array[%s]::bigint[])", [run_id, second]) == "RN010"
    assert refused(db, "select rules.apply(%s)", [old]) == "RN010"
    assert refused(db, "select rules.retry_failed(%s)", [run_id]) == "RN010"
    assert refused(db, "select holdfast.retry(%s)", [str(run_id)]) == "RN010"
    work(db)
    assert status(db, undo) == "APPLIED"
    assert refused(db, "select rules.apply(%s)", [old]) == "RN010"
    assert called(db, "retry_failed", run_id=run_id)[0]["outcome"] == "queued"
    work(db)


def test_items_of_another_open_run_block_a_rollback(db: DB) -> None:
    """C-95: as for every apply"""
    run_id = ended(db, 2)
    other = UUID(str(preview(db, [row("SKU-2", 800, 700)])["run_id"]))
    applied(db, other)

    assert refused(db, "select rules.rollback(%s, apply => true)", [run_id]) == "RN010"
    work(db)
    rollback(db, run_id, apply=True)


def test_a_rollback_can_be_rolled_back(db: DB) -> None:
    """C-95"""
    run_id = ended(db, 2)
    undo = rolled_back(db, run_id)

    redo = rolled_back(db, undo)

    assert [status(db, each) for each in (run_id, undo, redo)] == ["ROLLED_BACK", "ROLLED_BACK", "APPLIED"]
    assert [t["after_json"]["unit_amount"] for t in targets(db, redo)] == [800, 800]


def test_a_conflict_fails_its_target_and_is_overwritten_only_by_name(db: DB) -> None:
    """R27: a plan that overwrites begins with what was seen"""
    run_id = ended(db, 2)
    first, second = ids(db, run_id)
    undo = rollback(db, run_id, apply=True)["rollback_id"]
    work(db, fails("SKU-2", error=CONFLICT))
    assert (status(db, undo), status(db, run_id)) == ("PARTIAL", "APPLIED")
    assert (targets(db, undo)[1]["reason"], targets(db, undo)[1]["retryable"]) == ("conflict", False)
    assert [each["outcome"] for each in called(db, "retry_failed", run_id=undo)] == ["skipped"]
    forced = "select rules.rollback(%s, force => %s)"
    for seen in (800, 1000, None):
        given = Jsonb([{"target_id": second, "unit_amount": seen, "compare_at": None}])
        assert refused(db, forced, [run_id, given]) == "RN005"
    for odd in (Jsonb({}), Jsonb([7]), Jsonb([{"target_id": first, "unit_amount": 900}]), Jsonb(None)):
        assert refused(db, forced, [run_id, odd]) == "RN005"

    again = rollback(db, run_id, force=Jsonb([{"target_id": second, "unit_amount": 900}]))["rollback_id"]

    (target,) = targets(db, again)
    assert (target["before_json"]["unit_amount"], target["after_json"]["unit_amount"]) == (900, 1000)
    assert run(db, again)["plan"]["forced"] == ["SKU-2"]
    applied(db, again)
    work(db)
    assert status(db, run_id) == "ROLLED_BACK"


def test_unknown_outcomes_are_read_before_a_rollback_is_planned(db: DB) -> None:
    """R26, R27: what was written after all is rolled back too"""
    run_id = ended(db, 4, "SKU-1", "SKU-2", "SKU-3", error=UNKNOWN)
    answer = rollback(db, run_id)
    assert (answer["rollback_id"], answer["unknown"], status(db, run_id)) == (None, 3, "APPLYING")
    assert refused(db, "select rules.rollback(%s)", [run_id]) == "RN010"
    seen = []

    def read(values: dict[str, Any]) -> Outcome:
        seen.append(values["only_reads"])
        outcomes: dict[str, Outcome] = {"SKU-1": Done({"effect": "found"}), "SKU-2": Fail({"reason": "not_applied"})}
        return outcomes.get(values["item_id"], Fail(UNKNOWN))

    work(db, read)

    assert (seen, statuses(db, run_id)) == ([True] * 3, ["APPLIED", "FAILED", "FAILED", "APPLIED"])
    assert rollback(db, run_id)["unknown"] == 1
    work(db, read)
    called(db, "resolve", run_id=run_id, targets=[ids(db, run_id)[2]])
    undo = rollback(db, run_id)["rollback_id"]
    assert [t["item_id"] for t in targets(db, undo)] == ["SKU-1", "SKU-4"]


def test_a_failed_run_with_unknown_outcomes_is_retried_first(db: DB) -> None:
    """C-08"""
    run_id = ended(db, 1, "SKU-1", error=UNKNOWN)
    assert status(db, run_id) == "FAILED"
    assert refused(db, "select rules.rollback(%s)", [run_id]) == "RN010"


def test_another_tenants_run_is_not_found(db: DB) -> None:
    """R34"""
    assert refused(db, "select rules.rollback(%s)", [UUID(int=7)]) == "RN004"
