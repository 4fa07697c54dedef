"""What a login can do in each role, and what it cannot: it calls functions and reads; it writes no table."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.errors import InsufficientPrivilege

from holdfast import errors
from holdfast.kernel import bulk, calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Settlement
from holdfast.testing import events, journal
from scenarios.proof import Proof
from security.conftest import Login

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
TRIGGER = "pg_catalog.suppress_redundant_updates_trigger"
TABLES = [
    "runs", "steps", "edges", "run_steps", "journal", "notes", "keys", "queues", "workers", "kinds", "policies",
    "machines", "machine_states", "machine_moves", "role_tenants", "migrations", "installed", "step_list", "run_list",
    "limits", "limit_states", "limit_changes", "limit_list",
]  # fmt: skip


def start(db: DB, name: str = "mail") -> int:
    return run(db, calls.start_task(name))[0]


def refused(db: DB, *wishes: Call[Any]) -> None:
    for call in wishes:
        with pytest.raises(errors.PermissionMissing, match=call.function):
            run(db, call)


def test_a_producer_starts_and_cannot_claim(login: Login, db: DB) -> None:
    """X-15"""
    producer = login("hf_producer")

    step_id = start(producer)
    run(producer, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "a"}]))
    bulk.start_tasks(producer, [bulk.Start("mail", "{}")] * 3)

    assert run(producer, calls.cancel(str(step_id))) == ["cancelled"]
    refused(producer, calls.claim_steps("w"), calls.settle_steps([]), calls.rescue_steps(), calls.retry(str(step_id)))
    assert journal(db, step=step_id)[0].actor == producer.info.user


@pytest.mark.one_server
def test_the_actor_settings_work_for_who_may_write_tables_and_for_nobody_else(login: Login, db: DB) -> None:
    """The owner and superusers are trusted; a runtime login is journaled under its own name."""
    pretend = "select set_config('holdfast.actor_kind', 'user', false), set_config('holdfast.actor', 'mallory', false)"
    producer = login("hf_producer")
    theirs, ours = start(producer), start(db)

    producer.execute(pretend)
    run(producer, calls.cancel(str(theirs)))
    db.execute(pretend)
    db.execute(
        """update holdfast.steps set state = 'cancelled', last_event = 'cancelled', due_at = null, finished_at = now()
            where id = %s""",
        [ours],
    )

    assert journal(db, step=theirs)[0].actor == producer.info.user
    assert (journal(db, step=ours)[0].event, journal(db, step=ours)[0].actor) == ("cancelled", "mallory")


def test_a_worker_claims_notes_renews_and_settles(login: Login, db: DB) -> None:
    """X-15"""
    worker = login("hf_worker")
    step_id = start(worker)

    (step,) = run(worker, calls.claim_steps("w"))
    run(worker, calls.note(step.step_id, step.lease_id, "info", "half way"))
    assert run(worker, calls.renew_leases("w", [step.lease_id])) == [step.lease_id]
    run(worker, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done())]))
    run(worker, calls.rescue_steps())
    run(worker, calls.upkeep())

    assert events(db, step=step_id) == ["claimed", "succeeded"]
    refused(worker, calls.cancel(str(step_id)), calls.retry(str(step_id)), calls.pause_queue("default"))


def test_an_operator_cancels_retries_resolves_and_pauses(login: Login, db: DB) -> None:
    """X-15"""
    operator = login("hf_operator")
    cancelled, failed, resolved = start(db, "a"), start(db, "b"), start(db, "c")
    steps = run(db, calls.claim_steps("w", kinds=["b", "c"], batch=2))
    run(db, calls.settle_steps([Settlement(s.step_id, s.lease_id, Fail("bad")) for s in steps]))

    assert run(operator, calls.cancel(str(cancelled), "not wanted")) == ["cancelled"]
    assert run(operator, calls.retry(str(failed))) == ["pending"]
    assert run(operator, calls.resolve(str(resolved))) == ["done"]
    run(operator, calls.pause_queue("default", "a look"))
    run(operator, calls.resume_queue("default"))
    assert run(operator, calls.violations()) == []

    last = journal(db, step=cancelled)[-1]
    assert (last.actor_kind, last.actor, last.reason) == ("user", operator.info.user, "not wanted")
    refused(operator, calls.claim_steps("w"), calls.settle_steps([]), calls.upkeep())


def test_a_reader_reads_and_does_nothing_else(login: Login, db: DB) -> None:
    """X-15"""
    step_id = start(db)
    reader = login("hf_reader")

    for view in ("step_list", "run_list", "queue_list", "dead_steps", "step_story"):
        reader.execute(f"select * from holdfast.{view}")
    assert reader.execute("select id from holdfast.step_list").fetchall() == [(step_id,)]

    refused(
        reader,
        calls.start_task("mail"),
        calls.start_run("flow.task", "f", "flow.step"),
        calls.claim_steps("w"),
        calls.settle_steps([]),
        calls.rescue_steps(),
        calls.upkeep(),
        calls.cancel(str(step_id)),
        calls.retry(str(step_id)),
        calls.resolve(str(step_id)),
        calls.pause_queue("default"),
        calls.violations(),
    )


def test_a_login_in_no_role_can_do_nothing(login: Login, db: DB) -> None:
    """X-15"""
    start(db)
    stranger = login()

    with pytest.raises(InsufficientPrivilege):
        stranger.execute("select * from holdfast.step_list")
    with pytest.raises(errors.PermissionMissing):
        start(stranger)


@pytest.mark.parametrize("role", RUNTIME)
def test_a_runtime_role_writes_no_table(login: Login, db: DB, role: str, proof: Proof) -> None:
    """R35: by no statement, in no table; and the owner's role is not to be had."""
    start(db)
    user = login(role)

    for table in TABLES:
        for statement in (
            f"insert into holdfast.{table} default values",
            f"delete from holdfast.{table}",
            f"truncate holdfast.{table}",
            f"create trigger t before update on holdfast.{table} for each row execute function {TRIGGER}()",
            f"alter table holdfast.{table} disable trigger all",
        ):
            with pytest.raises(psycopg.Error) as refused:
                user.execute(statement)
            assert refused.value.sqlstate in {"42501", "42809", "55000"}, statement  # the last two: not on a view
            proof.add(rounds=1)
    for statement in (
        "update holdfast.steps set state = 'done'",
        "update holdfast.runs set state = 'done'",
        "select setval('holdfast.lease_ids', 1)",
        "select nextval('holdfast.lease_ids')",
        "select holdfast.set_actor('system', 'x')",
        "select holdfast.move_runs('{}', 'cancelled', now())",
        "set role hf_owner",
        "set session authorization hf_owner",
        "set session_replication_role = replica",
        "create table holdfast.mine (a int)",
        "create function holdfast.mine() returns int language sql as 'select 1'",
        "alter function holdfast.clock() reset all",
    ):
        with pytest.raises(InsufficientPrivilege):
            user.execute(statement)


def test_no_setting_of_the_caller_makes_a_false_journal(login: Login, db: DB) -> None:
    """R35: the actor is who logged in, whatever the session says it is."""
    operator = login("hf_operator")
    step_id = start(db)
    for name, value in {"actor_kind": "worker", "actor": "somebody", "reason": "none"}.items():
        operator.execute("select set_config(%s, %s, false)", [f"holdfast.{name}", value])

    run(operator, calls.cancel(str(step_id)))
    run_id = run(operator, calls.start_run("flow.task", "f", "flow.step"))[0]

    (moved,) = journal(db, step=step_id)
    (made,) = journal(db, run=run_id)
    assert [(e.actor_kind, e.actor, e.reason) for e in (moved, made)] == [
        ("user", operator.info.user, None),
        ("api", operator.info.user, None),
    ]
