"""Batches and large runs of two tenants in one database: neither takes part in the other's."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run
from security.conftest import Login

DB = Connection[Any]


def start(db: DB, tenants: str) -> None:
    """Start a step of the same key for each tenant."""
    run(db, calls.define_kind("push", batch=4, batch_by="shop"))
    for tenant in tenants:
        run(db, calls.start_task("push", {"shop": "x"}, tenant=tenant))


@pytest.mark.parametrize("asked", [None, ["a", "b"]])
def test_a_call_has_steps_of_the_logins_tenants_only(login: Login, db: DB, asked: list[str] | None) -> None:
    """R34: and never of two, even if the login is for both."""
    start(db, "abababab")

    (*own,) = run(login("hf_worker", tenants=["a"]), calls.claim_steps("w", batch=2, tenants=asked))
    assert ({step.tenant for step in own}, len({step.call for step in own}), len(own)) == ({"a"}, 1, 2)

    both = run(login("hf_worker", tenants=["a", "b"]), calls.claim_steps("v", batch=9, tenants=asked))
    assert {(step.tenant, step.call) for step in both} == {("a", 2), ("b", 1)}
    assert sorted(step.tenant or "" for step in both) == ["a"] * 2 + ["b"] * 4


def planted(db: DB, tenant: str) -> UUID:
    """Leave a run of a tenant that was paused."""
    (run_id,) = run(db, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "x"}], tenant=tenant))
    run(db, calls.pause_run(str(run_id), reason=f"for {tenant}"))
    return run_id


@pytest.mark.parametrize("role", ["hf_reader", "hf_operator"])
def test_who_paused_a_run_is_seen_by_its_tenant_only(login: Login, db: DB, role: str) -> None:
    """R34"""
    runs = {tenant: planted(db, tenant) for tenant in "ab"}

    for tenant, run_id in runs.items():
        seen = login(role, tenants=[tenant]).execute("select run_id, reason from holdfast.run_changes").fetchall()
        assert seen == [(run_id, f"for {tenant}")]


def test_another_tenants_run_is_not_paused_resumed_stopped_or_retried(login: Login, db: DB) -> None:
    """R34: the same answer as for what does not exist."""
    theirs = str(planted(db, "b"))
    (step_id,) = db.execute("select id from holdfast.steps").fetchone() or (0,)
    operator = login("hf_operator", tenants=["a"])
    before = db.execute("select halt, halt_reason, state from holdfast.runs").fetchall()

    for call in (
        calls.pause_run(theirs), calls.resume_run(theirs), calls.stop_run(theirs), calls.retry_steps(theirs, [step_id]),
    ):  # fmt: skip
        with pytest.raises(errors.NotFound, match=theirs):
            run(operator, call)

    assert db.execute("select halt, halt_reason, state from holdfast.runs").fetchall() == before
