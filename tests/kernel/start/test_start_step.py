"""Starting one step of any machine: as a task is started, and with what a face adds."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.reads import follow, run_list
from holdfast.testing import Clock, journal
from kernel.steps import DB, add_machine, claim, column, fingerprint, seconds, start, step_row, violations

pytestmark = pytest.mark.one_server

SHUT = """
preview:shut  queued     due:open
due:open      claimed    busy:held
busy:held     succeeded  done:over=succeeded
"""


def start_step(db: DB, machine: str = "rules.check", kind: str = "deploy", given: Any = None, **options: Any) -> int:
    return run(db, calls.start_step(machine, kind, given, **options))[0]


def test_a_step_of_another_machine_starts_as_a_task_does(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    run(db, calls.define_policy("slow"))
    run(db, calls.define_kind("deploy", queue="ops", policy="slow"))

    plain, own = start_step(db), start_step(db, given={"sha": "1f"}, queue="own", policy="rules.429", priority=3)

    names = ("machine", "state", "kind", "input", "queue", "policy", "priority", "due_at", "run_id")
    assert [tuple(step_row(db, step)[name] for name in names) for step in (plain, own)] == [
        ("rules.check", "pending", "deploy", {}, "ops", "slow", 0, now, None),
        ("rules.check", "pending", "deploy", {"sha": "1f"}, "own", "rules.429", 3, now, None),
    ]
    assert [s.step_id for s in claim(db, queue="own")] == [own]


def test_a_key_is_one_machines_and_a_tasks_is_as_before(db: DB) -> None:
    task, deploy = start(db, key="a", unique_key="u"), start_step(db, key="b")

    assert start_step(db, "work.task", "mail", {"to": "a"}, key="a") == task
    assert start_step(db, key="b") == deploy
    before = fingerprint(db)
    for refused in ({"kind": "mail", "given": {"to": "a"}, "key": "a"}, {"unique_key": "u"}):
        with pytest.raises(errors.KeyConflict) as caught:
            start_step(db, **refused)
        assert str(task) in f"{caught.value} {caught.value.__cause__}"
    assert fingerprint(db) == before


@pytest.mark.parametrize(
    ("machine", "options", "named"),
    [
        ("no.such", {}, "no.such"),
        ("flow.task", {}, "flow.task"),
        ("no.such", {"unique_key": "u"}, "no.such"),
        ("rules.check", {"policy": "none"}, "none"),
        ("rules.check", {"parked_for": "handler"}, "handler"),
        ("rules.check", {"parked_for": ""}, "parked_for"),
        ("rules.check", {"actor": "a\x07"}, "actor"),
        ("test.shut", {"parked_for": "approval"}, "test.shut"),
    ],
)
def test_what_makes_no_sense_is_refused_by_its_value(db: DB, machine: str, options: dict[str, Any], named: str) -> None:
    add_machine(db, "test.shut", SHUT, initial="preview:shut")
    before = fingerprint(db)

    with pytest.raises(errors.BadInput) as caught:
        start_step(db, machine, **options)

    assert named in str(caught.value)
    assert fingerprint(db) == before


def test_a_step_that_begins_parked_keeps_its_due_time_and_waits(db: DB, clock: Clock) -> None:
    later = clock.freeze() + seconds(60)
    step = start_step(db, parked_for="review", due_at=later)
    clock.advance(seconds(61))

    assert claim(db, batch=5) == claim(db, kinds=["deploy"], batch=5) == []
    row = step_row(db, step)
    assert (row["due_at"], row["parked_due_at"], row["parked_for"]) == (None, later, "review")
    assert violations(db) == []


def test_a_step_of_a_machine_that_begins_shut_is_not_due(db: DB) -> None:
    add_machine(db, "test.shut", SHUT, initial="preview:shut")

    assert column(db, start_step(db, "test.shut"), "due_at") is None


def test_the_journal_names_whom_a_start_was_made_for(db: DB) -> None:
    step = start_step(db, actor="ada")
    claim(db, kinds=["deploy"])

    created, claimed = journal(db, step=step)

    assert (created.event, created.from_state, created.to_state) == ("created", "new", "pending")
    assert (created.actor_kind, created.actor, claimed.event) == ("api", "ada", "claimed")
    assert violations(db) == []


def test_a_step_without_a_run_is_called_what_its_face_calls_it(db: DB) -> None:
    task, deploy = start(db), start_step(db)

    rows = run_list.newest(db, run_list.Wanted(), run_list.Position(), limit=5).rows
    assert [follow.glance(db, step).what for step in (task, deploy)] == ["task", "page"]
    assert {row.id: row.what for row in rows} == {str(task): "task", str(deploy): "page"}
