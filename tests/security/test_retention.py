"""Retention for several tenants: rules, counts and what was removed are each tenant's own."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast import Holdfast, errors
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.retention import days, flow, sweep, task
from security.conftest import Login

DB = Connection[Any]


@pytest.mark.parametrize("role", ["hf_producer", "hf_worker", "hf_reader", "hf_operator"])
def test_another_tenants_id_looks_as_if_it_never_existed_pruned_or_not(
    login: Login, db: DB, clock: Clock, role: str
) -> None:
    """R34 X-16"""
    pruned = {tenant: task(db, tenant=tenant) for tenant in ("a", "b")}
    clock.advance(days(31))
    sweep(db)
    alive = {tenant: task(db, tenant=tenant) for tenant in ("a", "b")}
    user = login(role, tenants=["a"])

    def told(step_id: int) -> list[Any]:
        return [
            [removal.rule for removal in run(user, retention_calls.pruned(str(step_id)))],
            run(user, calls.step_status([step_id])),
            run(user, calls.step_events(step_id)),
        ]

    assert told(pruned["a"])[0] == ["succeeded: 30 days"]
    assert told(pruned["b"]) == told(alive["b"]) == told(10**9) == [[], [], []]


@pytest.mark.parametrize("make", [task, flow], ids=["task", "run"])
def test_a_handle_of_another_tenants_reads_as_one_that_never_existed(
    login: Login, db: DB, clock: Clock, make: Any
) -> None:
    """R34 X-16: the same words, whether it is there, was pruned or never was."""
    pruned = {tenant: make(db, tenant=tenant) for tenant in ("a", "b")}
    clock.advance(days(31))
    sweep(db)
    alive = make(db, tenant="b")
    never = 10**12 if make is task else UUID("018f0000-0000-7000-8000-000000000000")
    app = Holdfast(login("hf_producer", tenants=["a"]).info.dsn)

    for method in ("status", "result"):
        with pytest.raises(errors.Pruned):
            getattr(app.handle(pruned["a"]), method)()
        answers = set()
        for subject in (pruned["b"], alive, never):
            with pytest.raises(errors.NotFound) as refused:
                getattr(app.handle(subject), method)()
            answers.add((type(refused.value), str(refused.value).replace(str(subject), "…"), refused.value.next))
        assert len(answers) == 1
    app.close()


def test_an_operator_acts_on_another_tenants_id_as_on_none(login: Login, db: DB, clock: Clock) -> None:
    """R34"""
    step_id = task(db, "failed", tenant="b")
    clock.advance(days(91))
    sweep(db)
    operator = login("hf_operator", tenants=["a"])

    refusals = []
    for subject in (step_id, 10**9):
        with pytest.raises(errors.NotFound) as refused:
            run(operator, calls.retry(str(subject)))
        refusals.append(refused.value.what.replace(str(subject), "…"))

    assert refusals[0] == refusals[1]


def test_a_login_for_some_tenants_sets_rules_for_those(login: Login, db: DB) -> None:
    """R34: not for all, not for others, and not for the journal, which is everybody's."""
    operator = login("hf_operator", tenants=["a", "b"])
    run(operator, retention_calls.set_retention(days(1), queue="bulk"))
    run(operator, retention_calls.set_retention(days(2), tenant="a"))

    for rule in ({"tenant": "c"}, {"tenant": "*"}, {"what": "journal"}, {"what": "ticks"}):
        with pytest.raises(errors.TenantRefused) as refused:
            run(operator, retention_calls.set_retention(days(60), **rule))
        assert refused.value.next or "tenant" in refused.value.what
    with pytest.raises(errors.TenantRefused):
        run(operator, retention_calls.sweep_now())

    mine = login("hf_reader", tenants=["a"])
    seen = mine.execute("select rule from holdfast.retention_list where not is_default order by 1").fetchall()
    assert seen == [("tenant a, queue bulk: 1 day",), ("tenant a: 2 days",)]
    assert mine.execute("select count(*) from holdfast.retention_changes").fetchone() == (2,)


def test_counts_are_of_the_logins_own_tenants(login: Login, db: DB, clock: Clock) -> None:
    """R34"""
    for tenant in ("a", "b", "b"):
        task(db, tenant=tenant)
    run(db, calls.start_task("x", key="k", key_for=days(1)))
    clock.advance(days(31))

    counted = {
        tenants: [
            (c.what, c.rows) for c in run(login("hf_operator", tenants=list(tenants)), retention_calls.prunable())
        ]
        for tenants in ("a", "b")
    }

    assert counted == {"a": [("tasks", 1)], "b": [("tasks", 2)]}
    assert ("keys", 1) in [(c.what, c.rows) for c in run(login("hf_operator"), retention_calls.prunable())]


@pytest.mark.parametrize("role", ["hf_producer", "hf_reader"])
def test_only_workers_and_operators_remove_anything(login: Login, db: DB, role: str) -> None:
    """R35"""
    user = login(role)
    for call in (
        retention_calls.sweep(),
        retention_calls.sweep_now(),
        retention_calls.drop_month(),
        retention_calls.prunable(),
        retention_calls.set_retention(days(1)),
        retention_calls.forget_retention(),
    ):
        with pytest.raises(errors.PermissionMissing):
            run(user, call)


def test_a_worker_for_one_tenant_sweeps_for_all(login: Login, db: DB, clock: Clock) -> None:
    """As a rescue does: rows do not stay because the only worker serves another tenant."""
    task(db, tenant="b")
    clock.advance(days(31))

    (chunk,) = run(login("hf_worker", tenants=["a"]), retention_calls.sweep())

    assert chunk.steps == 1
