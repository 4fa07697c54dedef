"""Two tenants in one database: neither sees, starts, claims, settles or wishes anything for the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.flow import calls as flow
from holdfast.kernel import bulk, calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Continue, Done, Fail, Outcome, Release, Retry, Settlement
from holdfast.testing import events
from security.conftest import Login

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
SEEN = ["runs", "steps", "run_steps", "edges", "journal", "notes", "run_list", "step_list", "step_story", "dead_steps"]


def plant(db: DB, tenant: str) -> UUID:
    """Leave something of a tenant in each table: a run with an edge, moves, a note, a dead step."""
    plan: list[dict[str, Any]] = [{"kind": "a", "name": "a"}, {"kind": "b", "after": ["a"]}]
    (run_id,) = run(db, calls.start_run("flow.task", "f", "flow.step", steps=plan, tenant=tenant, key="same"))
    run(db, calls.start_task("c", tenant=tenant, key="too"))
    for step in run(db, calls.claim_steps("w", batch=9, tenants=[tenant])):
        run(db, calls.note(step.step_id, step.lease_id, "info", f"of {tenant}"))
        run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Fail("bad"))]))
    return run_id


def held(db: DB, tenant: str) -> ClaimedStep:
    run(db, calls.start_task("held", tenant=tenant))
    (step,) = run(db, calls.claim_steps("w", kinds=["held"], tenants=[tenant]))
    return step


def count(db: DB, table: str) -> int:
    row = db.execute(f"select count(*) from holdfast.{table}").fetchone()
    assert row is not None
    return int(row[0])


@pytest.mark.parametrize("role", RUNTIME)
def test_each_sees_its_own_rows_only(login: Login, db: DB, role: str) -> None:
    """R34 X-14: in every table and view, whatever the role; and who is for both sees both."""
    runs = {tenant: plant(db, tenant) for tenant in ("a", "b")}
    a, b, both = login(role, tenants=["a"]), login(role, tenants=["b"]), login(role, tenants=["a", "b"])
    everybody = login(role)

    for table in SEEN:
        assert count(a, table) == count(b, table) > 0, table
        assert count(both, table) == count(everybody, table) == count(a, table) + count(b, table), table
    for user, tenant in ((a, "a"), (b, "b")):
        assert user.execute("select id from holdfast.run_list").fetchall() == [(runs[tenant],)]
        for table in ("runs", "steps", "journal", "notes"):
            assert user.execute(f"select distinct tenant from holdfast.{table}").fetchall() == [(tenant,)]


def test_a_login_for_a_tenant_that_has_nothing_sees_nothing(login: Login, db: DB) -> None:
    """R34"""
    plant(db, "a")
    user = login("hf_reader", tenants=["none"])

    assert [count(user, table) for table in SEEN] == [0] * len(SEEN)


def test_a_handle_reads_nothing_of_another_tenants(login: Login, db: DB) -> None:
    """Neither state nor story, of a run or of a step."""
    runs = {tenant: plant(db, tenant) for tenant in ("a", "b")}
    steps = {tenant: held(db, tenant).step_id for tenant in ("a", "b")}
    reader = login("hf_reader", tenants=["a"])

    for tenant, expected in (("a", True), ("b", False)):
        reads: list[Call[Any]] = [calls.run_status([runs[tenant]]), calls.run_events(runs[tenant])]
        reads += [calls.step_status([steps[tenant]]), calls.step_events(steps[tenant])]
        assert [bool(run(reader, read)) for read in reads] == [expected] * 4


def test_a_login_whose_groups_have_no_tenants_sees_nothing(login: Login, db: DB) -> None:
    """R34: unset is zero rows, not all."""
    plant(db, "a")
    user = login("hf_reader", "hf_worker")
    db.execute("delete from holdfast.role_tenants where role_name in ('hf_reader', 'hf_worker')")

    assert [count(user, table) for table in SEEN] == [0] * len(SEEN)
    assert run(user, calls.claim_steps("w")) == []
    with pytest.raises(errors.TenantRefused):
        run(user, calls.start_task("x", tenant="a"))


def test_a_start_for_another_tenant_is_refused(login: Login, db: DB) -> None:
    """R34: also in bulk, and into another tenant's run."""
    producer = login("hf_producer", tenants=["a"])
    theirs = plant(db, "b")
    before = count(db, "steps"), count(db, "runs")

    wishes: list[Call[Any]] = [
        calls.start_task("x", tenant="b"),
        calls.start_task("x"),  # the default tenant is one like the others
        calls.start_tasks([{"name": "x", "tenant": "a"}, {"name": "x", "tenant": "b"}]),
        calls.start_run("flow.task", "f", "flow.step", tenant="b"),
    ]
    for call in wishes:
        with pytest.raises(errors.TenantRefused):
            run(producer, call)
    with pytest.raises(errors.TenantRefused):
        bulk.start_tasks(producer, [bulk.Start("x", "{}")], tenant="b")
    with producer.transaction(force_rollback=True):
        run(producer, calls.stage_steps())
        producer.execute("insert into pg_temp.staged_steps (kind) values ('x')")
        with pytest.raises(errors.NotFound):
            run(producer, calls.take_staged("flow.step", run_id=theirs, tenant="a"))
    assert (count(db, "steps"), count(db, "runs")) == before


def test_a_run_is_not_started_over_another_tenants(login: Login, db: DB) -> None:
    """R34: nor may it name one that it undoes or checks."""
    theirs = plant(db, "b")
    producer = login("hf_producer", tenants=["a"])

    with pytest.raises(errors.NotFound):
        run(producer, calls.start_run("flow.task", "f", "flow.step", tenant="a", of_run=theirs))


def test_the_same_key_is_another_tenants_own(login: Login, db: DB) -> None:
    """X-14"""
    a, b = login("hf_producer", tenants=["a"]), login("hf_producer", tenants=["b"])

    ids = [run(user, calls.start_task("x", key="k", unique_key="u", tenant=t))[0] for user, t in ((a, "a"), (b, "b"))]

    assert ids[0] != ids[1]
    assert run(a, calls.start_task("x", key="k", tenant="a")) == [ids[0]]


@pytest.mark.parametrize("asked", [None, ["a", "b"], ["b"]])
def test_a_claim_gives_own_steps_only(login: Login, db: DB, asked: list[str] | None) -> None:
    """R34: whichever tenants it asks for."""
    for tenant in ("a", "b", "a"):
        run(db, calls.start_task("x", tenant=tenant))
    worker = login("hf_worker", tenants=["a"])

    claimed = run(worker, calls.claim_steps("w", batch=9, tenants=asked))

    tenants = {db.execute("select tenant from holdfast.steps where id = %s", [s.step_id]).fetchone() for s in claimed}
    assert len(claimed) == (0 if asked == ["b"] else 2)
    assert tenants <= {("a",)}


@pytest.mark.parametrize("outcome", [Done(), Retry("x"), Fail("x"), Continue(1), Release()])
def test_another_tenants_step_is_not_settled(login: Login, db: DB, outcome: Outcome) -> None:
    """R34: even by somebody who knows its lease."""
    step = held(db, "b")
    worker = login("hf_worker", tenants=["a"])

    settled = run(worker, calls.settle_steps([Settlement(step.step_id, step.lease_id, outcome)]))
    by_json = run(worker, Call("settle_steps", object, {"outcomes": as_json(step)}))

    assert settled == by_json == []
    assert events(db, step=step.step_id) == ["claimed"]


def as_json(step: ClaimedStep) -> str:
    return f'[{{"step_id": {step.step_id}, "lease_id": {step.lease_id}, "outcome": "fail"}}]'


def test_another_tenants_lease_is_not_renewed_and_takes_no_notes(login: Login, db: DB) -> None:
    """R34"""
    step = held(db, "b")
    worker = login("hf_worker", tenants=["a"])

    assert run(worker, calls.renew_leases("w", [step.lease_id])) == []
    assert run(worker, calls.renew_leases("w", [step.lease_id], step_ids=[step.step_id])) == []
    with pytest.raises(errors.LeaseLost):
        run(worker, calls.note(step.step_id, step.lease_id, "info", "hello"))

    assert count(db, "notes") == 0


def test_a_rescue_says_nothing_of_other_tenants(login: Login, db: DB) -> None:
    """R34: it takes their steps back too, for any worker may, but does not tell which."""
    step = held(db, "b")
    worker = login("hf_worker", tenants=["a"])
    db.execute("update holdfast_test.dials set ahead = '1 hour'")

    assert run(worker, calls.rescue_steps()) == []
    assert events(db, step=step.step_id) == ["claimed", "expired"]


def test_wishes_for_another_tenants_things_find_nothing(login: Login, db: DB) -> None:
    """R34: the same answer as for what does not exist."""
    theirs = plant(db, "b")
    steps = [str(number) for (number,) in db.execute("select id from holdfast.steps order by id")]
    operator = login("hf_operator", tenants=["a"])
    before = db.execute("select id, state from holdfast.steps order by id").fetchall()

    for target in [str(theirs), *steps]:
        for wish in (calls.cancel, calls.retry, calls.resolve):
            with pytest.raises(errors.NotFound, match=str(target)):
                run(operator, wish(target))

    assert db.execute("select id, state from holdfast.steps order by id").fetchall() == before


@pytest.mark.parametrize("ask", [flow.touched_tasks, flow.settled_tasks, flow.closed_tasks])
def test_where_tasks_stand_is_told_of_own_tasks_only(
    login: Login, db: DB, ask: Callable[[str, list[int]], Call[Any]]
) -> None:
    """R34: these read as the owner does, and ask for the login's tenants."""
    runs = {tenant: plant(db, tenant) for tenant in ("a", "b")}
    steps = [number for (number,) in db.execute("select id from holdfast.steps order by id")]

    for user, seen in ((login("hf_worker", tenants=["a"]), {runs["a"]}), (login("hf_worker"), set(runs.values()))):
        assert {task.task_id for task in run(user, ask("w", steps))} == seen


def test_what_is_for_all_tenants_needs_a_login_for_all(login: Login, db: DB) -> None:
    """R34: a queue is everybody's, and the invariants name everybody's rows."""
    run(db, calls.start_task("x", tenant="b"))
    operator = login("hf_operator", tenants=["a"])

    for call in (calls.pause_queue("default"), calls.resume_queue("default"), calls.violations()):
        with pytest.raises(errors.TenantRefused):
            run(operator, call)  # type: ignore[misc]


def test_no_role_and_no_setting_widens_it(login: Login, db: DB) -> None:
    """R34: it goes by the login; pooled reuse by SET ROLE or a setting changes nothing."""
    plant(db, "a")
    plant(db, "b")
    user = login("hf_reader", "hf_worker", "hf_operator", tenants=["a"])
    seen = [count(user, table) for table in SEEN]

    for statement in (
        "set role hf_reader",
        "set role hf_operator",
        "set holdfast.tenant = 'b'",
        "set holdfast.allowed_tenants = '*'",
        "set holdfast.actor_kind = 'system'",
        "set row_security = on",
    ):
        user.execute(statement)
        assert [count(user, table) for table in SEEN] == seen, statement
    with pytest.raises(errors.TenantRefused):
        run(user, calls.start_task("x", tenant="b"))
