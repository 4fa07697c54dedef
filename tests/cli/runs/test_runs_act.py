"""`holdfast runs cancel` and `retry`, and who may do what on which database."""

from __future__ import annotations

import json
import os

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from cli.flows import failed_task
from cli.rows import dead_task, done_task, partial_run
from holdfast.testing import events, journal
from kernel.steps import column, ids_by_name, start


@pytest.fixture
def login(dsn, db):
    """Make a login in a group, and give its DSN."""
    name = f"hf_cli_{os.getpid()}"

    def make(group):
        db.execute(sql.SQL("create role {} login in role {}").format(sql.Identifier(name), sql.Identifier(group)))
        return make_conninfo(dsn, user=name)

    yield make
    db.execute(sql.SQL("drop role if exists {}").format(sql.Identifier(name)))


def test_cancel_moves_each_and_journals_the_reason(cli, db):
    """The person's name and reason are in the journal."""
    first, second = start(db), start(db)

    done = cli("runs", "cancel", str(first), str(second), "--reason", "ordered twice")

    assert (done.returncode, done.stdout, done.stderr) == (
        0,
        f"id\tstate\n{first}\tcancelled\n{second}\tcancelled\n",
        "",
    )
    entry = journal(db, step=second)[-1]
    assert (entry.event, entry.actor_kind, entry.reason) == ("cancelled", "user", "ordered twice")


def test_retry_tries_a_dead_task_and_the_failed_steps_of_a_run_again(cli, db):
    step_id, run_id = dead_task(db), partial_run(db)

    done = cli("runs", "retry", str(step_id), str(run_id), "--json")

    states = [{"id": str(step_id), "state": "pending"}, {"id": str(run_id), "state": "pending"}]
    assert json.loads(done.stdout) == {"done": states}
    assert events(db, step=step_id)[-1] == "reopened"


def test_each_is_tried_and_the_first_refusal_is_the_exit_code(cli, db):
    """A refusal names the thing and the way on, and stops no other."""
    over, waiting = done_task(db), start(db)

    done = cli("runs", "cancel", "999", str(over), str(waiting))

    assert (done.returncode, done.stdout) == (4, f"id\tstate\n{waiting}\tcancelled\n")
    assert f"step {over} is done and cannot be cancelled" in done.stderr
    assert cli("runs", "cancel", str(over)).returncode == 5


def test_nonsense_among_the_ids_moves_nothing(cli, db):
    step_id = start(db)

    assert cli("runs", "cancel", str(step_id), "nonsense").returncode == 2
    assert column(db, step_id, "state") == "pending"


def test_a_reason_that_is_a_book_is_refused(cli, db):
    assert cli("runs", "cancel", str(start(db)), "--reason", "x" * 1001).returncode == 2


def test_a_readers_login_looks_and_may_not_cancel(cli, db, login):
    """X-15: exit code 6, and nothing is moved."""
    step_id, dead = start(db), dead_task(db, "other")
    task_id = failed_task(db)
    flow_step = ids_by_name(db, task_id)["charge"]
    reader = login("hf_reader")

    refused = [
        cli(*command, dsn=reader)
        for command in (
            ("runs", "cancel", str(step_id)),
            ("runs", "retry", str(dead)),
            ("dlq", "retry", "--all", "--yes"),
            ("queues", "pause", "default"),
            ("flow", "start", "order"),
            ("flow", "retry", str(flow_step)),
        )
    ]

    assert [done.returncode for done in refused] == [6] * 6
    assert "grant the login one of the hf_ roles" in refused[0].stderr
    assert column(db, step_id, "state") == "pending"
    for command in (
        ("runs", "list"),
        ("runs", "show", str(dead)),
        ("dlq", "report"),
        ("queues", "list"),
        ("workers",),
        ("flow", "list"),
        ("flow", "tasks"),
        ("flow", "show", task_id),
        ("flow", "graph", task_id),
    ):
        assert cli(*command, dsn=reader).returncode == 0


COMMANDS = [
    ("runs", "list"), ("runs", "show", "1"), ("runs", "watch", "1"), ("runs", "cancel", "1"), ("runs", "retry", "1"),
    ("dlq", "report"), ("dlq", "list"), ("dlq", "retry", "1"), ("dlq", "resolve", "--all", "--yes"),
    ("queues", "list"), ("queues", "pause", "q"), ("queues", "resume", "q"), ("workers",),
    ("flow", "list"), ("flow", "tasks"), ("flow", "start", "order"), ("flow", "show", "1"), ("flow", "graph", "order"),
    ("flow", "retry", "1"), ("flow", "resolve", "1"), ("flow", "cancel", "1"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_database_that_is_away_is_7_and_one_that_is_not_migrated_13(holdfast, empty, command):
    """Each command, with the next step."""
    away = holdfast(*command, dsn="postgresql://127.0.0.1:1/none")
    bare = holdfast(*command, dsn=empty)

    assert (away.returncode, away.stdout, "check HOLDFAST_DSN" in away.stderr) == (7, "", True)
    assert (bare.returncode, bare.stdout, "holdfast db migrate" in bare.stderr) == (13, "", True)


@pytest.fixture(scope="module")
def empty(home):
    """A database that was never migrated: the server's own."""
    from holdfast import embedded

    return embedded.admin_dsn(home)
