"""`holdfast runs watch`: until it is over, with an exit code that says how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys

import pytest

from cli.conftest import MAIN, environment
from cli.rows import dead_task, done_task, partial_run
from holdfast.cli.watch import view
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Fail
from holdfast.reads import follow
from kernel.steps import claim_one, finish, node, settle, start, start_flow

# A run of the tests in the background of a shell ignores interrupts, and so would its children.
HEEDING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "


@pytest.fixture
def watching(dsn, tmp_path):
    """Start watching, and see that it ends with the test."""
    started = []

    def begin(*arguments):
        process = subprocess.Popen(
            [sys.executable, "-c", HEEDING + MAIN, "runs", "watch", *arguments],
            env=environment(dsn=dsn, home=tmp_path / "no home"),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def cancelled_task(db):
    step_id = start(db, "unwanted")
    run(db, calls.cancel(str(step_id)))
    return step_id


@pytest.mark.parametrize(
    ("make", "code", "state"),
    [(done_task, 0, "done"), (dead_task, 1, "error"), (cancelled_task, 1, "cancelled"), (partial_run, 3, "error")],
)
def test_what_is_over_ends_with_the_code_of_how_it_ended(cli, db, make, code, state):
    """0 succeeded, 1 failed, 3 partial."""
    done = cli("runs", "watch", str(make(db)))

    assert done.returncode == code
    assert f": {state}, " in done.stdout


def test_a_run_is_followed_to_its_end_one_object_a_change(watching, db):
    """--jsonl: each change as it happens."""
    run_id = start_flow(db, node("a"), node("b", "a"))
    watcher = watching(str(run_id), "--jsonl")

    seen = [json.loads(watcher.stdout.readline())]
    for kind in ("a", "b"):
        step = claim_one(db, kinds=[kind])
        finish(db, [step])
        seen.append(json.loads(watcher.stdout.readline()))
    rest, said = watcher.communicate(timeout=30)

    assert (watcher.returncode, said) == (0, "")
    last = [*seen, *map(json.loads, rest.splitlines())][-1]
    assert (seen[0]["state"], seen[0]["succeeded"], last["state"], last["succeeded"]) == ("pending", 0, "complete", 2)
    assert (last["id"], last["is_over"]) == (str(run_id), True)


def test_json_is_one_object_at_the_end(found, db):
    assert found("runs", "watch", str(done_task(db)))["state"] == "done"


def test_a_timeout_is_8_and_says_that_it_goes_on(cli, db):
    """What is waited for is not touched."""
    step_id = start(db)

    done = cli("runs", "watch", str(step_id), "--timeout", "0s")

    assert done.returncode == 8
    assert f"error: task {step_id} " in done.stderr
    assert "pending" in done.stderr


def test_an_interrupt_detaches_and_says_that_it_goes_on(watching, db):
    """130; the run is as it was."""
    step_id = start(db)
    watcher = watching(str(step_id), "--jsonl")
    watcher.stdout.readline()

    watcher.send_signal(signal.SIGINT)
    _, said = watcher.communicate(timeout=30)

    assert watcher.returncode == 130
    assert f"holdfast runs cancel {step_id}" in said
    assert "Traceback" not in said


def test_a_terminal_gets_a_live_view(terminal, db):
    step_id = done_task(db)

    code, screen = terminal("runs", "watch", str(step_id))

    assert code == 0
    assert "mail: done, attempt 1" in screen


def test_a_database_that_goes_away_meanwhile_is_7(watching, db):
    """What, why and what next; no stack."""
    watcher = watching(str(start(db)), "--jsonl")
    watcher.stdout.readline()

    db.execute(
        """select pg_terminate_backend(pid) from pg_stat_activity
            where application_name = 'holdfast' and datname = current_database()"""
    )
    _, said = watcher.communicate(timeout=30)

    found = json.loads(said)
    assert (watcher.returncode, found["error"]) == (7, "Unreachable")
    assert "connection" in found["what"]


def test_what_a_handler_says_of_its_progress_is_shown(cli, found, db):
    """Only the progress of this attempt counts, and only if it is a number."""
    step_id = start(db)
    step = claim_one(db)
    for payload in ({"done": 40, "total": 100}, {"done": "many"}):
        run(db, calls.note(step_id, step.lease_id, "info", "progress", payload=payload))
        told = follow.glance(db, step_id)
        assert (told.done, told.done_of) == ((40, 100) if payload["done"] == 40 else (None, None))
    run(db, calls.note(step_id, step.lease_id, "info", "progress", payload={"done": 50, "total": 200}))

    assert ": running, attempt 1, 50 of 200 (25%)" in cli("runs", "watch", str(step_id), "--timeout", "0s").stdout


def test_a_live_view_of_a_run_has_its_steps_with_what_their_handlers_say(db):
    """What is under way and what failed stay in view where there is no room for all."""
    run_id = start_flow(db, *(node(f"s{number}") for number in range(6)))
    finish(db, [claim_one(db, kinds=["s0"])])
    settle(db, claim_one(db, kinds=["s2"]), Fail({"type": "ValueError", "message": "no user 17\nmore"}))
    held = claim_one(db, kinds=["s4"])
    run(db, calls.note(held.step_id, held.lease_id, "info", "progress", payload={"done": 1, "total": 4}))

    seen = follow.glance(db, run_id, with_steps=True)
    tall, short = view(seen, 40).plain.splitlines(), view(seen, 6).plain.splitlines()

    assert "1 of 6 done" in tall[0]
    assert [line.split()[1] for line in tall[2:]] == ["s0", "s1", "s2", "s3", "s4", "s5"]
    assert "1 of 4 (25%)" in tall[6]
    assert tall[4].endswith("no user 17")
    assert [line.split()[1] for line in short[2:4]] == ["s2", "s4"]
    assert short[4] == "… 4 more steps"
