"""`holdfast flow list` and `flow runs`: what is defined, and what was started of it."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from cli.flows import begin, define, failed_task, work
from kernel.steps import start


def ids(found):
    return [task["id"] for task in found["tasks"]]


def test_without_a_definition_it_is_said_where_they_come_from(cli):
    done = cli("flow", "list")

    assert (done.returncode, done.stdout) == (0, "")
    assert "a worker defines its flows when it starts" in done.stderr


def test_definitions_are_listed_with_what_is_open_and_failed(cli, found, db):
    """T-01, T-145: as workers said them."""
    failed_task(db)
    begin(db)
    define(db, namespace="shop", version="2.0.0", description="for the shop")

    flows = found("flow", "list")["flows"]

    told = [(f["namespace"], f["version"], f["steps"], f["tasks"], f["open"], f["failed"]) for f in flows]
    assert told == [("default", "0.1.0", 4, 2, 1, 1), ("shop", "2.0.0", 4, 0, 0, 0)]
    assert flows[1]["description"] == "for the shop"
    assert cli("flow", "list", "--namespace", "shop").stdout.splitlines()[1].split("\t")[:4] == [
        "order",
        "2.0.0",
        "shop",
        "4",
    ]
    assert found("flow", "list", "--name", "nobody")["flows"] == []


def test_tasks_come_newest_first_and_other_runs_do_not(cli, found, db):
    define(db)
    tasks = [begin(db), begin(db, about={"initiator": "bob", "reason": "why"})]
    start(db)

    listed = found("flow", "runs")

    assert ids(listed) == tasks[::-1]
    assert (listed["tasks"][0]["initiator"], listed["tasks"][0]["reason"], listed["next"]) == ("bob", "why", None)
    assert [line.split("\t")[0] for line in cli("flow", "runs").stdout.splitlines()[1:]] == tasks[::-1]


def test_page_by_page_each_task_is_there_once(cli, db):
    define(db)
    wanted = [begin(db) for _ in range(5)][::-1]
    seen, before = [], []
    while True:
        page = cli("flow", "runs", "--limit", "2", *before)
        seen += [line.split("\t")[0] for line in page.stdout.splitlines()[1:]]
        if not page.stderr:
            break
        before = page.stderr.split("add ")[1].split()

    assert seen == wanted


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--state error", {"order"}),
        ("--state in_progress --state pending", {"begun", "shop", "tenant"}),
        ("--failed", {"order"}),
        ("--name begun", {"begun"}),
        ("--namespace shop", {"shop"}),
        ("--tenant acme", {"tenant"}),
        ("--since 2h", {"tenant"}),
        ("--since 2h --failed", set()),
    ],
)
def test_a_list_of_tasks_is_narrowed(found, db, clock, options, names):
    failed_task(db)
    define(db, "begun")
    begin(db, "begun")
    work(db, "order.reserve")
    define(db, "shop", namespace="shop")
    begin(db, "shop", namespace="shop")
    clock.advance(timedelta(hours=3))
    define(db, "tenant")
    begin(db, "tenant", tenant="acme")

    assert {task["name"] for task in found("flow", "runs", *options.split())["tasks"]} == names


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--state", "done"), "pending, in_progress"),
        (("--before", "12"), "UUID"),
        (("--limit", "0"), ""),
    ],
)
def test_nonsense_is_refused(cli, arguments, said):
    done = cli("flow", "runs", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_an_empty_list_says_how_to_fill_it(cli):
    assert "holdfast flow start NAME" in cli("flow", "runs").stderr
    assert json.loads(cli("flow", "runs", "--json").stdout) == {"tasks": [], "next": None}
