"""Schedules of several tenants: a login fires, changes and sees those of its own."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import schedule_calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, listed, ticks
from security.conftest import Login

DB = Connection[Any]
HOUR = timedelta(hours=1)
VIEWS = ("schedules", "schedule_list", "ticks", "schedule_ticks", "schedule_changes")


def changes(tenant: str, name: str = "report") -> list[Call[Any]]:
    """List every change that an operator can make to a schedule."""
    calls = schedule_calls
    return [
        calls.pause_schedule(name, tenant=tenant),
        calls.resume_schedule(name, tenant=tenant),
        calls.run_schedule(name, tenant=tenant),
        calls.backfill_schedule(name, [at("03-01 00:00")], tenant=tenant),
        calls.forget_schedule(name, tenant=tenant),
    ]


def test_another_tenants_schedule_is_refused_whether_it_exists_or_not(login: Login, db: DB, clock: Clock) -> None:
    """R34: with what to do, and the same words for a name that nobody has."""
    clock.set(at("03-01 00:00"))
    define(db, tenant="b", every=HOUR)
    before = listed(db)
    operator, worker = login("hf_operator", tenants=["a"]), login("hf_worker", tenants=["a"])

    for call, unknown in zip(changes("b"), changes("b", "nobody"), strict=True):
        answers = []
        for each in (call, unknown):
            with pytest.raises(errors.TenantRefused) as refused:
                run(operator, each)
            answers.append((refused.value.what, refused.value.next))
        assert answers[0] == answers[1]
        assert answers[0][1]
    with pytest.raises(errors.TenantRefused) as refused:
        define(worker, tenant="b", every=2 * HOUR)
    assert refused.value.next
    clock.advance(HOUR)
    assert fire(worker) is None
    assert (listed(db), ticks(db)) == (before, [])


def test_a_name_that_the_login_may_use_and_that_is_not_there_is_not_found(login: Login, db: DB) -> None:
    operator = login("hf_operator", tenants=["a"])
    define(db, tenant="b", every=HOUR)

    for call in changes("a")[:-1]:
        with pytest.raises(errors.NotFound) as refused:
            run(operator, call)
        assert (refused.value.where, bool(refused.value.next)) == ("report", True)
    assert run(operator, changes("a")[-1]) == [False]


@pytest.mark.parametrize("role", ["hf_worker", "hf_reader", "hf_operator"])
def test_each_sees_its_own_schedules_and_ticks(login: Login, db: DB, clock: Clock, role: str) -> None:
    """R34"""
    clock.set(at("03-01 00:00"))
    for tenant in ("a", "b"):
        define(db, tenant=tenant, every=HOUR)
    clock.advance(HOUR)
    fire(db)

    for tenants in (["a"], ["b"], ["a", "b"], ["none"]):
        user = login(role, tenants=tenants)
        for view in VIEWS:
            seen = {tenant for (tenant,) in user.execute(f"select tenant from holdfast.{view}")}
            assert seen == set(tenants) - {"none"}, view
