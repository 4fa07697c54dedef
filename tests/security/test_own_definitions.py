"""Kinds, policies and flows that a login for some tenants defines: they hold for those tenants and for nobody else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast import errors
from holdfast.flow import run_list
from holdfast.flow.calls import define_flow
from holdfast.kernel import bulk, calls
from holdfast.kernel.db import run
from holdfast.models import Retry, Settlement
from holdfast.testing import Clock
from security.conftest import Login

DB = Connection[Any]
TENANTS = ("a", "b")
READABLE = ("holdfast.kinds", "holdfast.policies", "flow.definitions")


def define(db: DB, said: str, *, tries: int = 2, lease: int = 60) -> None:
    """Define a policy, a kind that has it and a flow, all told apart by `said`."""
    run(db, calls.define_policy("slow", tries=tries, base=timedelta(0)))
    run(db, calls.define_kind("mail", queue=said, policy="slow", lease=timedelta(seconds=lease)))
    plan = [{"kind": "mail", "name": said, "policy": "slow"}]
    run(db, define_flow("order", plan, namespace="default", version="0.1.0"))


def queues(db: DB, tenant: str) -> set[str]:
    """Start a kind's steps for a tenant in each way there is; the queues that they came to."""
    before = db.execute("select coalesce(max(id), 0) from holdfast.steps").fetchone()
    run(db, calls.start_task("mail", tenant=tenant))
    run(db, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "mail"}], tenant=tenant))
    bulk.start_tasks(db, [bulk.Start("mail", "{}")], tenant=tenant)
    db.execute("select flow.start_task('order', tenant => %s)", [tenant])
    return {queue for (queue,) in db.execute("select queue from holdfast.steps where id > %s", before)}


def lease_seconds(db: DB, queue: str) -> int:
    """Claim one step, renew its lease, and tell how long both are; they agree. The clock stands meanwhile."""
    Clock(db).freeze()
    (step,) = run(db, calls.claim_steps("w", queue))
    question = "select extract(epoch from lease_until - holdfast.clock()) from holdfast.steps where id = %s"
    claimed = db.execute(question, [step.step_id]).fetchone()
    run(db, calls.renew_leases("w", [step.lease_id]))
    renewed = db.execute(question, [step.step_id]).fetchone()
    db.execute("update holdfast_test.dials set stands_at = null")
    assert claimed is not None
    assert claimed == renewed
    return int(claimed[0])


def tries(db: DB, queue: str) -> int:
    """Fail all steps of a queue until they are given up; after how many tries."""
    for number in range(1, 10):
        steps = run(db, calls.claim_steps("w", queue, batch=9))
        outcomes = [Settlement(step.step_id, step.lease_id, Retry("bad", timedelta(0))) for step in steps]
        if {settled.event for settled in run(db, calls.settle_steps(outcomes))} == {"failed"}:
            return number
    raise AssertionError("they are tried for ever")


def steps_of_order(db: DB, tenant: str) -> Sequence[Any]:
    """Start the flow for a tenant; the names of its steps."""
    (task_id,) = db.execute("select flow.start_task('order', tenant => %s)", [tenant]).fetchone() or (None,)
    return db.execute("select name from holdfast.run_steps where run_id = %s", [task_id]).fetchall()


def test_a_new_definition_of_one_tenant_changes_no_other_tenants_starts(login: Login, db: DB) -> None:
    """X-14: also when the name was new, and however the steps are started."""
    define(login("hf_worker", tenants=["a"]), "of_a")
    run(db, define_flow("order", [{"kind": "mail"}], namespace="default", version="0.1.0"))

    assert queues(db, "a") == {"of_a"}
    assert queues(db, "b") == {"default"}


def test_one_tenants_definition_stands_before_everybodys_and_replaces_none(login: Login, db: DB) -> None:
    """X-14: queue, lease, tries and plan, each read where it counts."""
    define(login("hf_operator"), "everybody", tries=2, lease=60)
    a, b = (login("hf_worker", tenants=[tenant]) for tenant in TENANTS)
    define(a, "of_a", tries=4, lease=90)
    define(b, "of_b", tries=3, lease=30)

    assert [queues(db, tenant) for tenant in ("a", "b", "c")] == [{"of_a"}, {"of_b"}, {"everybody"}]
    assert [lease_seconds(db, queue) for queue in ("of_a", "of_b", "everybody")] == [90, 30, 60]
    assert [tries(db, queue) for queue in ("of_a", "of_b", "everybody")] == [4, 3, 2]
    assert [steps_of_order(db, tenant) for tenant in ("a", "b", "c")] == [[("of_a",)], [("of_b",)], [("everybody",)]]


def test_workers_of_several_tenants_that_run_the_same_code_each_define_it_and_upgrade_it(login: Login, db: DB) -> None:
    """X-14: the same definition, then a new one, one worker after the other."""
    workers = [login("hf_worker"), *(login("hf_worker", tenants=[tenant]) for tenant in TENANTS)]

    for said in ("old", "new"):
        for worker in workers:
            define(worker, said)
            define(worker, said)

    assert [queues(db, tenant) for tenant in ("a", "b", "c")] == [{"new"}] * 3


@pytest.mark.parametrize("role", ["hf_producer", "hf_worker", "hf_reader", "hf_operator"])
def test_each_sees_its_own_definitions_and_everybodys(login: Login, db: DB, role: str) -> None:
    """X-14: and a list of flows tells whose each is."""
    define(db, "everybody")
    for tenant in TENANTS:
        define(login("hf_worker", tenants=[tenant]), tenant)
    user, everybody = login(role, tenants=["a"]), login(role)

    for table in READABLE:
        owners = f"select distinct tenant from {table}"
        assert set(user.execute(owners)) == {("*",), ("a",)}, table
        assert set(everybody.execute(owners)) == {("*",), ("a",), ("b",)}, table
    found = run_list.definitions(everybody, name="order")
    assert {(each.tenant, run_list.plan(everybody, each)[0].name) for each in found} == {
        ("*", "everybody"), ("a", "a"), ("b", "b"),
    }  # fmt: skip


def test_a_tenants_own_policy_is_found_by_its_plain_name_and_by_nobody_else(login: Login, db: DB) -> None:
    """X-14"""
    a, b = (login("hf_worker", tenants=[tenant]) for tenant in TENANTS)
    run(a, calls.define_policy("own", tries=7))
    plan: list[dict[str, Any]] = [{"kind": "x", "policy": "own"}]

    run(a, calls.start_run("flow.task", "f", "flow.step", steps=plan, tenant="a"))
    for policy in ("own", "own for tenant a"):
        with pytest.raises(errors.BadInput, match=policy):
            run(b, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "x", "policy": policy}], tenant="b"))
        with pytest.raises(errors.BadInput, match=policy):
            run(b, calls.define_kind("x", policy=policy))
    with pytest.raises(errors.BadInput, match="own"):
        run(db, calls.define_kind("x", policy="own"))

    assert db.execute("select distinct retry_limit from flow.steps").fetchall() == [(7,)]


def test_a_login_without_tenants_defines_nothing(login: Login, db: DB) -> None:
    """R34: the error names what was to be defined."""
    nobody = login("hf_worker")
    db.execute("delete from holdfast.role_tenants where role_name = 'hf_worker'")

    for call, name in (
        (calls.define_kind("mail"), "kind mail"),
        (calls.define_policy("slow"), "policy slow"),
        (define_flow("order", [{"kind": "mail"}], namespace="default", version="0.1.0"), "flow order"),
    ):
        with pytest.raises(errors.TenantRefused, match=name):
            run(nobody, call)


def test_a_hint_names_no_flow_of_another_tenant(login: Login, db: DB) -> None:
    """R34"""
    define(login("hf_worker", tenants=["a"]), "of_a")
    b = login("hf_producer", tenants=["b"])

    with pytest.raises(Exception, match="missing") as caught:
        b.execute("select flow.start_task('missing', %s, tenant => 'b')", [Jsonb({})])
    assert "order" not in str(caught.value)
