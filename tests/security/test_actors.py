"""Who acts, and for whom: a login may name the person, and is itself kept beside the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Fail, Settlement
from security.conftest import Login

DB = Connection[Any]
ACTS = [calls.cancel, calls.retry, calls.resolve]


def started_run(db: DB) -> str:
    (run_id,) = run(db, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "a"}]))
    return str(run_id)


def failed_run(db: DB) -> str:
    run_id = started_run(db)
    for step in run(db, calls.claim_steps("w")):
        run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("bad"))]))
    return run_id


def actors(db: DB) -> set[tuple[str, str, str | None]]:
    query = "select actor_kind, actor, login from holdfast.journal where actor_kind = 'user'"
    return set(db.execute(query).fetchall())


@pytest.mark.one_server
@pytest.mark.parametrize("act", ACTS)
def test_a_person_who_is_named_is_the_actor_and_the_login_is_kept(
    db: DB, login: Login, act: Callable[..., Call[str]]
) -> None:
    """Of the run and of each step that moved with it. A login can name anybody, but cannot hide."""
    run_id, operator = started_run(db) if act is calls.cancel else failed_run(db), login("hf_operator")

    run(operator, act(run_id, "as agreed", actor="ann"))

    assert actors(db) == {("user", "ann", operator.info.user)}


@pytest.mark.one_server
def test_a_login_that_names_nobody_is_the_actor_itself(db: DB, login: Login) -> None:
    """By the words of the last release: positions and names that it passed still do."""
    run_id, operator = failed_run(db), login("hf_operator")

    for statement in ("holdfast.retry(%s, 'x')", "holdfast.resolve(%s, 'x', null)", "holdfast.retry(id => %s)"):
        with operator.transaction(force_rollback=True):
            operator.execute(f"select {statement}", [run_id])
            assert actors(operator) == {("user", operator.info.user, None)}


@pytest.mark.one_server
def test_a_step_is_taken_to_a_state_for_a_person(db: DB) -> None:
    """As in the words of the DAG engine."""
    run_id = failed_run(db)

    db.execute("select flow.safe_transition_to(%s::uuid, 'pending', 'again', 'ann')", [run_id])

    assert actors(db) == {("user", "ann", db.info.user)}


@pytest.mark.one_server
@pytest.mark.parametrize("actor", ["", "a\nb", "x" * 201])
@pytest.mark.parametrize("act", ACTS)
def test_a_text_that_names_nobody_is_refused(db: DB, act: Callable[..., Call[str]], actor: str) -> None:
    (step_id,) = run(db, calls.start_task("x"))

    with pytest.raises(errors.BadInput, match="actor"):
        run(db, act(str(step_id), actor=actor))


@pytest.mark.one_server
def test_there_is_one_function_of_each_name(db: DB) -> None:
    """An overload of the last release would take the calls that name no actor, or make them ambiguous."""
    names = ["cancel", "retry", "resolve", "pause_queue", "resume_queue", "safe_transition_to"]
    names += ["pause_run", "resume_run", "stop_run", "retry_steps"]

    rows = db.execute(
        """select proname from pg_proc
            where proname = any (%s) and pronamespace in ('holdfast'::regnamespace, 'flow'::regnamespace) order by 1""",
        [names],
    ).fetchall()

    assert [name for (name,) in rows] == sorted(names)


@pytest.mark.one_server
def test_pauses_keep_a_history(db: DB, login: Login) -> None:
    """Who paused and resumed a queue, when and why, is read by everybody after it goes on."""
    run(db, calls.start_task("x"))
    operator = login("hf_operator")
    name = operator.info.user

    run(operator, calls.pause_queue("default", "the shop is closed"))
    run(operator, calls.resume_queue("default"))
    run(operator, calls.resume_queue("default", "it goes on already"))
    run(operator, calls.pause_queue("default", "a look", actor="ann"))
    run(operator, calls.resume_queue("default", "seen", actor="bob"))

    query = "select event, actor, login, reason from holdfast.queue_pauses where queue = 'default' order by at, id"
    assert login("hf_reader", tenants=["a"]).execute(query).fetchall() == [
        ("paused", name, None, "the shop is closed"),
        ("resumed", name, None, None),
        ("paused", "ann", name, "a look"),
        ("resumed", "bob", name, "seen"),
    ]


@pytest.mark.one_server
def test_a_pause_tells_for_whom_it_was_made(db: DB) -> None:
    run(db, calls.start_task("x"))

    run(db, calls.pause_queue("default", "a look", actor="ann"))

    assert db.execute("select paused_by from holdfast.queue_list").fetchall() == [("ann",)]
