"""Ops for several logins: what each role may do, what each tenant sees, and that no caller's code runs as the owner."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from ops.runs import called, claim, event, finish, queue, refused, value
from scenarios.proof import Proof
from security.conftest import Login
from security.test_hijack import waylay

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
VIEWS = ["runs", "run_events", "projects", "environments", "artifacts", "approvals", "webhook_deliveries"]


def plant(db: DB, tenant: str) -> str:
    """Leave something of a tenant in each view."""
    called(db, "define_project", p_project_id="p", p_repository="org/app", p_tenant=tenant)
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True, p_tenant=tenant)
    queue(db, p_project_id="p", p_env="prod", p_tenant=tenant)
    run_id = queue(db, key="same", p_tenant=tenant)
    claim(db)
    event(db, run_id)
    value(db, "add_artifact", run_id, "image", "x")
    called(db, "record_delivery", p_source="github", p_delivery="d", p_event="push", p_outcome="x", p_tenant=tenant)
    return run_id


@pytest.mark.parametrize("role", RUNTIME)
def test_a_tenant_sees_and_reaches_its_own_runs_only(login: Login, db: DB, role: str) -> None:
    """R34, X-14: in every view; another's run looks as if it were not there"""
    runs = {tenant: plant(db, tenant) for tenant in ("a", "b")}
    a = login(role, tenants=["a"])
    narrowed = login(role)

    for view in VIEWS:
        assert {row[0] for row in db.execute(f"select count(*) from ops.{view}")} != {0}
        joined = "join ops.runs r using (run_id)" if view == "run_events" else ""
        column = "r.tenant" if joined else "v.tenant"
        assert a.execute(f"select distinct {column} from ops.{view} v {joined}").fetchall() == [("a",)], view
        with narrowed.transaction():
            narrowed.execute("select set_config('holdfast.tenants', '{a}', true)")
            assert narrowed.execute(f"select distinct {column} from ops.{view} v {joined}").fetchall() == [("a",)], view
    assert a.execute("select queued_count from ops.queue_depth").fetchall() == [(1,)]
    if role == "hf_worker":
        assert refused(a, "append_event", runs["b"], "info", "x") == "RN004"
        assert refused(a, "finish_run", runs["b"], "success") == "RN004"
        assert refused(a, "heartbeat", runs["b"], None) == "RN004"
        assert claim(a, "worker of a") is None
    if role in ("hf_producer", "hf_operator"):
        assert refused(a, "cancel_run", runs["b"], None, None) == "RN004"
        assert refused(a, "retry_run", runs["b"], None, None) == "RN004"
        assert queue(a, key="same", p_tenant="a") == runs["a"] != runs["b"]
        with pytest.raises(psycopg.Error) as exc_info:
            queue(a, key="same", p_tenant="b")
        assert exc_info.value.sqlstate == "RN009"


def test_each_role_does_its_part_and_no_other(login: Login, db: DB) -> None:
    """O-41, X-15: EXECUTE on functions, no table is written; the printed UPDATE is for workers and operators"""
    producer, worker, reader, operator = (login(role) for role in RUNTIME)
    run_id = queue(producer)
    assert claim(worker) == run_id
    event(worker, run_id)
    finish(worker, run_id, "failed")
    (again,) = called(operator, "retry_run", p_run_id=run_id)
    for login_, function, given in (
        (reader, "queue_run", ("p", "e", "s", "r")),
        (producer, "claim_next_run", ("w",)),
        (producer, "finish_run", (again["run_id"], "success")),
        (worker, "cancel_run", (again["run_id"], None, None)),
        (worker, "decide_approval", (again["run_id"], "approved", "x")),
        (producer, "define_environment", ("p", "e")),
    ):
        assert refused(login_, function, *given) == "42501", function
    assert value(operator, "cancel_run", again["run_id"], None, None)
    for login_ in (producer, worker, reader, operator):
        for table in ("run_facts", "known_environments", "run_approvals", "run_artifacts", "settings"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                login_.execute(f"delete from ops.{table}")
    stale = queue(producer)
    assert claim(worker) == stale
    statement = "update ops.runs set status = 'cancelled', finished_at = now() where run_id = %s"
    for login_ in (reader, producer):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            login_.execute(statement, [stale])
    assert worker.execute(statement, [stale]).rowcount == 0  # it is not stale


def test_a_login_cannot_decide_on_its_own_run_under_another_name(login: Login, db: DB) -> None:
    """O-02: neither as a person if it queued as itself, nor as itself if it queued as a person"""
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True)
    one, other = login("hf_operator"), login("hf_operator")
    name = one.info.user
    as_itself = queue(one, p_project_id="p", p_env="prod")
    as_ann = queue(one, p_project_id="p", p_env="prod", p_actor="ann")

    assert refused(one, "decide_approval", as_itself, "approved", "mine", "bob") == "RN010"
    assert refused(one, "decide_approval", as_ann, "approved", "mine") == "RN010"
    assert refused(one, "decide_approval", as_ann, "approved", "mine", name) == "RN010"
    assert value(other, "decide_approval", as_itself, "approved", "good") == "approved"
    assert value(one, "decide_approval", as_ann, "approved", "good", "bob") == "approved"  # a login for many persons


def test_no_login_starts_a_run_or_unparks_one_past_the_functions_of_ops(login: Login, db: DB) -> None:
    """X-15: whatever settings it makes up"""
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True)
    waiting = queue(db, p_project_id="p", p_env="prod", p_actor="ada")
    ((step_id,),) = db.execute("select step_id from ops.run_facts where run_id = %s", [waiting]).fetchall()
    given = Jsonb({"run_id": waiting, "project_id": "p", "env": "prod", "queued_by": "ceo"})
    plan = Jsonb([{"name": "one", "kind": "ops:deploy"}])
    for role in ("hf_producer", "hf_worker", "hf_operator"):
        caller = login(role)
        caller.execute("select set_config('holdfast.is_by_face', 'true', false)")
        for statement, parameters in (
            ("select holdfast.start_step('ops.run', 'ops:deploy', %s, queue => 'ops')", [given]),
            ("select holdfast.start_run('flow.task', 'x', 'ops.run', %s)", [plan]),
            ("select holdfast.stage_steps(), holdfast.take_staged('ops.run')", []),
        ):
            with pytest.raises(psycopg.Error) as exc_info:
                caller.execute(statement, parameters)
            assert exc_info.value.sqlstate == "RN005", statement
        for function in ("make_step('ops.run', 'ops:deploy', is_by_face => true)", "unpark('{1}', 'x', 'y', true)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                caller.execute(f"select holdfast.{function}")
    operator = login("hf_operator")
    with pytest.raises(psycopg.Error) as exc_info:
        operator.execute("select holdfast.unpark_steps(array[%s]::bigint[], 'mine', 'ada')", [step_id])
    assert exc_info.value.sqlstate == "RN005"
    assert claim(db) is None
    assert db.execute("select * from holdfast.violations()").fetchall() == []


CALLS = [
    ("hf_producer", "queue_run", ("p", "staging", "sha", "main")),
    ("hf_producer", "queue_push", ("org/app", "refs/heads/main", "sha")),
    ("hf_producer", "record_delivery", ("github", "d", "push", "x")),
    ("hf_worker", "claim_next_run", ("w",)),
    ("hf_worker", "append_event", ("{running}", "info", "x")),
    ("hf_worker", "heartbeat", ("{running}", None)),
    ("hf_worker", "add_artifact", ("{running}", "image", "x")),
    ("hf_worker", "append_output", ("{step}", "{lease}", ["info"], ["x"], [Jsonb({})], ["k"])),
    ("hf_worker", "retry_in_place", ("{step}", "{lease}", 1, "x")),
    ("hf_worker", "expire_claimed", ("{step}", "{lease}")),
    ("hf_worker", "step_of_run", ("{running}",)),
    ("hf_worker", "finish_run", ("{running}", "success")),
    ("hf_worker", "cancel_stale_runs", ()),
    ("hf_worker", "sweep_runs", ()),
    ("hf_worker", "cancel_if_stale", ("{running}", None)),
    ("hf_operator", "cancel_run", ("{running}", None, None)),
    ("hf_operator", "retry_run", ("{over}", None, None)),
    ("hf_operator", "rollback_run", ("{over}", None, None)),
    ("hf_operator", "decide_approval", ("{waiting}", "approved", "x", "eva")),
    ("hf_operator", "define_project", ("p",)),
    ("hf_operator", "define_environment", ("p", "e")),
    ("hf_operator", "set_strict_projects", (False,)),
]


@pytest.fixture
def places(db: DB) -> dict[str, str]:
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True)
    waiting = queue(db, p_project_id="p", p_env="prod", p_actor="ada")
    runs = []
    for sha in ("a", "b"):
        runs.append(queue(db, p_git_sha=sha))
        claim(db)
        finish(db, runs[-1], "success")
    running = queue(db)
    claim(db)
    event(db, running)
    ((step, lease),) = db.execute("select id::text, lease_id::text from holdfast.steps where lease_id is not null")
    return {"waiting": waiting, "over": runs[-1], "running": running, "step": step, "lease": lease}


@pytest.mark.parametrize(("role", "function", "given"), CALLS, ids=lambda each: each if isinstance(each, str) else "")
def test_a_callers_objects_are_not_used(
    db: DB, login: Login, places: dict[str, str], proof: Proof, role: str, function: str, given: tuple[Any, ...]
) -> None:
    """R35, O-41: the printed functions run a caller's operator as their owner"""
    caller = login(role)
    waylay(db, caller)
    caller.execute("grant usage on schema evil to public")  # so that the owner finds what is in it

    asked = [each.format(**places) if isinstance(each, str) else each for each in given]
    places_of = ", ".join(["%s"] * len(given))
    caller.execute(f"select * from ops.{function}({places_of})", asked)
    proof.add(rounds=1)


@pytest.mark.one_server
def test_without_its_search_path_the_claim_runs_the_callers_code(db: DB, login: Login) -> None:
    """R35: the mutant that the test above would catch"""
    queue(db)
    db.execute("alter function ops.claim_next_run(text) reset search_path")
    worker = login("hf_worker")
    waylay(db, worker)
    worker.execute("grant usage on schema evil to public")

    with pytest.raises(psycopg.errors.RaiseException, match="hijacked"):
        worker.execute("select * from ops.claim_next_run('w')")


@pytest.mark.one_server
def test_every_function_that_acts_as_its_owner_is_tried(db: DB) -> None:
    definers = db.execute(
        "select proname from pg_proc where pronamespace = 'ops'::regnamespace and prosecdef "
        "and prorettype <> 'trigger'::regtype"
    )

    assert {name for (name,) in definers} == {function for _, function, _ in CALLS}
