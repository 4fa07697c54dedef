"""Workers' rows: a login for some tenants sees and touches those that serve no other tenant."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.kernel.query import query
from holdfast.reads import queues_workers, run_detail
from holdfast.testing import Clock
from kernel.steps import seconds
from security.conftest import Login

DB = Connection[Any]


def enlist(db: DB, worker: str, **options: Any) -> None:
    run(db, calls.enlist_worker(worker, ["default"], **{"kinds": ["mail"], "about": {"host": worker}, **options}))


def rows(db: DB) -> list[Any]:
    return db.execute("select * from holdfast.workers order by worker, queue").fetchall()


def names(db: DB) -> set[str]:
    return {worker for (worker,) in db.execute("select worker from holdfast.worker_list")}


def test_a_login_touches_no_worker_that_serves_another_tenant(login: Login, db: DB, clock: Clock) -> None:
    """X-14: whether it serves that one alone or all."""
    b, everybody = login("hf_worker", tenants=["b"]), login("hf_worker")
    enlist(b, "of_b/1")
    enlist(everybody, "of_all/1")
    run(everybody, calls.claim_steps("of_all/1", kinds=["mail"]))
    a = login("hf_worker", tenants=["a"])
    before = rows(db)
    clock.advance(seconds(20))  # a claim and a renewal write the row again after ten

    for worker in ("of_b/1", "of_all/1"):
        takeovers: list[Call[Any]] = [
            calls.enlist_worker(worker, ["default"]),
            calls.enlist_worker(worker, ["other", "default"]),
            calls.claim_steps(worker),
        ]
        for call in takeovers:
            with pytest.raises(errors.TenantRefused, match=worker):
                run(a, call)
        run(a, calls.retire_worker(worker))
        run(a, calls.mark_asleep(worker))
        run(a, calls.renew_leases(worker, [1]))
        run(a, calls.upkeep(worker=worker, about={"state": "stopped"}))
        assert run(a, calls.namesakes(worker.replace("1", "2"))) == []

    assert rows(db) == before


def test_a_login_uses_its_own_workers_and_one_for_all_uses_every(login: Login, db: DB) -> None:
    """X-14"""
    a = login("hf_worker", tenants=["a", "c"])
    enlist(a, "of_a/1", tenants=["a"])
    run(a, calls.claim_steps("of_a/1", kinds=["mail"]))
    run(a, calls.mark_asleep("of_a/1"))
    run(a, calls.upkeep(worker="of_a/1", about={"state": "idle"}))

    assert run(a, calls.namesakes("of_a/2")) == ["of_a/1"]
    assert db.execute("select state, is_asleep from holdfast.workers").fetchall() == [("idle", True)]
    run(a, calls.retire_worker("of_a/1"))
    assert rows(db) == []
    enlist(a, "of_a/1")
    run(login("hf_worker"), calls.retire_worker("of_a/1"))
    assert rows(db) == []


@pytest.mark.parametrize("role", ["hf_producer", "hf_worker", "hf_reader", "hf_operator"])
def test_each_sees_its_own_workers_only(login: Login, db: DB, role: str) -> None:
    """X-14: in the table and in the list; how many serve it is told without names."""
    for worker, tenants in (("of_a", ["a"]), ("of_b", ["b"]), ("of_both", ["a", "b"]), ("of_all", None)):
        enlist(db, worker, tenants=tenants)
    (step_id,) = run(db, calls.start_task("mail", tenant="a"))
    a, both, everybody = login(role, tenants=["a"]), login(role, tenants=["a", "b"]), login(role)

    assert names(a) == {"of_a"}
    assert names(both) == {"of_a", "of_b", "of_both"}
    assert names(everybody) == {"of_a", "of_b", "of_both", "of_all"}
    assert {row[0] for row in rows(a)} == {"of_a"}
    assert {worker.worker for worker in query(a, queues_workers.workers(is_all=True))} == {"of_a"}
    for user, queue in ((a, 3), (both, 4), (everybody, 4)):
        (found,) = query(user, queues_workers.queues())
        assert found.live_workers == queue
        assert user.execute("select live_workers from holdfast.queue_list").fetchall() == [(queue,)]
        (step,) = user.execute(run_detail.STEP, {"id": step_id}).fetchall()
        assert 3 in step


def test_a_worker_that_would_serve_no_tenant_of_its_login_is_refused(login: Login, db: DB) -> None:
    """R34: and its claims bring nothing."""
    a = login("hf_worker", tenants=["a"])

    with pytest.raises(errors.TenantRefused, match="w/1"):
        enlist(a, "w/1", tenants=["b"])

    assert run(a, calls.claim_steps("w/1", tenants=["b"])) == []
    assert rows(db) == []


def test_a_login_parks_and_unparks_no_step_that_others_serve(login: Login, db: DB) -> None:
    """X-14: a claim passes them over, and one that is parked waits for a worker that serves it."""
    a, b = login("hf_worker", tenants=["a"]), login("hf_worker", tenants=["b"])
    enlist(b, "of_b/1")
    for _ in range(3):
        run(db, calls.start_task("mail", tenant="b"))

    assert run(a, calls.claim_steps("of_a/1", batch=9)) == []
    assert due(db) == [True] * 3
    run(b, calls.retire_worker("of_b/1"))
    assert run(a, calls.claim_steps("of_a/1", batch=9)) == []
    assert due(db) == [False] * 3  # nobody serves them now
    enlist(a, "of_a/2", tenants=["a", "b"])
    assert due(db) == [False] * 3
    enlist(b, "of_b/2")
    assert due(db) == [True] * 3


def due(db: DB) -> list[bool]:
    found: list[datetime | None] = [at for (at,) in db.execute("select due_at from holdfast.steps order by id")]
    return [at is not None for at in found]
