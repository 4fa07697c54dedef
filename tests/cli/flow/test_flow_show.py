"""`holdfast flow show`: what happened, and what to do about it, in one look."""

from __future__ import annotations

import re
from datetime import timedelta

from cli.flows import begin, define, failed_task, mapped_task, work
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Fail, Retry
from kernel.steps import claim_one, ids_by_name, settle, start


def test_a_failed_task_says_first_what_failed_and_what_to_do(cli, found, db):
    """T-51, T-56, T-57, T-66: the error, the execution context and the very commands, above the steps."""
    task_id = failed_task(db, about={"initiator": "bob", "reason": "by phone"})

    screen = cli("flow", "show", task_id).stdout
    page = found("flow", "show", task_id)

    above, steps = screen.split("\nsteps\n")
    assert "blocked_by_failures, blocked: handle_failures" in above
    assert "why         step charge failed: ValueError: no user 17 at 'shop'" in above
    assert "for bob" in above
    assert "✗ charge\tValueError: no user 17 at 'shop'\t1\t" in above
    for command in ("retry", "resolve"):
        assert f"  holdfast flow {command} {task_id} charge" in above
    assert [line.split("\t")[0] for line in steps.splitlines()[1:]] == ["✓ reserve", "✗ charge", "✓ greet", "○ ship"]
    assert (page["state"], page["execution_status"], page["completion_percentage"]) == (
        "error",
        "blocked_by_failures",
        50,
    )
    assert [step["name"] for step in page["failed"]] == ["charge"]
    assert page["steps"][3]["parents"] == ["charge", "greet"]
    assert page["context"] == {"order_id": 7}


def test_a_task_that_a_cancelled_step_ended_names_it_and_what_is_possible(cli, found, db):
    """Each command that it offers is accepted; retry, which is not, is offered nowhere."""
    define(db)
    task_id = begin(db)
    work(db, "order.reserve", "order.greet")
    run(db, calls.cancel(str(ids_by_name(db, task_id)["charge"]), "not wanted"))

    page = found("flow", "show", task_id)
    other = found("runs", "show", task_id)

    assert page["why"] == "step charge was cancelled, so the steps that wait for it did not run"
    assert set(page["commands"]) == {f"holdfast flow retry {task_id} --from charge", f"holdfast flow resolve {task_id}"}
    assert "retry" not in str(other["commands"])
    refused = cli("flow", "retry", task_id)
    assert (refused.returncode, "charge" in refused.stderr) == (5, True)
    assert [cli(*command.split()[1:]).returncode for command in page["commands"]] == [0, 0]


def test_a_step_in_backoff_says_when_it_is_tried_again(cli, found, db):
    """T-45, T-69: error, and not for good."""
    define(db)
    task_id = begin(db)
    settle(db, claim_one(db), Retry({"type": "ConnectionError", "message": "no line"}, after=timedelta(minutes=10)))

    row = cli("flow", "show", task_id).stdout.split("\nsteps\n")[1].splitlines()[1].split("\t")
    page = found("flow", "show", task_id)

    assert (row[0], row[1], row[2]) == ("↻ reserve", "error", "1 of 3")
    assert re.fullmatch(r"again in [\d.]+ min", row[3])
    assert row[6] == "ConnectionError: no line"
    assert (page["failed"], page["execution_status"]) == ([], "waiting_for_dependencies")
    assert page["why"].startswith("step reserve: ConnectionError: no line; retried in")
    assert page["earliest_retry_at"] is not None


def test_a_task_under_way_says_who_has_its_step(cli, db):
    define(db)
    task_id = begin(db)
    claim_one(db, "worker-9")

    screen = cli("flow", "show", task_id).stdout

    assert "why         step reserve: worker-9 (last seen " in screen
    assert "processing, healthy: wait_for_completion" in screen
    assert "▶ reserve\tin_progress\t1 of 3\t" in screen
    assert "so far\tworker-9\t" in screen
    assert f"  holdfast flow cancel {task_id}" in screen


def test_who_skipped_and_who_resolved_a_step_is_told(cli, db):
    """And why."""
    define(db)
    task_id = begin(db, skip=["greet"])
    work(db, "order.reserve")
    work(db, "order.charge", outcome=Fail("declined"))
    run(db, calls.resolve(str(ids_by_name(db, task_id)["charge"]), "paid in cash"))

    steps = cli("flow", "show", task_id).stdout.split("\nsteps\n")[1]

    assert "» greet\tskipped\t0\t" in steps
    assert "◆ charge\tresolved_manually\t1\t" in steps
    assert "paid in cash" in steps


def test_many_items_of_a_map_are_one_line_and_the_failed_are_named(cli, found, db):
    """ux: ten thousand items in one look."""
    task_id = mapped_task(db, 12, failing={3, 8})

    screen = cli("flow", "show", task_id).stdout

    assert "✗ ship[0..11]\t10 complete, 2 error" in screen
    assert "✗ ship[3]\tValueError" in screen
    assert f"  holdfast flow retry {task_id} 'ship[3]'" in screen
    assert len(found("flow", "show", task_id)["steps"]) == 14


def test_one_step_is_shown_with_its_story_and_the_commands_of_flows(cli, found, db):
    """T-87: all its moves."""
    task_id = failed_task(db)

    page = found("flow", "show", task_id, "--step", "charge")

    assert [entry["what"] for entry in page["story"]] == ["claimed", "failed"]
    assert page["commands"] == [f"holdfast flow {verb} {page['id']}" for verb in ("cancel", "retry", "resolve")]
    assert "the last line" in cli("flow", "show", task_id, "--step", "charge").stdout


def test_the_history_has_the_moves_of_the_task_and_of_its_steps_in_order(found, db):
    """T-05, T-87"""
    task_id = failed_task(db)

    told = [entry["what"] for entry in found("flow", "show", task_id, "--history")["history"]]

    assert told[0] == "created"
    assert told.index("reserve claimed") < told.index("reserve succeeded") < told.index("charge claimed")
    assert told[-1] == "blocked"


def test_a_step_leads_to_its_task_and_what_is_no_flows_is_not_found(cli, found, db):
    task_id = failed_task(db)
    step_id, other = ids_by_name(db, task_id)["charge"], start(db)

    odd = cli("flow", "show", str(other))
    gone = cli("flow", "show", "00000000-0000-7000-8000-000000000000")
    nameless = cli("flow", "show", task_id, "--step", "nobody")

    assert found("flow", "show", str(step_id))["id"] == task_id
    assert [done.returncode for done in (odd, gone, nameless)] == [4, 4, 4]
    assert f"holdfast runs show {other}" in odd.stderr
    assert f"holdfast flow show {task_id}" in nameless.stderr
    assert cli("flow", "show", "nonsense").returncode == 2
