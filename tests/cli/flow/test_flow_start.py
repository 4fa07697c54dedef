"""`holdfast flow start`: a task by its definition or by an app's types, and waiting for it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from cli.conftest import MAIN, environment
from cli.flows import CONTEXT, begin, define, work
from holdfast.models import Fail
from holdfast.testing import journal
from kernel.steps import run_row, states, value

APP = """
from holdfast import Holdfast

hf = Holdfast()
order = hf.flow("order")


@order.step
def reserve(order_id: int) -> int:
    return order_id


@order.step(after=reserve, skippable=True)
def greet(order_id: int) -> None: ...
"""


@pytest.fixture
def shop(dsn, tmp_path):
    """Begin a command where the module shop is."""
    (tmp_path / "shop.py").write_text(APP)

    def begun(*arguments):
        return subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments, "--app", "shop:hf"],
            env=environment(dsn=dsn), cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    return begun


def ended(process):
    """Wait for a command, and give its exit code and what it printed where."""
    stdout, stderr = process.communicate(timeout=60)
    return process.returncode, stdout, stderr


def test_a_task_is_started_by_its_definition_and_its_id_is_all_the_data(cli, db):
    """T-16, T-18, T-19, T-20: fields are JSON where they can be read so, else text."""
    define(db, context_schema=CONTEXT)

    done = cli("flow", "start", "order", "order_id=7", "express=true", "name=Ada", "--reason", "by phone", "--tag", "a")

    task_id = done.stdout.strip()
    row = run_row(db, task_id)
    assert (done.returncode, row["state"]) == (0, "pending")
    assert row["input"]["context"] == {"order_id": 7, "express": True, "name": "Ada"}
    assert (row["input"]["reason"], row["input"]["tags"]) == ("by phone", ["a"])
    assert set(states(db, task_id).values()) == {"pending"}
    assert f"holdfast flow show {task_id}" in done.stderr


def test_a_context_is_given_whole_and_from_stdin_too(cli, found, db):
    define(db)

    whole = found("flow", "start", "order", "--context", '{"order_id": 1}')["task"]
    piped = cli("flow", "start", "order", "--context", "-", stdin='{"order_id": 2}').stdout.strip()

    assert [run_row(db, task)["input"]["context"]["order_id"] for task in (whole, piped)] == [1, 2]


def test_the_same_key_starts_it_once_and_another_context_under_it_is_refused(cli, db):
    define(db)

    first = cli("flow", "start", "order", "order_id=1", "--key", "web-1")
    again = cli("flow", "start", "order", "order_id=1", "--key", "web-1")
    other = cli("flow", "start", "order", "order_id=2", "--key", "web-1")

    assert first.stdout == again.stdout
    assert (other.returncode, other.stdout) == (5, "")


def test_version_namespace_tenant_and_skipped_steps_are_those_that_are_named(cli, db):
    define(db, namespace="shop", version="1.0.0")
    define(db, namespace="shop", version="2.0.0")

    done = cli(
        "flow", "start", "order", "--namespace", "shop", "--version", "1.0.0", "--tenant", "acme", "--skip", "greet"
    )

    task_id = done.stdout.strip()
    row = run_row(db, task_id)
    assert (row["input"]["version"], row["tenant"]) == ("1.0.0", "acme")
    assert states(db, task_id)["greet"] == "resolved_manually"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("nobody",), 4, "there is no flow nobody"),
        (("order",), 2, "the context of flow order lacks order_id"),
        (("order", "order_id"), 2, "write key=value"),
        (("order", "a=1", "a=2"), 2, "a is given twice"),
        (("order", "a=1", "--context", "{}"), 2, "--context"),
        (("order", "--context", "{"), 2, "--context is not JSON"),
        (("order", "order_id=1", "--skip", "charge"), 2, "step charge cannot be skipped"),
        (("order", "order_id=1", "--app", "nowhere:hf"), 2, "there is no module nowhere"),
    ],
)
def test_what_cannot_be_started_is_told_and_starts_nothing(cli, db, arguments, code, said):
    """T-17: an unknown name is an error."""
    define(db, context_schema=CONTEXT)

    done = cli("flow", "start", *arguments)

    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr
    assert value(db, "select count(*) from holdfast.runs") == 0


def test_an_app_checks_the_context_by_its_types(shop, db):
    good, task_id, _ = ended(shop("flow", "start", "order", "order_id=7", "--skip", "greet"))
    bad, _, why = ended(shop("flow", "start", "order", "order_id=seven"))
    odd, _, what = ended(shop("flow", "start", "other"))

    assert (good, bad, odd) == (0, 2, 2)
    assert set(states(db, task_id.strip())) == {"reserve", "greet"}
    assert "order_id" in why
    assert "there is no flow other" in what


def test_waiting_tells_progress_beside_the_data_and_ends_by_how_it_ended(shop, db):
    """Exit code 0 when it is complete; a worker comes meanwhile."""
    waiting = shop("flow", "start", "order", "order_id=7", "--timeout", "50s", "--json")

    assert ended(shop("worker", "--burst"))[0] == 0
    while waiting.poll() is None and ended(shop("worker", "--burst"))[0] == 0:
        pass  # it may have been started after the first one had nothing to do
    code, stdout, stderr = ended(waiting)

    told = json.loads(stdout)
    assert (code, told["state"], told["outcome"]) == (0, "complete", "succeeded")
    assert "of 2 done" in stderr


def test_a_task_that_is_not_over_in_time_is_8_and_goes_on(cli, db):
    define(db)

    done = cli("flow", "start", "order", "order_id=1", "--timeout", "0s")

    assert done.returncode == 8
    assert run_row(db, done.stdout.strip())["state"] == "pending"


def test_a_task_that_failed_is_1_and_says_where_to_look(cli, db):
    """Started before, by the same key: it is over already."""
    define(db)
    task_id = begin(db, context={"order_id": 1}, key="k")
    work(db, "order.reserve", outcome=Fail("sold out"))

    done = cli("flow", "start", "order", "order_id=1", "--key", "k", "--wait")

    assert (done.returncode, done.stdout) == (1, f"{task_id}\n")
    assert f"holdfast flow show {task_id}" in done.stderr
    assert journal(db, run=task_id)[0].event == "created"
