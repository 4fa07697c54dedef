"""`holdfast dlq`: the dead, grouped by what they died of, and dealt with one by one or all at once."""

from __future__ import annotations

import json

import psycopg
import pytest

from cli.rows import FAULT, dead_task, partial_run
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Fail, Settlement
from holdfast.reads import dead_letter
from holdfast.testing import events
from kernel.steps import claim, column, start


def many_dead(db, amount, kind="bulk"):
    run(db, calls.start_tasks([{"name": kind}] * amount))
    steps = claim(db, kinds=[kind], batch=amount)
    run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Fail(FAULT)) for s in steps]))
    return [s.step_id for s in steps]


def states(db, ids):
    return {column(db, step_id, "state") for step_id in ids}


def test_the_report_groups_by_kind_and_by_the_fault_without_what_differs(found, db):
    """Numbers, ids and quoted parts are not what makes two faults differ."""
    for message in ("no user 17 at 'a'", 'no user 4 at "b"\nmore', "no user 0192a-ff3c at 'c'"):
        last = dead_task(db, error={"type": "ValueError", "message": message})
    dead_task(db, error={"type": "KeyError", "message": "no user 17 at 'a'"})
    dead_task(db, "other", error="plain words")

    groups = found("dlq", "report")["groups"]

    assert [(g["count"], g["kind"], g["error_type"], g["fingerprint"]) for g in groups] == [
        (3, "mail", "ValueError", "no user N at …"),
        (1, "other", "", "plain words"),
        (1, "mail", "KeyError", "no user N at …"),
    ]
    assert groups[0]["sample_id"] == str(last)
    assert groups[0]["next"] == f"holdfast runs show {last}"
    assert groups[0]["first_at"] < groups[0]["last_at"]


def test_an_empty_dead_letter_says_so(cli):
    for command in ("report", "list"):
        done = cli("dlq", command)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "no dead steps\n")


def test_the_list_is_newest_first_narrowed_and_page_by_page(cli, found, db):
    """Steps of runs too, and not what is alive."""
    start(db, "alive")
    ids = [dead_task(db), dead_task(db, "sms", queue="phone", tenant="acme"), dead_task(db)]
    partial_run(db)

    def listed(*options):
        return [step["id"] for step in found("dlq", "list", *options)["steps"]]

    assert listed("--kind", "mail") == [str(ids[2]), str(ids[0])]
    assert listed("--queue", "phone") == listed("--tenant", "acme") == [str(ids[1])]
    assert listed("--kind", "bad", "--since", "1h") != []
    assert listed("--before", str(ids[1])) == [str(ids[0])]
    assert cli("dlq", "list", "--limit", "3").stderr == f"next page: add --before {ids[1]}\n"
    assert cli("dlq", "list", "--before", "00000000-0000-7000-8000-000000000000").returncode == 2


def test_retry_and_resolve_by_id(cli, db):
    first, second = dead_task(db), dead_task(db)

    retried = cli("dlq", "retry", str(first), "--reason", "mended")
    resolved = cli("dlq", "resolve", str(second), "999")

    assert (retried.returncode, retried.stdout) == (0, f"id\tstate\n{first}\tpending\n")
    assert (resolved.returncode, resolved.stdout) == (4, f"id\tstate\n{second}\tdone\n")


def test_all_of_a_kind_are_retried_in_chunks_and_no_others(cli, db):
    """The count and the scope are said first; progress goes to stderr, what was done to stdout."""
    ids, other = many_dead(db, 150), dead_task(db, "other")

    done = cli("dlq", "retry", "--kind", "bulk", "--yes", "--reason", "mended")

    assert done.stdout == "retried 150, left alone 0 (no longer dead), refused 0\n"
    assert done.stderr == "retry 150 dead steps: kind bulk\n100 of 150\n150 of 150\n"
    assert (done.returncode, states(db, ids), states(db, [other])) == (0, {"pending"}, {"error"})


def test_it_is_safe_to_repeat(found, db):
    many_dead(db, 3)

    first = found("dlq", "resolve", "--all", "--yes")
    second = found("dlq", "resolve", "--all", "--yes")

    assert first == {"found": 3, "resolved": 3, "left_alone": 0, "refused": 0}
    assert second == {"found": 0, "resolved": 0, "left_alone": 0, "refused": 0}


def test_one_that_is_no_longer_dead_is_left_alone(db):
    """The snapshot fixes what is meant; what somebody dealt with meanwhile is theirs."""
    run_id = partial_run(db)
    (step_id,) = dead_of(db, run_id)
    run(db, calls.retry(str(step_id)))  # a pending step of a flow may be resolved: but nobody meant this one

    assert dead_letter.deal_with(db, "resolve", [step_id], None) == []
    assert events(db, step=step_id)[-1] == "reopened"


def dead_of(db, run_id):
    return [i for (i,) in db.execute("select id from holdfast.dead_steps where run_id = %s", [run_id])]


def test_a_refusal_stops_no_other(cli, db):
    """An ops run that names no project cannot be queued again: it is refused, the rest is retried."""
    ids = many_dead(db, 2)
    (final,) = db.execute(
        """insert into holdfast.steps (machine, kind, state, due_at, created_at)
           values ('ops.run', 'deploy', 'queued', holdfast.clock(), holdfast.clock()) returning id"""
    ).fetchone()
    (step,) = claim(db, kinds=["deploy"])
    run(db, calls.settle_steps([Settlement(final, step.lease_id, Fail("no"))]))

    done = cli("dlq", "retry", "--all", "--yes")

    assert (done.returncode, done.stdout) == (2, "retried 2, left alone 0 (no longer dead), refused 1\n")
    assert "project_id" in done.stderr
    assert states(db, ids) == {"pending"}


@pytest.mark.parametrize("verb", ["retry", "resolve"])
def test_without_a_terminal_it_wants_yes(cli, db, verb):
    """Exit code 2 with what to type; nothing is moved."""
    ids = many_dead(db, 2)

    done = cli("dlq", verb, "--all", stdin="y\n")

    assert (done.returncode, done.stdout) == (2, "")
    assert "next:  add --yes" in done.stderr
    assert states(db, ids) == {"error"}


@pytest.mark.parametrize(
    ("amount", "typed", "state"),
    [(2, "y\n", "pending"), (2, "n\n", "error"), (101, "y\n", "error"), (101, "101\n", "pending")],
)
def test_on_a_terminal_it_asks_and_above_100_for_the_count(terminal, db, amount, typed, state):
    """The wrong button does nothing."""
    ids = many_dead(db, amount)

    code, screen = terminal("dlq", "retry", "--kind", "bulk", typed=typed)

    assert f"retry {amount} dead steps: kind bulk" in screen
    assert (code, states(db, ids)) == (0 if state == "pending" else 2, {state})


@pytest.mark.parametrize("arguments", [[], ["1", "--all"], ["1", "--kind", "mail"], ["nonsense"]])
def test_what_names_nothing_or_two_things_is_refused(cli, arguments):
    done = cli("dlq", "retry", *arguments)

    assert (done.returncode, done.stdout) == (2, "")
    assert "next:  " in done.stderr


def test_the_dead_are_those_in_a_failed_state_however_they_came_there(db):
    """Also by hand; not those that were resolved, cancelled or are tried again. A failed step of a flow that is tried
    again rests in the same state."""
    died, resolved, reopened = dead_task(db), dead_task(db), dead_task(db)
    run(db, calls.resolve(str(resolved)))
    run(db, calls.retry(str(reopened)))
    by_hand = start(db, "hand")
    claim(db, kinds=["hand"])
    db.execute(
        """update holdfast.steps set state = 'error', finished_at = holdfast.clock(), lease_id = null,
                  lease_until = null, lease_owner = null where id = %s""",
        [by_hand],
    )

    assert {i for (i,) in db.execute("select id from holdfast.dead_steps")} == {died, by_hand}


@pytest.mark.own_database  # it keeps its setting
def test_a_database_that_gives_up_is_an_error_of_its_own(cli, dsn, db):
    """A lock that is not to be had in time: exit code 7, what to do, and no stack."""
    with psycopg.connect(dsn) as holder:
        step_id = dead_task(db)
        holder.execute("select from holdfast.steps where id = %s for update", [step_id])
        db.execute(f"alter database {db.info.dbname} set lock_timeout = '100ms'")
        done = cli("dlq", "retry", "--all", "--yes", "--json")

    said = json.loads(done.stderr.splitlines()[-1])
    assert (done.returncode, said["exit_code"]) == (7, 7)
    assert said["next"]
