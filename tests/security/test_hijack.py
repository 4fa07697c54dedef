"""A caller's own objects, put in the way of ours, are not used: no function, no operator, no temporary table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql

from holdfast import cron, errors
from holdfast.kernel import calls, limit_calls, retention_calls, schedule_calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Continue, Done, Fail, Json, Retry, Settlement
from holdfast.testing import events
from scenarios.proof import Proof
from security.conftest import Login

DB = Connection[Any]
SECOND = timedelta(seconds=1)
RETAINING: list[Call[Any]] = [
    retention_calls.set_retention(timedelta(0), machine="work.task", outcome="succeeded"),
    retention_calls.prunable(),
    retention_calls.sweep(),
    retention_calls.sweep_now(afresh=True),
    retention_calls.pruned("1"),
    Call("pruned_steps", object, {"of_run": None}),
    retention_calls.forget_retention(machine="work.task", outcome="succeeded"),
    Call("sweep_state", object, {}),
]

# Each raises when it is called. A path with `evil` before pg_catalog finds them first.
EVIL = """
create function evil.trap() returns text language plpgsql as $$ begin raise exception 'hijacked'; end $$;
create function evil.now() returns timestamptz language sql as $$ select evil.trap()::timestamptz $$;
create function evil.clock() returns timestamptz language sql as $$ select evil.trap()::timestamptz $$;
create function evil.clock_timestamp() returns timestamptz language sql as $$ select evil.trap()::timestamptz $$;
create function evil.format(text, variadic text[]) returns text language sql as $$ select evil.trap() $$;
create function evil.nextval(regclass) returns bigint language sql as $$ select evil.trap()::bigint $$;
create function evil.cardinality(bigint[]) returns int language sql as $$ select evil.trap()::int $$;
create function evil.jsonb_typeof(jsonb) returns text language sql as $$ select evil.trap() $$;
create function evil.current_setting(text, boolean) returns text language sql as $$ select evil.trap() $$;
create function evil.set_config(text, text, boolean) returns text language sql as $$ select evil.trap() $$;
create function evil.pg_has_role(name, oid, text) returns boolean language sql as $$ select evil.trap()::boolean $$;
create function evil.pg_notify(text, text) returns void language sql as $$ select evil.trap() $$;
create function evil.same(text, text) returns boolean language sql as $$ select evil.trap()::boolean $$;
create function evil.same(bigint, bigint) returns boolean language sql as $$ select evil.trap()::boolean $$;
create function evil.after(timestamptz, timestamptz) returns boolean language sql as $$ select evil.trap()::boolean $$;
create function evil.later(timestamptz, interval) returns timestamptz language sql
  as $$ select evil.trap()::timestamptz $$;
create operator evil.= (leftarg = text, rightarg = text, function = evil.same);
create operator evil.= (leftarg = bigint, rightarg = bigint, function = evil.same);
create operator evil.<= (leftarg = timestamptz, rightarg = timestamptz, function = evil.after);
create operator evil.+ (leftarg = timestamptz, rightarg = interval, function = evil.later);
create table evil.steps (id bigint);
create type evil.claimed_step as (step_id bigint);
"""
TRIGGER = "pg_catalog.suppress_redundant_updates_trigger"
OURS = ["runs", "steps", "queues", "workers", "keys", "kinds", "machine_moves", "machine_states", "role_tenants"]
CATALOG = ["pg_class", "pg_roles", "pg_constraint"]


def waylay(db: DB, caller: DB) -> None:
    """Put the caller's own schema and temporary tables first wherever they can be."""
    db.execute(sql.SQL("create schema evil authorization {}").format(sql.Identifier(caller.info.user)))
    caller.execute(EVIL)
    for table in OURS + CATALOG:
        caller.execute(f"create temporary table {table} (id bigint)")
    caller.execute("set search_path = evil, pg_temp, pg_catalog, holdfast")
    with pytest.raises(psycopg.errors.RaiseException, match="hijacked"):
        caller.execute("select now()")


def story(db: DB) -> list[Call[Any]]:
    """List calls that together use every function that acts as its owner."""
    failed, spare = (run(db, calls.start_task(name))[0] for name in ("bad", "spare"))
    (step,) = run(db, calls.claim_steps("w", kinds=["bad"]))
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("bad"))]))
    run(db, calls.start_tasks([{"name": "held"}] * 3))
    one, two, three = run(db, calls.claim_steps("w", kinds=["held"], batch=3))
    run(db, calls.start_run("flow.task", "m", "flow.step", steps=[{"kind": "map", "name": "map"}]))
    (wide,) = run(db, calls.claim_steps("w", kinds=["map"]))
    (idle,) = run(db, calls.start_run("flow.task", "i", "flow.step", steps=[{"kind": "idle", "queue": "idle"}]))
    idle_steps = [row[0] for row in db.execute("select step_id from holdfast.run_steps where run_id = %s", [idle])]
    plan: list[dict[str, Any]] = [{"kind": "a", "name": "a"}, {"kind": "b", "after": ["a"]}]
    return [
        retention_calls.drop_month(),  # first: it needs a transaction that has not used the journal
        calls.start_task("mail", key="k", unique_key="u"),
        calls.start_step("work.task", "slow", policy="work.task", parked_for="approval", actor="ada"),
        calls.start_tasks([{"name": "mail"}, {"name": "mail", "priority": 3}]),
        calls.start_run("flow.task", "f", "flow.step", steps=plan, key="r"),
        calls.stage_steps(),
        calls.take_staged("work.task"),
        Call("reserve_step_ids", int, {"amount": 3}),
        calls.note(one.step_id, one.lease_id, "info", "hello", key="once"),
        calls.renew_leases("w", [one.lease_id, two.lease_id]),
        calls.settle_steps([Settlement(one.step_id, one.lease_id, Done({"a": 1}))]),
        calls.settle_steps([Settlement(two.step_id, two.lease_id, Retry("again"))]),
        Call("settle_steps", object, {"outcomes": three_done(three.step_id, three.lease_id)}),
        limit_calls.charge_limit(wide.step_id, wide.lease_id, "api"),
        calls.add_awaited(wide.step_id, wide.lease_id, [{"kind": "item", "name": "map[0]"}]),
        calls.settle_whole([Settlement(wide.step_id, wide.lease_id, Continue({"mapped": 1}))], must_progress=True),
        limit_calls.define_limit("api", concurrency=9, rate=9, per=SECOND, breaker_after=1, breaker_for=SECOND),
        limit_calls.define_limit("ours", concurrency=9, of_app=True),
        limit_calls.reset_limit("ours"),
        calls.start_task("mail", limits=["api"]),
        calls.claim_steps("w", kinds=["mail"], batch=10, tenants=["default"]),
        calls.claim_steps("w", batch=10),
        calls.enlist_worker("w", ["default"], about={"state": "polling"}),
        calls.mark_asleep("w"),
        calls.lost_leases([one.step_id], [one.lease_id]),
        calls.leases_left([one.step_id], [one.lease_id], SECOND),
        calls.namesakes("w/1"),
        Call("live_workers", object, {"queue": "default"}),
        Call("define_policy", object, {"policy": "mine", "tries": 2}),
        Call("define_kind", object, {"kind": "mail", "policy": "mine"}),
        calls.rescue_steps(),
        calls.upkeep(worker="w", about={"state": "recovery"}),
        calls.measured_upkeep("w", most=10),
        calls.move_chunk(100),
        calls.retire_worker("w"),
        calls.park_steps([spare], "approval"),
        calls.unpark_steps([spare]),
        calls.retry(str(failed)),
        calls.cancel(str(failed)),
        calls.cancel(str(spare)),
        calls.queue_run(str(idle)),
        calls.pause_run(str(idle)),
        calls.halted_runs([idle]),
        calls.resume_run(str(idle)),
        calls.stop_run(str(idle)),
        calls.retry_steps(str(idle), idle_steps),
        calls.pause_queue("default"),
        limit_calls.pause_limit("api"),
        Call("would_admit", object, {"step": None, "clock": None}),
        limit_calls.resume_limit("api"),
        limit_calls.forget_limit("api"),
        calls.resume_queue("default"),
        *scheduling(db),
        *RETAINING,
        Call("allowed_tenants", object, {}),
        Call("partitions_ahead", object, {}),
        calls.violations(),
    ]


def scheduling(db: DB) -> list[Call[Any]]:
    """List calls about schedules: ticks that are due, and a plan that is still to be stored."""
    when = schedule_calls.When
    target = schedule_calls.Target("work", "mail", Json("{}"), {}, "default")
    run(db, schedule_calls.define_schedule("new", target, when(cron="0 2 * * *")))
    (fired,) = run(db, schedule_calls.fire_schedules())
    run(db, schedule_calls.define_schedule("due", target, when(every=SECOND), overlap="cancel"))
    db.execute("update holdfast.schedules set after_at = after_at - interval '1 h', wake_at = holdfast.clock()")
    (new,) = run(db, schedule_calls.fire_schedules())
    return [
        schedule_calls.define_schedule("mine", target, when(cron="0 2 * * *", timezone="Europe/Berlin")),
        schedule_calls.fire_schedules(),
        schedule_calls.plan_schedules([cron.plan(wanted) for wanted in (*fired.plans, *new.plans)]),
        schedule_calls.pause_schedule("mine"),
        schedule_calls.resume_schedule("mine"),
        schedule_calls.run_schedule("mine"),
        schedule_calls.backfill_schedule("mine", [datetime(2026, 1, 1, tzinfo=UTC)]),
        schedule_calls.forget_schedule("mine"),
    ]


def three_done(step_id: int, lease_id: int) -> str:
    return f'[{{"step_id": {step_id}, "lease_id": {lease_id}, "outcome": "done"}}]'


def test_functions_that_act_as_their_owner_use_our_objects_only(login: Login, db: DB, proof: Proof) -> None:
    """R35: each that a runtime role may call, called with the caller's objects first in its path."""
    caller = login("hf_producer", "hf_worker", "hf_operator")
    wishes = story(db)
    run(db, calls.start_task("dead"))
    (dead,) = run(db, calls.claim_steps("w", kinds=["dead"]))
    run(db, calls.settle_steps([Settlement(dead.step_id, dead.lease_id, Fail("bad"))]))
    waylay(db, caller)

    alone = retention_calls.drop_month()  # it refuses a transaction that has used the journal
    run(caller, alone)
    with caller.transaction():  # one, because what is staged ends with it
        for call in [*wishes, calls.resolve(str(dead.step_id))]:
            run(caller, call)

    called = {call.function for call in wishes} | {"resolve", alone.function}
    definers = db.execute(
        """select p.proname from pg_proc p
            where p.pronamespace = 'holdfast'::regnamespace and p.prosecdef
              and has_function_privilege(%s, p.oid, 'execute')""",
        [caller.info.user],
    )
    proof.add(rounds=len(called))
    assert {name for (name,) in definers} == called
    assert events(db, step=dead.step_id)[-1] == "resolved"
    assert run(db, calls.violations()) == []


def test_functions_of_flows_use_our_objects_only(login: Login, db: DB) -> None:
    """R35: those that act as their owner, and those that read as their caller."""
    caller = login("hf_producer", "hf_worker", "hf_operator")
    run(db, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "a", "name": "a"}]))
    (step,) = run(db, calls.claim_steps("w", kinds=["a"]))
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("bad"))]))
    waylay(db, caller)
    task, plan = f"'{step.run_id}'", """'[{"kind": "a", "name": "a"}]'"""
    acting = {
        "define_flow": f"'g', {plan}",
        "initialize_task": f"'g', {plan}",
        "start_task": "'g'",
        "retry_from": str(step.step_id),
        "adjust_step": f"{step.step_id}, 5",
        "safe_transition_to": f"{step.step_id}, 'pending'",
        "touched_tasks": f"'w', array[{step.step_id}]",
        "settled_tasks": f"'w', array[{step.step_id}]",
        "closed_tasks": f"'w', array[{step.step_id}]",
    }
    reading = {
        "get_step_readiness_status": task,
        "get_task_execution_context": task,
        "calculate_dependency_levels": task,
        "states_from_history": task,
        "get_system_health_counts": "",
        "step_outcomes": task,
        "result_in_run": f"{task}, 'a'",
        "judge_counts": "'error', 1, 0, 1, 0, 0, 1",
    }

    for function, arguments in (acting | reading).items():
        caller.execute(f"select * from flow.{function}({arguments})")
    caller.execute(f"update flow.steps set retry_limit = 9 where step_id operator(pg_catalog.=) {step.step_id}::int")

    definers = db.execute(
        """select p.proname from pg_proc p where p.pronamespace = 'flow'::regnamespace and p.prosecdef
              and has_function_privilege(%s, p.oid, 'execute')""",
        [caller.info.user],
    )
    assert {name for (name,) in definers} == acting.keys()
    assert run(db, calls.violations()) == []


@pytest.mark.parametrize("kind", ["table", "table and trigger", "view"])
def test_a_callers_own_staging_table_is_refused(login: Login, db: DB, kind: str) -> None:
    """R35: its trigger, or its view's function, would run as the owner."""
    caller = login("hf_producer")
    db.execute(sql.SQL("create schema evil authorization {}").format(sql.Identifier(caller.info.user)))
    caller.execute(
        """create function evil.trap() returns trigger language plpgsql as $$ begin raise exception 'hijacked'; end $$;
           create function evil.say() returns text language plpgsql as $$ begin raise exception 'hijacked'; end $$"""
    )
    columns = "id bigint, kind text, input jsonb, name text, queue text, priority smallint, due_at timestamptz, "
    caller.execute(f"create temporary table mine ({columns} unique_key text, policy text, waits int)")
    caller.execute("insert into mine (id, kind, input, priority, waits) values (1, 'x', '{}', 0, 0)")
    if kind == "view":
        caller.execute("create temporary view staged_steps as select m.*, evil.say() as said from mine m")
    else:
        caller.execute("alter table mine rename to staged_steps")
    if kind == "table and trigger":
        caller.execute(
            "create trigger trap before update on staged_steps for each row execute function evil.trap()",
        )
    caller.execute("create temporary table staged_edges (step_id bigint, next_id bigint)")

    with pytest.raises(errors.BadInput, match="staged"):
        run(caller, calls.take_staged("work.task"))
    with pytest.raises(errors.BadInput, match="staged"):
        run(caller, calls.stage_steps())

    assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)


def test_a_staged_table_takes_rows_and_nothing_else(login: Login) -> None:
    """R35: who copies into it may not change what it does."""
    caller = login("hf_producer")

    for statement in (
        "alter table pg_temp.staged_steps alter kind set default 'x'",
        f"create trigger t before update on pg_temp.staged_steps for each row execute function {TRIGGER}()",
        "create rule r as on update to pg_temp.staged_steps do instead nothing",
        "update pg_temp.staged_steps set kind = 'x'",
        "drop table pg_temp.staged_steps",
    ):
        with caller.transaction(force_rollback=True):
            run(caller, calls.stage_steps())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                caller.execute(statement)


def stage_with(caller: DB, *ids: int) -> int:
    """Stage steps with these ids, and take them over."""
    with caller.transaction():
        run(caller, calls.stage_steps())
        for number in ids:
            caller.execute("insert into pg_temp.staged_steps (id, kind) values (%s, 'x')", [number])
        return run(caller, calls.take_staged("work.task"))[0]


def reserve(caller: DB, amount: int) -> list[int]:
    return run(caller, Call("reserve_step_ids", int, {"amount": amount}))


def test_a_staged_step_takes_only_an_id_that_its_login_reserved(login: Login, db: DB) -> None:
    """R35: another's, one from the future or one that was taken from the sequence would make a later start fail."""
    caller, other = login("hf_producer"), login("hf_producer")
    own, theirs = reserve(caller, 2), reserve(other, 2)
    own += reserve(caller, 1)
    (taken,) = caller.execute("select nextval('holdfast.step_ids')").fetchone() or (0,)

    for odd in (*theirs, 1_000_000, 0, -1, taken):
        with pytest.raises(errors.BadInput, match=f"{odd}.*reserve_step_ids"):
            stage_with(caller, *own, odd)
        assert db.execute("select count(*) from holdfast.steps").fetchone() == (0,)

    assert stage_with(caller, *own) == 3
    assert stage_with(other, *theirs) == 2
    run(db, calls.start_tasks([{"name": "mail"}] * 3))


def test_a_reservation_lasts_a_day(login: Login, db: DB) -> None:
    """R35: upkeep forgets the older ones."""
    caller = login("hf_producer")
    old = reserve(caller, 1)
    db.execute("update holdfast_test.dials set ahead = '25 hours'")
    new = reserve(caller, 1)
    run(db, calls.upkeep())

    with pytest.raises(errors.BadInput, match=str(old[0])):
        stage_with(caller, *old)
    assert stage_with(caller, *new) == 1


def test_the_id_that_a_staged_step_gets_by_itself_is_not_the_callers_to_choose(login: Login) -> None:
    """R35"""
    caller = login("hf_producer")

    with caller.transaction(force_rollback=True):
        run(caller, calls.stage_steps())
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            caller.execute("insert into pg_temp.staged_steps (kind, own_id) values ('x', 7)")
