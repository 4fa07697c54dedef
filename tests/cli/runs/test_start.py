"""`holdfast start`: any task or flow by its name, checked, and waited for if asked to."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta

import pytest

from cli.conftest import MAIN, environment
from cli.flows import begin, define
from holdfast.kernel import calls
from holdfast.kernel.db import run
from kernel.steps import claim_one, column, finish, run_row, step_row, value

APP = """
from datetime import date
from holdfast import Ctx, Holdfast

hf = Holdfast()

@hf.task(queue="mail")
def welcome(ctx: Ctx, user_id: int, on: date = date.min) -> None: ...

order = hf.flow("order")

@order.step
def reserve(order_id: int) -> int:
    return order_id
"""


@pytest.fixture
def known(db):
    """What workers have defined: a task, and a flow with its steps."""
    run(db, calls.define_policy("flow:order.charge"))
    run(db, calls.define_policy("work:welcome"))
    run(db, calls.define_kind("welcome", queue="mail", policy="work:welcome"))
    run(db, calls.define_kind("order.charge", policy="flow:order.charge"))
    run(db, calls.define_kind("ops:deploy", queue="ops"))
    define(db)


@pytest.fixture
def shop(dsn, tmp_path):
    """Run a command where the module shop is."""
    (tmp_path / "shop.py").write_text(APP)

    def ran(*arguments):
        command = [sys.executable, "-c", MAIN, *arguments, "--app", "shop:hf"]
        return subprocess.run(command, env=environment(dsn=dsn), cwd=tmp_path, text=True, capture_output=True)

    return ran


def test_a_task_is_started_on_the_queue_of_its_kind_and_its_id_is_all_the_data(cli, db, known):
    done = cli("start", "welcome", "--input", '{"user_id": 42}')

    row = step_row(db, int(done.stdout))
    assert (done.returncode, row["queue"], row["input"], row["state"]) == (0, "mail", {"user_id": 42}, "pending")
    assert f"holdfast runs watch {row['id']}" in done.stderr


def test_a_flow_is_started_by_the_same_command(cli, found, db, known):
    run_id = found("start", "order", "--input", '{"order_id": 7}')["id"]

    assert (run_row(db, run_id)["name"], run_row(db, run_id)["state"]) == ("order", "pending")
    assert cli("start", "order", "--input", "-", stdin='{"order_id": 8}').returncode == 0


def test_key_queue_delay_and_priority(cli, found, db, clock, known):
    """A key starts it once; the delay is by the database's clock."""
    clock.freeze()
    options = ("--key", "welcome:42", "--queue", "slow", "--delay", "10m", "--priority", "7")

    first = found("start", "welcome", *options)["id"]
    clock.advance(timedelta(seconds=5))
    again = found("start", "welcome", *options)["id"]

    row = step_row(db, int(first))
    assert again == first
    assert (row["queue"], row["priority"]) == ("slow", 7)
    assert row["due_at"] == clock.now() - timedelta(seconds=5) + timedelta(minutes=10)


@pytest.mark.parametrize(
    ("arguments", "code", "named"),
    [
        (("welcom",), 4, "welcome"),
        (("order.charge",), 4, "order.charge"),
        (("ops:deploy",), 4, "ops:deploy"),
        (("welcome", "--input", "{"), 2, "--input"),
        (("welcome", "--input", "[1]"), 2, "a list"),
        (("welcome", "--delay", "soon"), 2, "soon"),
        (("welcome", "--priority", "12"), 2, "--priority"),
        (("order", "--delay", "5m"), 2, "--delay"),
        (("welcome", "--face", "rules"), 2, "rules"),
    ],
)
def test_what_cannot_be_started_is_refused_with_what_to_give_instead(cli, db, known, arguments, code, named):
    """The steps of flows cannot be started alone, and neither can ops runs."""
    done = cli("start", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert named in done.stderr
    assert value(db, "select count(*) from holdfast.steps") == 0


def test_a_name_of_a_task_and_of_a_flow_is_not_guessed(cli, db, known):
    run(db, calls.define_kind("order"))

    refused = cli("start", "order", "--input", '{"order_id": 1}')

    assert (refused.returncode, "--face" in refused.stderr) == (2, True)
    assert cli("start", "order", "--face", "flow", "--input", '{"order_id": 1}').returncode == 0
    assert cli("start", "order", "--face", "work").returncode == 0


def test_an_app_checks_the_input_by_its_types(shop, db):
    """No worker need have defined it. A date is text in JSON."""
    good = shop("start", "welcome", "--input", '{"user_id": 42, "on": "2026-11-17"}')
    bad = shop("start", "welcome", "--input", '{"user_id": "x"}')
    flow = shop("start", "order", "--input", '{"order_id": 1}')
    unknown = shop("start", "reserve")

    assert column(db, int(good.stdout), "input") == {"user_id": 42, "on": "2026-11-17"}
    assert (bad.returncode, "user_id" in bad.stderr) == (2, True)
    assert run_row(db, flow.stdout.strip())["name"] == "order"
    assert unknown.returncode == 4


def test_it_waits_and_ends_with_the_code_of_how_it_ended(cli, dsn, db, known):
    waiting = subprocess.Popen(
        [sys.executable, "-c", MAIN, "start", "welcome", "--wait", "--json"],
        env=environment(dsn=dsn), text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert waiting.stderr is not None
    assert "pending" in waiting.stderr.readline()
    finish(db, [claim_one(db, queue="mail")])
    out, _ = waiting.communicate(timeout=60)

    told = json.loads(out)
    assert (waiting.returncode, told["state"], told["outcome"]) == (0, "done", "succeeded")
    assert cli("start", "welcome", "--timeout", "0s").returncode == 8


def test_a_failure_is_1_and_says_where_to_look(cli, db, known):
    """By a key it is the one that has failed already."""
    run_id = begin(db, key="k")
    run(db, calls.cancel(run_id))

    done = cli("start", "order", "--input", '{"order_id": 7}', "--key", "k", "--wait")

    assert (done.returncode, done.stdout.strip()) == (1, run_id)
    assert f"holdfast runs show {run_id}" in done.stderr
