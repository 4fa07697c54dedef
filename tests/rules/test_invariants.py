"""The document's invariants: refused by the database, and listed by violations() where somebody got around it."""

from __future__ import annotations

from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import Connection

from kernel.steps import value, violations
from rules.plans import applied, called, claim, define, fails, ids, preview, previewed, refused, row, rows, work

DB = Connection[Any]
APPLIED = "update holdfast.runs set state = 'APPLIED', finished_at = holdfast.clock() where id = %s"

DONE = """update holdfast.steps set state = 'APPLIED', finished_at = holdfast.clock(), lease_id = null,
          lease_owner = null, lease_until = null where state = 'APPLYING'"""


def test_times_of_a_run_follow_each_other(db: DB) -> None:
    """A-110, A-111"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db)

    for column, other in (("queued_at", "started_at"), ("started_at", "finished_at")):
        change = f"update holdfast.runs set {column} = {other} + interval '1 s' where id = %s"
        assert refused(db, change, [run_id]) == "23514"


@pytest.mark.unsound
def test_a_run_is_not_called_applied_by_hand_while_a_target_is_not(db: DB) -> None:
    """A-112: a target that was left out does not count"""
    run_id = previewed(db, 2)
    applied(db, run_id, only_ids=ids(db, run_id)[:1])
    claim(db)
    assert refused(db, APPLIED, [run_id]) == "RN001"

    db.execute("set session_replication_role = replica")
    db.execute(DONE)
    db.execute("reset session_replication_role")
    assert refused(db, APPLIED, [run_id]) is None


def test_attempts_are_never_negative_and_applied_targets_have_a_time(db: DB) -> None:
    """A-113, A-115"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    assert refused(db, "update holdfast.steps set failures = -1") == "23514"
    claim(db)

    undated = "update holdfast.steps set state = 'APPLIED', lease_id = null, lease_owner = null, lease_until = null"
    assert refused(db, undated) == "RN001"


@pytest.mark.parametrize("state", ["QUEUED", "APPLYING"])
def test_a_target_that_is_not_over_is_not_given_more_failures_than_tries(db: DB, state: str) -> None:
    """A-114: four tries are three retries"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    if state == "APPLYING":
        claim(db)

    for failures, expected in ((3, None), (4, "RN001"), (99, "RN001")):
        assert refused(db, "update holdfast.steps set failures = %s", [failures]) == expected
    assert violations(db) == []


def test_a_target_is_not_queued_again_by_hand_with_its_tries_used_up(db: DB) -> None:
    """A-114: unless it begins anew"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db, fails("SKU-1"))
    db.execute("update holdfast.steps set failures = 4")
    queue = "update holdfast.steps set state = 'QUEUED', finished_at = null, due_at = holdfast.clock()"

    assert refused(db, queue) == "RN001"
    assert refused(db, f"{queue}, failures = 0") is None


def test_a_plan_its_values_and_versions_cannot_be_changed(db: DB) -> None:
    previewed(db, 1)
    db.execute("set role hf_owner")
    try:
        for change in (
            "update rules.plans set plan_hash = repeat('0', 64)",
            "update rules.target_values set price_after = 1",
            "update rules.rule_versions set version = 2",
            "delete from rules.rule_versions",
            "truncate rules.plans",
        ):
            assert refused(db, change) == "RN008", change
    finally:
        db.execute("reset role")


BROKEN = [
    ("plan_is_as_hashed", "update rules.target_values set price_after = 7 where item_id = 'SKU-1'"),
    ("rule_run_has_a_plan", "delete from rules.plans"),
    ("plan_has_its_targets", "update rules.plans set targets = 9"),
    ("rule_run_is_open_as_its_facts_say", "update rules.run_facts set is_open = true"),
    ("included_is_counted", "update rules.run_facts set included = 9"),
    ("applied_run_has_applied_targets", "update holdfast.runs set state = 'APPLIED' where state = 'PARTIAL'"),
    ("rule_run_ends_by_its_targets", "update holdfast.runs set state = 'FAILED' where state = 'PARTIAL'"),
    (
        "rule_run_ends_by_its_targets",
        "update holdfast.steps set state = 'APPLIED', failures = 0 where state = 'FAILED'",
    ),
    ("target_has_values", "delete from rules.target_values where item_id = 'SKU-1'"),
    (
        "values_have_a_target",
        (
            "insert into rules.target_values select 999999, price_before, price_after, null, null, "
            "run_id, true, false, 'EUR', 'x' from rules.target_values limit 1"
        ),
    ),
    (
        "left_out_is_untouched",
        "insert into rules.exceptions select run_id, step_id from rules.target_values where item_id = 'SKU-1'",
    ),
    ("attempts_are_in_budget", "update holdfast.steps set failures = 9 where state = 'APPLIED'"),
    ("attempts_are_in_budget", "update holdfast.steps set failures = -1 where state = 'APPLIED'"),
    ("applied_has_applied_at", "update holdfast.steps set finished_at = null where state = 'APPLIED'"),
    ("applied_is_in_the_ledger", "delete from rules.ledger"),
    (
        "ledger_has_applied_targets",
        (
            "insert into rules.ledger (at, tenant, channel, item_id, currency, price_before, price_after, source, "
            "effect, rule_id, rule_version, run_id, step_id) select now(), 'default', 'shop', item_id, 'EUR', 1, 2, "
            "'api', 'written', 'r', 1, run_id, step_id from rules.target_values where item_id = 'SKU-2'"
        ),
    ),
    ("rolled_back_is_counted", "update rules.run_facts set rolled_back = 1"),
    ("rolled_back_run_has_nothing_applied", "update holdfast.runs set state = 'ROLLED_BACK' where state = 'PARTIAL'"),
    ("settling_run_is_open", "update rules.run_facts set is_settling = true"),
    ("pass_is_over_as_its_run_is", "update rules.passes set is_over = true where no = 1"),
    ("rule_run_times_in_order", "update holdfast.runs set started_at = finished_at + interval '1 s'"),
    ("rule_run_times_in_order", "update holdfast.runs set queued_at = started_at + interval '1 s'"),
]


@pytest.mark.unsound
@pytest.mark.parametrize(("invariant", "broken"), BROKEN)
def test_each_broken_invariant_is_listed(db: DB, invariant: str, broken: LiteralString) -> None:
    """A-114, A-116, X-13"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-2"))
    assert violations(db) == []

    db.execute("alter table holdfast.runs drop constraint times_follow_each_other")
    db.execute("alter table holdfast.steps drop constraint failures_are_counted")
    db.execute("set session_replication_role = replica")
    db.execute(broken)
    db.execute("reset session_replication_role")

    assert invariant in {name for name, _ in violations(db)}


@pytest.mark.unsound
def test_two_open_runs_of_an_item_are_listed(db: DB) -> None:
    """X-13"""
    define(db)
    for _ in range(2):
        preview(db, rows(2))
    db.execute("set session_replication_role = replica")
    db.execute("update holdfast.runs set state = 'QUEUED'")
    db.execute("reset session_replication_role")

    assert ("item_is_in_one_open_run", "SKU-1") in violations(db)


@pytest.mark.unsound
def test_the_documents_validation_reports_a_run_that_is_applied_in_name_only(db: DB) -> None:
    """A-116, C-79"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-2"))
    db.execute("select rules.validate_run_state(%s)", [run_id])
    db.execute("set session_replication_role = replica")
    db.execute("update holdfast.runs set state = 'APPLIED'")
    for state, words in (("FAILED", "Run marked APPLIED but has failed targets"), ("QUEUED", "not applied")):
        db.execute("update holdfast.steps set state = %s where state <> 'APPLIED'", [state])
        with pytest.raises(psycopg.Error) as raised:
            db.execute("select rules.validate_run_state(%s)", [run_id])
        assert words in str(raised.value)
    db.execute("reset session_replication_role")


PEOPLE = {"api", "user", "system"}
OF_RUNS = {  # the document's moves with its actors; `system` where the kernel moves a row
    ("PREVIEW", "QUEUED"): {"api", "scheduler"},
    ("QUEUED", "APPLYING"): {"worker", "system"},
    ("APPLYING", "APPLIED"): {"worker", "system"},
    ("APPLYING", "PARTIAL"): {"worker", "system"},
    ("APPLYING", "FAILED"): {"worker", "system"},
    ("PARTIAL", "APPLYING"): PEOPLE,
    ("FAILED", "APPLYING"): PEOPLE,
    ("APPLIED", "ROLLED_BACK"): PEOPLE,
    ("PARTIAL", "ROLLED_BACK"): PEOPLE,
}
OF_TARGETS = {
    ("PREVIEW", "QUEUED"): {"api", "scheduler", "system"},
    ("QUEUED", "APPLYING"): {"worker"},
    ("APPLYING", "APPLIED"): {"worker"},
    ("APPLYING", "QUEUED"): {"worker", "system"},
    ("APPLYING", "FAILED"): {"worker", "system"},
    ("FAILED", "QUEUED"): PEOPLE,
    ("APPLIED", "ROLLED_BACK"): PEOPLE,
}


@pytest.mark.parametrize(("machine", "listed"), [("rules.run", OF_RUNS), ("rules.target", OF_TARGETS)])
def test_the_machines_list_the_documents_moves_and_no_other(
    db: DB, machine: str, listed: dict[tuple[str, str], set[str]]
) -> None:
    """A-10 to A-23, A-30 to A-37: tests/shape/test_moves.py tries every pair of these states by a direct UPDATE"""
    moves: dict[tuple[str, str], set[str]] = {}
    query = "select from_state, to_state, actors from holdfast.machine_moves where machine = %s"
    for before, after, actors in db.execute(query, [machine]):
        moves.setdefault((before, after), set()).update(actors)

    assert moves == listed
    assert value(db, "select count(*) from holdfast.machine_states where machine = %s", machine) == {
        "rules.run": 7, "rules.target": 6}[machine]  # fmt: skip


def test_a_state_that_is_set_again_is_no_move(db: DB) -> None:
    """A-22"""
    run_id = previewed(db, 1)
    before = value(db, "select count(*) from holdfast.journal")

    assert refused(db, "update holdfast.runs set state = state where id = %s", [run_id]) is None
    assert value(db, "select count(*) from holdfast.journal") == before


def test_a_run_that_was_rolled_back_is_not_applied_again_by_hand(db: DB) -> None:
    """A-20: and the error says what to do instead"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db)
    called(db, "rollback", run_id=run_id, apply=True)
    work(db)

    with pytest.raises(psycopg.Error) as raised:
        db.execute("update holdfast.runs set state = 'APPLYING', finished_at = null where id = %s", [run_id])
    assert (raised.value.sqlstate, "new run" in str(raised.value)) == ("RN001", True)


def test_the_database_refuses_values_that_no_rule_gives(db: DB) -> None:
    """Bad input of SQL: each has its own error and leaves nothing"""
    define(db)
    bad: dict[str, list[Any]] = {
        "23514": [row("a", 500, 500, writes_price=True), row("a", 500, -1), row("a", 500, 400, writes_price=False)],
        "RN005": [
            row("a", 5, 4, "eur"),
            row("", 5, 4),
            row("a\tb", 5, 4),
            (None, *row("a")[1:]),
            row("a", currency="€"),
        ],
        "23505": [[row("a"), row("a")]],
    }
    for expected, cases in bad.items():
        for case in cases:
            with pytest.raises(psycopg.Error) as raised:
                preview(db, case if isinstance(case, list) else [case])
            assert raised.value.sqlstate == expected, case
    assert value(db, "select count(*) from holdfast.runs") == 0
    assert value(db, "select count(*) from rules.target_values") == 0
