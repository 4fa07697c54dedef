"""`holdfast flow retry`, `resolve` and `cancel`: by hand, journaled with who and why."""

from __future__ import annotations

import pytest

from cli.flows import begin, define, failed_task, work
from holdfast.testing import events, journal
from kernel.steps import column, ids_by_name, run_row, start, states, value


def test_a_failed_step_is_tried_again_by_its_name_with_a_fresh_budget(cli, db):
    """T-133, C-59: attempts 0, the task open again, and the reason in the journal."""
    task_id = failed_task(db)
    step_id = ids_by_name(db, task_id)["charge"]

    done = cli("flow", "retry", task_id, "charge", "--reason", "the bank is back")

    assert (done.returncode, done.stdout, done.stderr) == (0, f"id\tstate\n{step_id}\tpending\n", "")
    assert (column(db, step_id, "failures"), run_row(db, task_id)["state"]) == (0, "pending")
    entry = journal(db, step=step_id)[-1]
    assert (entry.event, entry.actor_kind, entry.reason) == ("reopened", "user", "the bank is back")


def test_all_that_failed_of_a_task_is_tried_again(found, db):
    """T-133, T-139: and nothing that is complete."""
    task_id = failed_task(db)

    assert found("flow", "retry", task_id) == {"id": task_id, "state": "pending"}
    assert states(db, task_id) == {"reserve": "complete", "charge": "pending", "greet": "complete", "ship": "pending"}


def test_from_a_step_on_a_task_is_done_again_in_a_new_one(cli, db):
    """T-130: the new task takes over what is not done again, and its id is all the data."""
    task_id = failed_task(db)

    done = cli("flow", "retry", task_id, "--from", "charge", "--reason", "with the new card")

    again = done.stdout.strip()
    assert (done.returncode, again == task_id) == (0, False)
    told = states(db, again)
    assert (told["reserve"], told["greet"]) == ("resolved_manually", "resolved_manually")
    assert (told["charge"], told["ship"]) == ("pending", "pending")
    assert f"holdfast flow show {again}" in done.stderr


def test_from_a_step_in_json(found, db):
    task_id = failed_task(db)

    told = found("flow", "retry", task_id, "--from", "charge")

    assert told["retried_from"] == str(ids_by_name(db, task_id)["charge"])
    assert run_row(db, told["task"])["of_run"] is not None


def test_a_resolved_step_gives_what_is_said_and_its_task_goes_on(cli, db):
    """What waited for it is due."""
    task_id = failed_task(db)
    step_id = ids_by_name(db, task_id)["charge"]

    done = cli("flow", "resolve", task_id, "charge", "--result", '{"paid": 12}', "--reason", "in cash")

    assert (done.returncode, done.stdout) == (0, f"id\tstate\n{step_id}\tresolved_manually\n")
    assert column(db, step_id, "result") == {"paid": 12}
    assert journal(db, step=step_id)[-1].reason == "in cash"
    work(db, "order.ship")
    assert run_row(db, task_id)["state"] == "complete"


def test_a_step_is_named_by_its_number_too(found, db):
    task_id = failed_task(db)
    step_id = str(ids_by_name(db, task_id)["charge"])

    assert found("flow", "resolve", step_id) == {"id": step_id, "state": "resolved_manually"}


def test_a_task_or_one_step_is_cancelled(cli, found, db):
    define(db)
    task_id, other = begin(db), begin(db)
    step_id = ids_by_name(db, other)["greet"]

    assert found("flow", "cancel", task_id, "--reason", "ordered twice") == {"id": task_id, "state": "cancelled"}
    assert cli("flow", "cancel", other, "greet").stdout == f"id\tstate\n{step_id}\tcancelled\n"
    assert set(states(db, task_id).values()) == {"cancelled"}
    assert journal(db, run=task_id)[-1].reason == "ordered twice"
    assert events(db, step=step_id) == ["cancelled"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("retry", "{task}", "reserve"), 5, "is complete and cannot be reopened"),
        (("retry", "{task}", "nobody"), 4, "has no step nobody"),
        (("retry", "{task}", "charge", "--from", "ship"), 2, "charge, and --from ship"),
        (("retry", "{step}", "--from", "ship"), 2, "is a step, so it has no step ship"),
        (("retry", "{other}"), 4, "no step"),
        (("resolve", "{task}", "charge", "--result", "{{"), 2, "--result is not JSON"),
        (("resolve", "{task}", "--result", "1"), 2, "a run has no result of its own"),
        (("cancel", "{task}"), 5, "cannot be cancelled"),
        (("cancel", "nonsense"), 2, "got 'nonsense'"),
    ],
)
def test_what_cannot_be_done_says_why_and_moves_nothing(cli, db, arguments, code, said):
    """C-50: an illegal wish is refused with the way on."""
    task_id = failed_task(db)
    words = {"task": task_id, "step": ids_by_name(db, task_id)["charge"], "other": start(db)}
    before = value(db, "select count(*) from holdfast.journal")

    done = cli("flow", *(argument.format(**words) for argument in arguments))

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert value(db, "select count(*) from holdfast.journal") == before


def test_from_a_step_of_a_task_that_goes_on_is_refused(cli, db):
    define(db)
    task_id = begin(db)

    done = cli("flow", "retry", task_id, "--from", "charge")

    assert done.returncode == 5
    assert "cancel the task first" in done.stderr
