"""The rules about the columns of one step hold for plain SQL too: its triggers refuse the row, and name the rule."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.testing import events
from kernel.steps import DB, fingerprint, start

NOW = "holdfast.clock()"
LEASE = {"due_at": "null", "lease_id": "7", "lease_owner": "'me'", "lease_until": NOW}
BROKEN = {
    "due_in_a_year_of_four_digits": {"due_at": "'1899-12-31Z'"},
    "due_only_when_free": {"waits": "1"},
    "finished_holds_no_lease": {**LEASE, "finished_at": NOW},
    "input_is_small": {"input": "to_jsonb(array(select md5(g::text) from generate_series(1, 40000) g))"},
    "lease_is_whole": {"due_at": "null", "lease_id": "7"},
    "parked_keeps_its_due_time": {"parked_for": "'handler'"},
    "parked_only_when_free": {"parked_due_at": NOW},
    "priority_is_0_to_9": {"priority": "10"},
    "waits_are_counted": {"due_at": "null", "waits": "-1"},
}


@pytest.mark.parametrize(("rule", "columns"), BROKEN.items())
def test_a_row_that_breaks_a_rule_is_refused_whole(db: DB, rule: str, columns: dict[str, str]) -> None:
    """X-02: another row of the statement does not change either"""
    first, second = start(db), start(db)
    before = fingerprint(db)
    changes = ", ".join(
        f"{name} = case id when {second} then {value} else {name} end" for name, value in columns.items()
    )

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        db.execute(f"update holdfast.steps set {changes} where id in ({first}, {second})")

    assert (refused.value.diag.constraint_name, fingerprint(db)) == (rule, before)
    assert events(db, step=second) == []


@pytest.mark.parametrize(("rule", "columns"), BROKEN.items())
def test_a_new_row_that_breaks_a_rule_is_refused(db: DB, rule: str, columns: dict[str, str]) -> None:
    row = {
        "machine": "'work.task'",
        "state": "'pending'",
        "kind": "'mail'",
        "created_at": NOW,
        "due_at": NOW,
        **columns,
    }

    with pytest.raises(psycopg.errors.CheckViolation) as refused:
        db.execute(f"insert into holdfast.steps ({', '.join(row)}) values ({', '.join(row.values())})")

    assert refused.value.diag.constraint_name == rule
