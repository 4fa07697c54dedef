"""What the guards of rollbacks are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from uuid import UUID

from psycopg.types.json import Jsonb

from holdfast.models import Retry
from properties.mutants import Cut, mutant
from properties.scenarios import DB
from rules.plans import applied, called, claim, fails, ids, previewed, refused, settle, status, work

UNKNOWN = {"message": "lost", "class": "TIMEOUT", "reason": "outcome_unknown"}


def _ended(db: DB, *failing: str, error: dict[str, str] | None = None) -> UUID:
    run_id = previewed(db, 3)
    applied(db, run_id)
    work(db, fails(*failing, error=error))
    return run_id


def a_run_that_is_rolled_back_is_not_retried(db: DB) -> None:
    """R27: the error names the rollback, not the items that both have"""
    run_id = _ended(db, "SKU-3")
    (undo,) = called(db, "rollback", run_id=run_id, apply=True)
    message = None
    try:
        with db.transaction():
            db.execute("select rules.retry_failed(%s)", [run_id])
    except Exception as error:  # noqa: BLE001 - the story is about its text
        message = str(error)
    assert message is not None
    assert "rolled back by" in message
    assert str(undo["rollback_id"]) in message


def a_part_is_rolled_back_only_of_a_partial_run(db: DB) -> None:
    """C-07"""
    run_id = _ended(db)
    assert refused(db, "select rules.rollback(%s, array[%s]::bigint[])", [run_id, ids(db, run_id)[0]]) == "RN010"


def unknown_outcomes_are_settled_first(db: DB) -> None:
    """R27"""
    run_id = _ended(db, "SKU-3", error=UNKNOWN)
    (answer,) = called(db, "rollback", run_id=run_id)
    assert (answer["rollback_id"], status(db, run_id)) == (None, "APPLYING")


def what_was_stopped_with_an_unknown_outcome_is_read_first(db: DB) -> None:
    """R27: no answer came, and the run was stopped before the next try: the price may have been written"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    first, second = claim(db)
    settle(db, [first])
    settle(db, [second], Retry({"message": "lost", "class": "TIMEOUT", "unknown": True}))
    db.execute("select holdfast.stop_run(%s)", [str(run_id)])
    assert status(db, run_id) == "PARTIAL"
    (answer,) = called(db, "rollback", run_id=run_id)
    assert (answer["unknown"], status(db, run_id)) == (1, "APPLYING")


def a_rollback_is_of_what_was_planned(db: DB) -> None:
    """R27: a plan that another rollback overtook is refused"""
    run_id = _ended(db, "SKU-3")
    (old,) = called(db, "rollback", run_id=run_id)
    called(db, "rollback", run_id=run_id, only_ids=ids(db, run_id)[:1], apply=True)
    work(db)
    assert refused(db, "select rules.apply(%s)", [old["rollback_id"]]) == "RN010"


def force_needs_a_conflict(db: DB) -> None:
    run_id = _ended(db)
    seen = Jsonb([{"target_id": ids(db, run_id)[0], "unit_amount": 800}])
    assert refused(db, "select rules.rollback(%s, force => %s)", [run_id, seen]) == "RN005"


# fmt: off
UNDO_GUARDS = [
    mutant("a retry beside a rollback", a_run_that_is_rolled_back_is_not_retried,
           Cut("rules.refuse_undone", "undone", "if true then")),
    mutant("a part of an applied run", a_part_is_rolled_back_only_of_a_partial_run,
           Cut("rules.check_rollback", "scope", "return; perform holdfast.refuse('RN010', '',")),
    mutant("rollback without settling unknown outcomes", unknown_outcomes_are_settled_first,
           Cut("rules.plan_rollback", "unknown", "unknown := 0;")),
    mutant("rollback without reading what was stopped", what_was_stopped_with_an_unknown_outcome_is_read_first,
           Cut("rules.unknown_targets", "open", "and s.state = 'FAILED'")),
    mutant("a rollback of an older plan", a_rollback_is_of_what_was_planned,
           Cut("rules.check_undoable", "planned", "is distinct from (run.succeeded, undone.rolled_back)) then")),
    mutant("force without a conflict", force_needs_a_conflict,
           Cut("rules.check_forced", "conflict", "or (false")),
]
# fmt: on
