"""Limits of two tenants in one database: neither sees or changes those of the other, or holds up its work."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import Retry, Settlement, Snooze
from security.conftest import Login

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
TABLES = ["limits", "limit_states", "limit_changes", "limit_list"]


def plant(db: DB, tenant: str) -> None:
    """Leave a rule, a state, a change and a parked step of a tenant."""
    run(db, limit_calls.define_limit(f"api-{tenant}", concurrency=1, tenant=tenant))
    for _ in range(2):
        run(db, calls.start_task("k", tenant=tenant, limits=[f"api-{tenant}"]))
    run(db, calls.claim_steps("w", tenants=[tenant], batch=2))


def limits(db: DB) -> list[Any]:
    return db.execute("select l::text from holdfast.limits l order by 1").fetchall()


@pytest.mark.parametrize("role", RUNTIME)
def test_each_sees_its_own_limits_only(login: Login, db: DB, role: str) -> None:
    """R34 X-14: and the rules for all tenants, which it is under; but not the values of others that these count."""
    run(db, limit_calls.define_limit("tenant:*", concurrency=9, tenant="*"))
    for tenant in ("a", "b"):
        plant(db, tenant)
    user = login(role, tenants=["a"])

    for table in TABLES:
        seen = {name for (name,) in user.execute(f"select name from holdfast.{table}")}
        assert "api-a" in seen, table
        assert seen <= {"api-a", "tenant:*", "tenant:a"}, table


@pytest.mark.parametrize("tenant", ["b", "*"])
@pytest.mark.parametrize("role", ["hf_worker", "hf_operator"])
def test_a_login_changes_no_limit_of_others(login: Login, db: DB, role: str, tenant: str) -> None:
    """R34: neither another tenant's nor one for all, by no function that it may call."""
    run(db, limit_calls.define_limit("api", concurrency=5, tenant=tenant))
    before = limits(db)
    user = login(role, tenants=["a"])
    changes: list[Call[Any]] = [
        limit_calls.define_limit("api", concurrency=0, tenant=tenant),
        limit_calls.pause_limit("api", tenant=tenant),
        limit_calls.resume_limit("api", tenant=tenant),
        limit_calls.forget_limit("api", tenant=tenant),
        limit_calls.reset_limit("api", tenant=tenant),
    ]

    for change in changes:
        with pytest.raises((errors.TenantRefused, errors.PermissionMissing)):
            run(user, change)
    assert limits(db) == before


@pytest.mark.parametrize("outcome", [Retry("busy", pause="api"), Snooze(60, pause="api")])
def test_an_outcome_pauses_nobody_elses_limit(login: Login, db: DB, outcome: Any) -> None:
    """R34: a worker names a limit that its step is not under; what it pauses is its tenant's own."""
    run(db, limit_calls.define_limit("api", concurrency=5, tenant="b"))
    run(db, calls.start_task("k", tenant="a"))
    run(db, calls.start_task("k", tenant="b", limits=["api"]))
    worker = login("hf_worker", tenants=["a"])
    (step,) = run(worker, calls.claim_steps("w"))

    run(worker, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))

    assert len(run(db, calls.claim_steps("w", tenants=["b"]))) == 1


@pytest.mark.parametrize("role", RUNTIME)
def test_a_runtime_role_writes_no_table_of_limits(login: Login, db: DB, role: str) -> None:
    """R35: slots and tokens are counted by functions and triggers alone."""
    plant(db, "a")
    user = login(role)

    for statement in (
        "update holdfast.limits set concurrency = 99",
        "update holdfast.limit_states set held = 0, tokens = null, paused_until = null",
        "delete from holdfast.limits",
        "delete from holdfast.limit_states",
        "truncate holdfast.limit_states",
        "insert into holdfast.limit_changes default values",
        "select holdfast.refresh_limits('{}', now())",
        "select holdfast.count_limits('{}', '{}', '{}', null, now())",
    ):
        with pytest.raises(psycopg.Error) as refused:
            user.execute(statement)
        assert refused.value.sqlstate == "42501", statement
