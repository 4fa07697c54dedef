"""Stories about what the database itself refuses: illegal moves, odd beginnings, changed history, other tenants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Fail, Settlement
from properties.scenarios import (
    DB,
    changed,
    claim,
    claim_one,
    refused,
    settle,
    sound,
    start,
    start_flow,
    step_is,
    value,
)

OVER = "finished_at = holdfast.clock(), due_at = null, lease_id = null, lease_owner = null, lease_until = null"
LEASE = "lease_id = nextval('holdfast.lease_ids'), lease_owner = 'hand', lease_until = holdfast.clock()"
HELD = f"{LEASE}, due_at = null"
NEW_STEP = "insert into holdfast.steps (machine, state, kind, created_at, finished_at) values "
NEW_RUN = "insert into holdfast.runs (id, machine, name, state, created_at, finished_at) values "


# Moves.


def an_illegal_move_by_hand_is_refused(db: DB) -> None:
    """On a fresh row, where all that may be null is null, and on a used one."""
    fresh = start(db)
    with refused(errors.IllegalTransition):
        changed(db, f"update holdfast.steps set state = 'done', {OVER} where id = %s", fresh)
    settle(db, claim_one(db), Fail({"type": "E"}))
    with refused(errors.IllegalTransition):
        changed(db, f"update holdfast.steps set state = 'cancelled', {OVER} where id = %s", fresh)
    step_is(db, fresh, state="error")
    sound(db)


def an_illegal_move_of_a_run_by_hand_is_refused(db: DB) -> None:
    run_id = start_flow(db, a="")
    with refused(errors.IllegalTransition):
        changed(db, "update holdfast.runs set state = 'complete', finished_at = holdfast.clock() where id = %s", run_id)


def a_legal_move_by_hand_is_journaled(db: DB) -> None:
    step_id, run_id = start(db), start_flow(db, a="")
    changed(db, f"update holdfast.steps set state = 'cancelled', {OVER} where id = %s", step_id)
    changed(db, "update holdfast.runs set state = 'in_progress' where id = %s", run_id)
    for subject in (f"step_id = {step_id}", f"run_id = '{run_id}' and event <> 'created'"):
        told = db.execute(f"select event, actor_kind, actor from holdfast.journal where {subject}").fetchall()
        assert told == [("by_hand", "user", db.info.user)]


def an_announced_move_must_be_listed_for_its_actor(db: DB) -> None:
    """A kernel function that fires a wrong event, or one that is not its actor's, is refused as a person is."""
    step_id, run_id = start(db), start_flow(db, a="")
    step = f"update holdfast.steps set state = %s, last_event = %s, {HELD} where id = {step_id}"
    for actor, state, event in (("worker", "running", "started"), ("user", "running", "claimed")):
        with refused(errors.IllegalTransition), db.transaction():
            db.execute("select holdfast.set_actor(%s, 'story')", [actor])
            changed(db, step, state, event)
    for actor, event in (("worker", "queued"), ("scheduler", "started")):
        with refused(errors.IllegalTransition), db.transaction():
            db.execute("select holdfast.set_actor(%s, 'story')", [actor])
            changed(db, "update holdfast.runs set state = 'in_progress', last_event = %s where id = %s", event, run_id)


def a_state_goes_with_its_columns(db: DB) -> None:
    step_id = start(db)
    with refused(errors.IllegalTransition):
        changed(db, "update holdfast.steps set state = 'running', due_at = null where id = %s", step_id)
    with refused(errors.IllegalTransition):
        changed(db, "update holdfast.steps set state = 'cancelled', due_at = null where id = %s", step_id)
    with refused(errors.IllegalTransition, psycopg.errors.CheckViolation):
        changed(db, "update holdfast.steps set state = 'running', due_at = null, lease_id = 7 where id = %s", step_id)


def a_due_step_is_free(db: DB) -> None:
    step_id = start(db)
    with refused(psycopg.errors.CheckViolation):
        changed(db, f"update holdfast.steps set state = 'running', {LEASE} where id = %s", step_id)


def a_parked_step_is_free(db: DB) -> None:
    """Else it would be put back into its queue while it is held or over, and each claim would fail on it."""
    step_id = start(db, kind="page")
    assert claim(db, kinds=["mail"]) == []
    with refused(psycopg.errors.CheckViolation):
        changed(
            db, "update holdfast.steps set state = 'cancelled', finished_at = holdfast.clock() where id = %s", step_id
        )


def a_new_step_breaks_no_rule(db: DB) -> None:
    with refused(psycopg.errors.CheckViolation):
        changed(
            db,
            """insert into holdfast.steps (machine, state, kind, created_at, due_at, waits)
               values ('work.task', 'pending', 'mail', holdfast.clock(), holdfast.clock(), 1)""",
        )


def a_row_begins_in_an_initial_state(db: DB) -> None:
    with refused(errors.NotInitial):
        changed(db, NEW_STEP + "('work.task', 'done', 'mail', holdfast.clock(), holdfast.clock())")
    with refused(errors.NotInitial):
        changed(db, NEW_STEP + "('no.such', 'pending', 'mail', holdfast.clock(), null)")
    with refused(errors.NotInitial):
        changed(db, NEW_RUN + "(gen_random_uuid(), 'flow.task', 'r', 'complete', holdfast.clock(), holdfast.clock())")
    with refused(errors.NotInitial):
        changed(db, NEW_RUN + "(gen_random_uuid(), 'no.such', 'r', 'pending', holdfast.clock(), null)")


def a_row_keeps_its_number(db: DB) -> None:
    step_id, run_id = start(db), start_flow(db, a="")
    with refused(errors.RefusedError):
        changed(db, "update holdfast.steps set id = id + 1000 where id = %s", step_id)
    with refused(errors.RefusedError):
        changed(db, "update holdfast.runs set id = gen_random_uuid() where id = %s", run_id)


# History.


def what_is_written_stays(db: DB) -> None:
    start(db)
    step = claim_one(db)
    run(db, calls.note(step.step_id, step.lease_id, "info", "a word"))
    for table in ("journal", "notes"):
        part = value(db, f"select tableoid::regclass::text from holdfast.{table} limit 1")
        for name in (f"holdfast.{table}", part):
            for change in (f"update {name} set tenant = 'x'", f"delete from {name}", f"truncate {name}"):
                with refused(errors.AppendOnly):
                    changed(db, change)


def the_guards_stand(db: DB) -> None:
    sound(db)


# Tenants.


@contextmanager
def login_for(db: DB, role: str, tenant: str) -> Iterator[DB]:
    """Act as a login of a role that may act for one tenant."""
    set_tenant = "update holdfast.role_tenants set tenant = %s where role_name = %s"
    db.execute(set_tenant, [tenant, role])
    try:
        with psycopg.connect(db.info.dsn, autocommit=True) as other:
            other.execute(f"set session authorization {role}")
            yield other
    finally:
        db.execute(set_tenant, ["*", role])


def a_login_reads_its_own_tenants(db: DB) -> None:
    for tenant in ("ours", "theirs"):
        start(db, tenant=tenant)
        run(db, calls.start_run("flow.task", "r", "flow.step", steps=[{"kind": "mail"}], tenant=tenant))
    for step in claim(db, batch=9):
        run(db, calls.note(step.step_id, step.lease_id, "info", "a word"))
    with login_for(db, "hf_reader", "ours") as reader:
        for table in ("runs", "steps", "journal", "notes", "step_list", "run_list"):
            seen = reader.execute(f"select distinct tenant from holdfast.{table}").fetchall()
            assert seen == [("ours",)], table
        assert value(reader, "select count(*) from holdfast.run_steps") == 1


def a_login_starts_for_its_own_tenants(db: DB) -> None:
    with login_for(db, "hf_producer", "ours") as producer:
        assert start(producer, tenant="ours")
        with refused(errors.TenantRefused):
            start(producer, tenant="theirs")
        with refused(errors.TenantRefused):
            run(producer, calls.start_run("flow.task", "r", "flow.step", tenant="theirs"))


def a_login_works_for_its_own_tenants(db: DB) -> None:
    theirs = start(db, tenant="theirs")
    (held,) = claim(db, "elsewhere")
    start(db, tenant="theirs")
    with login_for(db, "hf_worker", "ours") as worker:
        assert claim(worker, batch=5) == []
        for outcome in (Done(), Fail()):
            assert run(worker, calls.settle_steps([Settlement(theirs, held.lease_id, outcome)])) == []
        assert run(worker, calls.renew_leases("elsewhere", [held.lease_id], step_ids=[theirs])) == []
        assert run(worker, calls.leases_left([theirs], [held.lease_id], timedelta(0))) == []
        with refused(errors.LeaseLost):
            run(worker, calls.note(theirs, held.lease_id, "info", "not mine"))
    step_is(db, theirs, state="running", lease_id=held.lease_id, lease_until=held.lease_until)


def a_login_wishes_for_its_own_tenants(db: DB) -> None:
    step_id = start(db, tenant="theirs")
    run_id: UUID = run(db, calls.start_run("flow.task", "r", "flow.step", tenant="theirs"))[0]
    with login_for(db, "hf_operator", "ours") as operator:
        subjects: list[Any] = [step_id, run_id]
        for subject in subjects:
            with refused(errors.NotFound):
                run(operator, calls.cancel(str(subject)))
