"""A transaction narrows its login to some tenants by `holdfast.tenants`, whoever logs in; nothing widens it.

A login for tenant a says what is right: under `{a}` every other login must read and be answered just that. What is read
and called comes from the catalog, so that a new view or function is held against it too.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, NamedTuple

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.flow import calls as flow
from holdfast.kernel import calls, limit_calls, retention_calls, schedule_calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Fail, Settlement
from holdfast.testing import Clock
from kernel.schedules import define
from security.conftest import Login

DB = Connection[Any]
pytestmark = pytest.mark.one_server
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
SCHEMAS = "{holdfast,work,flow}"
RELATIONS = """
select c.oid::regclass::text, c.relkind = 'v'
  from pg_class c
 where c.relnamespace = any (%s::regnamespace[]) and c.relkind in ('r', 'p', 'v')
   and has_table_privilege('hf_reader', c.oid, 'select')
"""
FUNCTIONS = """
select p.pronamespace::regnamespace || '.' || p.proname, p.proname, p.proargnames[1 : p.pronargs],
       array(select format_type(t, null) from unnest(p.proargtypes) t), p.pronargs - p.pronargdefaults
  from pg_proc p
 where p.pronamespace = any (%s::regnamespace[]) and p.prokind = 'f'
   and exists (select from unnest(%s::text[]) r where has_function_privilege(r, p.oid, 'execute'))
 order by 1
"""
OF_NO_TENANT = {
    "backoff", "chance", "clock", "error_text", "is_due", "is_live", "is_live_worker", "is_own_worker", "is_success",
    "judge_counts", "matches", "matches_any", "partitions_ahead", "reserve_step_ids", "worker_standing",
    "bucket_level", "is_probed", "is_ready", "limit_family", "limit_rule", "rule_text",  # of what the caller passes
    "tokens_at", "would_admit",
    "policy_of", "step_policy",  # of any tenant's steps, for those who know the name
}  # fmt: skip
NEW = "'{lease_id,connections}'::text[]"
ANSWER = f"case jsonb_typeof(to_jsonb(t)) when 'object' then to_jsonb(t) - {NEW} else to_jsonb(t) end"


class Planted(NamedTuple):
    """What there is of a tenant."""

    run_id: str
    in_run: int
    dead: int
    held: ClaimedStep
    due: int


def plant(db: DB, login: Login, tenant: str) -> Planted:
    """Leave something of a tenant in each table and view."""
    own = login("hf_worker", "hf_operator", tenants=[tenant])
    run(own, calls.define_kind("c", lease=None))
    run(own, calls.define_policy("patient"))
    run(own, limit_calls.define_limit("f", concurrency=9))
    run(own, retention_calls.set_retention(timedelta(days=1), tenant=tenant))
    define(own, "f", tenant=tenant, every=timedelta(hours=1))
    run(own, schedule_calls.run_schedule("f", tenant=tenant))
    run(own, flow.define_flow("f", [{"name": "f", "kind": "a"}], namespace="default", version="0.1.0"))
    plan: list[dict[str, Any]] = [{"kind": "a", "name": "f"}, {"kind": "b", "name": "b", "after": ["f"]}]
    (run_id,) = run(db, calls.start_run("flow.task", "f", "flow.step", steps=plan, tenant=tenant))
    (dead,) = run(db, calls.start_task("c", tenant=tenant))
    run(own, calls.enlist_worker(f"w/{tenant}", ["default"]))
    for step in run(own, calls.claim_steps(f"w/{tenant}", batch=9)):
        run(own, calls.note(step.step_id, step.lease_id, "info", f"of {tenant}", key="k"))
        run(own, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("bad"))]))
    run(db, calls.start_task("held", tenant=tenant))
    (held,) = run(own, calls.claim_steps(f"w/{tenant}"))
    (due,) = run(db, calls.start_task("due", tenant=tenant))
    ((in_run,),) = db.execute("select step_id from flow.steps where task_id = %s and name = 'f'", [run_id]).fetchall()
    return Planted(str(run_id), in_run, dead, held, due)


@pytest.fixture
def planted(db: DB, login: Login, clock: Clock) -> dict[str, Planted]:
    clock.freeze()
    return {tenant: plant(db, login, tenant) for tenant in ("a", "b")}


@pytest.fixture(params=["superuser", "all tenants", "tenant a"])
def narrowed(request: pytest.FixtureRequest, db: DB, login: Login) -> tuple[DB, str]:
    """A login, and the setting by which it is left with tenant a."""
    match request.param:
        case "superuser":
            return db, "{a}"
        case "all tenants":
            return login(*RUNTIME), "{a}"
        case _:
            return login(*RUNTIME, tenants=["a"]), "{a,b}"


@contextmanager
def narrow(db: DB, tenants: str) -> Iterator[None]:
    with db.transaction(force_rollback=True):
        db.execute("select set_config('holdfast.tenants', %s, true)", [tenants])
        yield


def rows(db: DB, relation: str) -> list[str]:
    return sorted(row for (row,) in db.execute(f"select to_jsonb(t)::text from {relation} t"))  # type: ignore[arg-type]


def test_every_view_and_table_shows_what_a_login_for_the_tenants_sees(
    db: DB, login: Login, planted: dict[str, Planted], narrowed: tuple[DB, str]
) -> None:
    """R34 X-14: a superuser is past row-level security, so tables show it all; views narrow themselves."""
    user, setting = narrowed
    of_a = login("hf_reader", tenants=["a"])
    relations = db.execute(RELATIONS, [SCHEMAS]).fetchall()

    for relation, is_view in relations:
        if is_view or user is not db:
            with narrow(user, setting):
                assert rows(user, relation) == rows(of_a, relation), relation
        if is_view:
            assert rows(db, relation) != rows(of_a, relation), relation
            assert rows(of_a, relation), relation
    assert rows(db, "holdfast.step_list") != rows(of_a, "holdfast.step_list")  # the setting ended with its transaction


def value(function: str, name: str, kind: str, tenant: str, of: Planted) -> Any:
    """Give an argument that is about a tenant; a parameter that is not known here must have a default."""
    step = of.held if function.startswith("holdfast.") else of.held._replace(step_id=of.in_run)
    values: dict[str, Any] = {
        "tenant": tenant, "tenants": [tenant], "task_id": of.run_id, "run_id": of.run_id, "of_run": of.run_id,
        "task_ids": [of.run_id], "run_ids": [of.run_id], "step_id": step.step_id, "step_ids": [step.step_id],
        "lease_id": step.lease_id, "lease_ids": [step.lease_id], "at_least": timedelta(0), "worker": f"w/{tenant}",
        "others": "[]", "must_progress": True,
        "worker_name": f"w/{tenant}", "queue": "default", "queues": ["default"], "kind": "c", "name": "f",
        "namespace": "default", "version": "0.1.0", "id": step.step_id if function.startswith("flow.") else of.dead,
        "state": "pending", "machine": "flow.task" if function == "holdfast.start_run" else "work.task",
        "step_machine": "flow.step", "policy": "patient", "results": ["1"], "batch": 9,
        "of_step": step.step_id, "of_steps": [step.step_id], "ids": [of.due], "parked_for": "approval",
        "arguments": ["x"], "names": ["x"], "sources": ["own"], "description": "",
        "tasks": f'[{{"name": "x", "tenant": "{tenant}"}}]', "context_schema": "{}", "context": "{}",
        "outcomes": f'[{{"step_id": {step.step_id}, "lease_id": {step.lease_id}, "outcome": "done"}}]',
        "seen_at": "2020-01-01", "clock": "2020-01-01", "error": "{}", "request": "{}", "amount": 1,
        "target": "x", "plans": "[]", "ticks": ["2020-01-01"],
        "keep": "1 day", "what": "runs", "of_id": str(of.dead),
    }  # fmt: skip
    if name == "steps":
        return '[{"kind": "x", "name": "x"}]'
    if name in {"step", "rule"}:
        return None
    return str(values[name]) if name == "id" and kind == "text" else values[name]


class Asked(NamedTuple):
    code: str | None
    rows: list[Any]


def ask(db: DB, function: str, names: list[str], kinds: list[str], arguments: list[Any]) -> Asked:
    """Call a function and undo it: what it answered, but for lease numbers and connections, which differ each time."""
    named = ", ".join(
        f"{name} => %s::{'bigint' if kind == 'anycompatible' else kind}"
        for name, kind in zip(names, kinds, strict=True)
    )
    try:
        with db.transaction(force_rollback=True):
            answer = db.execute(f"select {ANSWER} from {function}({named}) t", arguments)  # type: ignore[arg-type]
            return Asked(None, sorted((row for (row,) in answer), key=str))
    except psycopg.Error as error:
        return Asked(error.sqlstate, [])


def test_every_function_answers_what_it_answers_a_login_for_the_tenants(
    db: DB, login: Login, planted: dict[str, Planted], narrowed: tuple[DB, str]
) -> None:
    """R34 X-14: of another tenant's things just that; of its own it is allowed as much."""
    user, setting = narrowed
    of_a = login(*RUNTIME, tenants=["a"])
    functions = db.execute(FUNCTIONS, [SCHEMAS, RUNTIME]).fetchall()
    taken = {"id", "tenant", "tenants", "run_id", "of_run", "step_id", "step_ids", "worker"}

    for function, name, names, kinds, needed in functions:
        if name in OF_NO_TENANT:
            continue
        places = [no for no, parameter in enumerate(names or []) if no < needed or parameter in taken]
        for tenant, of in planted.items():
            asked = [names[no] for no in places], [kinds[no] for no in places]
            arguments = [value(function, names[no], kinds[no], tenant, of) for no in places]
            expected = ask(of_a, function, *asked, arguments)
            with narrow(user, setting):
                found = ask(user, function, *asked, arguments)
            assert found.code == expected.code, (function, tenant)
            assert found.rows == expected.rows if tenant == "b" else len(found.rows) == len(expected.rows), function


@pytest.mark.parametrize("setting", ["a,b", "{a", "{{a},{b}}", "{a,null}", "{a,*}", '{""}', " "])
def test_a_setting_that_cannot_be_read_is_refused(db: DB, login: Login, setting: str) -> None:
    for user in (db, login("hf_operator")):
        with pytest.raises(errors.BadInput, match=r"holdfast\.tenants"), narrow(user, setting):
            run(user, calls.start_task("x", tenant="a"))


def test_no_tenants_are_none_and_an_empty_setting_is_no_setting(db: DB, planted: dict[str, Planted]) -> None:
    """PostgreSQL leaves '' behind where a transaction had a setting of its own."""
    with narrow(db, "{}"):
        assert rows(db, "holdfast.step_list") == rows(db, "flow.tasks") == []
    with narrow(db, ""):
        assert len(rows(db, "flow.tasks")) == len(planted)
