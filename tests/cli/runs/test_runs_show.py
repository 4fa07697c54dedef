"""`holdfast runs show`: one look answers what happened and what to press."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta

import pytest

from cli.rows import FAULT, dead_task, done_task, partial_run
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Retry
from kernel.steps import claim_one, ids_by_name, insert_step, node, settle, start, start_flow


def test_a_dead_task_shows_its_error_its_story_and_what_to_press(cli, db):
    """Deliver: type, message and the trace last (W-58); moves and notes with times, actors and reasons."""
    step_id = start(db)
    step = claim_one(db, "worker-7")
    run(db, calls.note(step.step_id, step.lease_id, "warn", "slow today"))
    settle(db, step, Retry(FAULT, timedelta(0)))
    run(db, calls.cancel(str(step_id), "not wanted"))
    dead = dead_task(db, "other")

    cancelled, done = cli("runs", "show", str(step_id)).stdout, cli("runs", "show", str(dead)).stdout

    assert "slow today" in cancelled
    assert "pending → cancelled" in cancelled
    assert "not wanted" in cancelled
    assert "worker worker-7" in cancelled
    assert cancelled.endswith("possible now\nnothing: its state is final\n")
    assert "error\nValueError: no user 17 at 'shop'\nline two\nTraceback\n  the last line\n" in done
    assert done.endswith(f"possible now\nholdfast runs retry {dead}\nholdfast dlq resolve {dead}\n")


@pytest.mark.parametrize("verb", ["cancel", "retry", "resolve"])
def test_the_commands_that_are_shown_are_accepted(cli, found, db, verb):
    """Only what its machine allows is offered, and what is offered works."""
    step_id = start(db) if verb == "cancel" else dead_task(db)

    (command,) = [c for c in found("runs", "show", str(step_id))["commands"] if f" {verb} " in c]
    done = cli(*shlex.split(command)[1:])

    assert (done.returncode, done.stderr) == (0, "")


def test_a_run_shows_its_counts_and_its_failed_steps_first(cli, found, db):
    """Which step failed, at the top."""
    run_id = partial_run(db)

    shown = found("runs", "show", str(run_id))
    page = cli("runs", "show", str(run_id)).stdout

    assert (shown["what"], shown["state"], shown["succeeded"], shown["failed"]) == ("run", "error", 1, 1)
    assert [(group["state"], group["count"]) for group in shown["steps"]] == [("error", 1), ("complete", 1)]
    assert shown["steps"][0]["steps"][0]["id"] == str(ids_by_name(db, run_id)["bad"])
    assert page.index("no user 17") < page.index("complete\tover")
    assert [entry["what"] for entry in shown["story"]] == ["created", "started", "some_failed"]
    assert shown["commands"] == [f"holdfast runs retry {run_id}", f"holdfast dlq resolve {run_id}"]


def test_a_group_of_many_steps_shows_some_and_says_how_many_more(cli, db):
    run_id = start_flow(db, *(node(f"s{n}") for n in range(9)))

    assert "\t… 4 more\t" in cli("runs", "show", str(run_id)).stdout


def test_it_says_why_a_step_waits(found, db, clock):
    """Standing in a word, and in a sentence what it waits for."""

    def why(step_id):
        return found("runs", "show", str(step_id))["why"]

    clock.freeze()
    due = start(db, "due")
    assert why(due) == "due, and no live worker serves due on queue default: start one that does"
    run(db, calls.pause_queue("default", "a look"))
    assert why(due).startswith("queue default is paused by ")
    assert why(due).endswith(": a look")
    assert "holdfast queues resume default" in found("runs", "show", str(due))["commands"]
    run(db, calls.resume_queue("default"))
    later = start(db, "later", due_at=clock.now() + timedelta(hours=2))
    assert why(later) == "due in 2 h"
    held = start(db, "held")
    claim_one(db, "w1", kinds=["held"], lease=timedelta(seconds=90))
    assert why(held) == "w1 (last seen 0 s ago) holds it, under a lease for 1.5 min more"
    again = start(db, "again")
    settle(db, claim_one(db, kinds=["again"]), Retry("busy", timedelta(seconds=30)))
    assert why(again) == "busy; retried in 30 s"
    parent = start_flow(db, node("first"), node("second", "first"))
    first, second = ids_by_name(db, parent).values()
    assert why(second) == f"waits for 1 other step: first ({first}, pending)"
    clock.advance(timedelta(seconds=100))
    assert why(held) == "w1 (last seen 1.67 min ago) stopped responding: its lease ran out 10 s ago"
    assert why(parent) == "1 steps live, 1 waiting for others"


def test_a_step_that_nobody_serves_or_whose_machine_lacks_a_move_says_so(found, db):
    due = start(db, "rare")
    unserved = insert_step(
        db, "work.task", "pending", due_at=None, parked_due_at="2026-01-01", parked_for="handler", kind="rare"
    )
    aside = insert_step(db, "work.task", "pending", due_at=None, parked_for="move")

    assert found("runs", "show", str(due))["standing"] == "due"
    assert found("runs", "show", str(unserved))["why"].startswith("no live worker serves rare on queue default")
    assert found("runs", "show", str(aside))["why"].startswith("its machine work.task lacks a move")


@pytest.mark.parametrize("verb", ["show", "watch", "cancel", "retry"])
@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("17", 4),
        ("9999999999999999999", 4),
        ("00000000-0000-7000-8000-000000000000", 4),
        ("nonsense", 2),
        ("-1", 2),
        ("1.5", 2),
        ("x\x1b[2J", 2),
    ],
)
def test_an_id_of_nothing_is_4_and_nonsense_is_2(cli, template_of_one, verb, given, code):
    """What, why and what next."""
    done = cli("runs", verb, given, dsn=template_of_one)

    assert (done.returncode, done.stdout if verb in {"show", "watch"} else "") == (code, "")
    assert "\x1b" not in done.stderr
    assert "Traceback" not in done.stderr
    assert "error: " in done.stderr or given == "-1"


@pytest.fixture(scope="module")
def template_of_one(template):
    """One empty database for all that only ask for what is not there."""
    with template.clone() as dsn:
        yield dsn


def test_a_huge_error_is_folded_for_people_and_whole_in_json(cli, found, db):
    """Long texts are cut for people only."""
    step_id = dead_task(
        db, error={"type": "E", "message": "first\n" + "line\n" * 50_000, "trace": "t\n" * 1000 + "last"}
    )

    page = cli("runs", "show", str(step_id)).stdout

    assert page.count("\n") < 150
    assert "E: first" in page
    assert "\nlast\n" in page
    assert "more lines; --json has them all" in page
    assert len(found("runs", "show", str(step_id))["error"]["message"]) == 250_006


def test_numbers_come_out_as_they_went_in(cli, db):
    """JSON as the database keeps it, whatever Python would make of it."""
    big = "123456789012345678901234567890.10"
    (step_id,) = db.execute(f"select holdfast.start_task('big', '{{\"n\": {big}, \"e\": 1e400}}')").fetchone()
    deep = "[" * 5000 + "]" * 5000
    (nested,) = db.execute("select holdfast.start_task('deep', %s::jsonb)", [f'{{"d": {deep}}}']).fetchone()

    assert f'"n": {big}' in cli("runs", "show", str(step_id), "--json").stdout
    assert f'"n": {big}' in cli("runs", "show", str(step_id)).stdout
    assert deep in cli("runs", "show", str(nested), "--json").stdout
    assert cli("runs", "show", str(nested)).returncode == 0


def test_the_result_is_there_and_the_story_can_be_left_out(cli, found, db):
    step_id = done_task(db, result={"sent": True})

    assert found("runs", "show", str(step_id))["result"] == {"sent": True}
    assert '"sent": true' in cli("runs", "show", str(step_id)).stdout
    assert found("runs", "show", str(step_id), "--story", "0")["story"] == []
    assert [e["what"] for e in found("runs", "show", str(step_id), "--story", "1")["story"]] == ["succeeded"]


def test_errors_of_any_shape_are_shown(cli, db):
    for error in ("text", ["a", "list"], {"code": 5}, {"message": None}):
        step_id = dead_task(db, error=error)
        done = cli("runs", "show", str(step_id))

        assert done.returncode == 0, done.stderr
        assert "\nerror\n" in done.stdout
    assert json.dumps({"message": None}) in cli("runs", "show", str(step_id), "--json").stdout


def test_the_tries_are_those_of_the_kind_when_the_step_names_no_policy(found, db):
    """W-49: as they are counted when it fails."""
    step = start(db, "mail")
    run(db, calls.define_policy("patient", tries=7))
    run(db, calls.define_kind("mail", policy="patient"))

    assert found("runs", "show", str(step))["tries"] == 7


def test_it_says_why_something_ended_as_it_did(found, cli, db, clock):
    """A failure with its error and why there is no further try; who cancelled it; on which attempt it succeeded."""
    clock.freeze()

    def why(subject):
        return found("runs", "show", str(subject))["why"]

    assert why(dead_task(db)) == "failed for good, without a retry: ValueError: no user 17 at 'shop'"
    exhausted = start(db, "tried")
    for _ in range(3):
        settle(db, claim_one(db, kinds=["tried"]), Retry({"type": "ConnectionError", "message": "busy"}, timedelta(0)))
    assert why(exhausted) == "failed on the last of its 3 tries: ConnectionError: busy"
    assert why(partial_run(db)) == "step bad failed: no user 17 at 'shop'"
    cancelled = start(db, "unwanted")
    run(db, calls.cancel(str(cancelled), "ordered twice"))
    assert why(cancelled).startswith("cancelled by user ")
    assert "(ordered twice) 0 s ago" in why(cancelled)
    again = start(db, "again")
    settle(db, claim_one(db, kinds=["again"]), Retry("busy", timedelta(0)))
    settle(db, claim_one(db, kinds=["again"]), Done())
    assert why(again) == "succeeded 0 s ago, on attempt 2"


def test_how_many_tries_it_may_have_is_told_only_while_one_is_left(cli, db):
    """A failure that is final has used up what it had, whatever its policy allows."""
    waiting, final = start(db, "waiting"), dead_task(db, "final")
    settle(db, claim_one(db, kinds=["waiting"]), Retry("busy", timedelta(hours=1)))

    shown = {
        step: cli("runs", "show", str(step)).stdout.split("attempts")[1].splitlines()[0] for step in (waiting, final)
    }

    assert (shown[waiting].strip(), shown[final].strip()) == ("1, 1 failed of 3", "1")
