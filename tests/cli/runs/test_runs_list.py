"""`holdfast runs list`: runs and tasks in one list, narrowed and page by page."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import pytest

from cli.rows import dead_task, done_task, partial_run
from kernel.steps import claim_one, node, start, start_flow

LATER = timedelta(hours=3)


def ids(found):
    return [row["id"] for row in found["runs"]]


def test_an_empty_database_is_said_to_be_empty(cli):
    done = cli("runs", "list")

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "nothing has been started yet\n")


def test_runs_and_tasks_come_newest_first_and_the_steps_of_a_run_do_not(cli, found, db):
    """Deliver: one list of what was asked for."""
    first = start(db)
    run_id = start_flow(db, node("a"), node("b", "a"))
    last = start(db)

    listed = found("runs", "list")

    assert ids(listed) == [str(last), str(run_id), str(first)]
    assert [row["what"] for row in listed["runs"]] == ["task", "run", "task"]
    assert listed["next"] is None
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", listed["runs"][0]["created_at"])
    assert [line.split("\t")[0] for line in cli("runs", "list").stdout.splitlines()[1:]] == ids(listed)


def test_page_by_page_each_is_there_once(cli, db):
    """Keyset paging: what the last line on stderr says leads to the next page, also when more is started meanwhile."""
    wanted = [str(start_flow(db, node("a")) if number % 3 == 0 else start(db)) for number in range(8)][::-1]
    seen, before = [], []
    while True:
        page = cli("runs", "list", "--limit", "3", *before)
        seen += [line.split("\t")[0] for line in page.stdout.splitlines()[1:]]
        start(db, "later")
        if not page.stderr:
            break
        before = page.stderr.split("add ")[1].split()

    assert seen == wanted


def test_a_page_begins_below_one_id_of_either_sort(found, db, clock):
    """An id that a person copied is enough; runs are told from tasks by the millisecond."""
    tasks = [start(db), start(db)]
    clock.advance(timedelta(seconds=1))
    run_id = start_flow(db, node("a"))
    start(db)

    assert ids(found("runs", "list", "--before", str(tasks[1]))) == [str(tasks[0])]
    assert ids(found("runs", "list", "--before", str(run_id))) == [str(tasks[1]), str(tasks[0])]


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ("--state pending", {"due", "later", "mine", "elsewhere", "order"}),
        ("--state error --state done", {"dead", "done", "partial"}),
        ("--state held", {"held"}),
        ("--state later", {"later"}),
        ("--state over", {"dead", "done", "partial"}),
        ("--state over --failed", {"dead", "partial"}),
        ("--name mine", {"mine"}),
        ("--kind order", {"order"}),
        ("--queue elsewhere", {"elsewhere"}),
        ("--tenant acme", {"mine"}),
        ("--failed", {"dead", "partial"}),
        ("--since 2h", {"late"}),
        ("--since 2h --name due", set()),
    ],
)
def test_a_list_is_narrowed(found, db, clock, options, names):
    """Each filter by itself and with another; the database's clock says what is recent."""
    held = start(db, "held")
    claim_one(db, kinds=["held"], lease=timedelta(days=1))
    dead_task(db, "dead")
    done_task(db, "done")
    partial_run(db)
    db.execute("update holdfast.runs set name = 'partial'")
    start(db, "due")
    start(db, "later", due_at=clock.now() + timedelta(days=1))
    start(db, "mine", tenant="acme")
    start(db, "elsewhere", queue="elsewhere")
    start_flow(db, node("a"))
    if "--since" in options:
        clock.advance(LATER)
        start(db, "late")

    assert {row["name"] for row in found("runs", "list", *options.split())["runs"]} == names
    assert held


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--state", "nonsense"], "no state 'nonsense'\nnext:  use one of: "),
        (["--state", "x\x1b[2J"], r"no state 'x\x1b[2J'"),
        (["--before", "nonsense"], "got 'nonsense'"),
        (["--before", "1,2"], "got '1,2'"),
        (["--since", "soon"], "'soon'"),
        (["--since", "99999999d"], "36500 days"),
        (["--limit", "0"], "--limit"),
        (["--queue", "a\udcff"], "the text cannot be stored"),
    ],
)
def test_options_that_make_no_sense_are_refused(cli, db, options, words):
    """Exit code 2, with what to write instead."""
    start(db)

    done = cli("runs", "list", *options)

    assert (done.returncode, done.stdout) == (2, "")
    assert words in done.stderr.replace("│", "").replace("\n ", " ")
    assert "\x1b" not in done.stderr


def test_names_that_would_steer_a_terminal_are_shown_as_escapes(cli, terminal, db):
    """Text from the database is anybody's: no control characters, no markup."""
    evil = "a\x1b]0;owned\x07\x9b31m\n\t[bold]b[/bold]\u202e"
    start(db)
    db.execute("update holdfast.steps set kind = %s", [evil])  # as releases without bounds took it

    lines, shown = cli("runs", "list").stdout, cli("runs", "list", "--json").stdout
    code, screen = terminal("runs", "list", "--no-color")

    assert lines.splitlines()[1].split("\t")[2] == r"a\x1b]0;owned\x07\x9b31m\n\t[bold]b[/bold]\u202e"
    assert json.loads(shown)["runs"][0]["name"] == evil
    for text in (lines, shown, re.sub(r"\x1b\[[01]m", "", screen)):  # a heading is bold
        assert not set("\x1b\x07\x9b\u202e") & set(text)
    assert code == 0
    assert "[bold]b[/bold]" in screen


def test_a_terminal_gets_a_table_with_long_cells_cut(cli, terminal, db):
    """Elsewhere nothing is cut."""
    name = "n" * 150
    start(db, name)

    code, screen = terminal("runs", "list", columns=400)

    assert code == 0
    assert "standing" in screen
    assert "n" * 79 + "…" in screen
    assert name not in screen
    assert name in cli("runs", "list").stdout


def test_quiet_says_nothing_but_data(cli, db):
    """--quiet: also no hint at the next page."""
    start(db)
    start(db)

    done = cli("runs", "list", "--limit", "1", "--quiet")

    assert (done.returncode, len(done.stdout.splitlines()), done.stderr) == (0, 2, "")
