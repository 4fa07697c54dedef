"""Rules for several logins: what each role may do, what each tenant sees, and what nobody changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast import Holdfast
from holdfast.errors import PermissionMissing
from holdfast.kernel import calls
from holdfast.kernel.db import run as kernel_run
from holdfast.models import Done, Fail
from holdfast.rules import Rule, percent
from holdfast.rules.table import Table
from kernel.steps import value
from rules.plans import applied, claim, define, fails, ids, inputs, preview, refused, rows, run, settle, work
from scenarios.proof import Proof
from security.conftest import Login
from security.test_hijack import waylay

DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]
SUMMER = Rule("summer", change=percent(-20))
VIEWS = [
    "rule_runs",
    "rule_targets",
    "refusals",
    "price_changes",
    "events",
    "rule_list",
    "metrics",
    "reconciliations",
    "mismatches",
]
RECORD = "select rules.record_page(%s, %s, null, 1, 0, %s)"
WRITTEN_ONCE = ["ledger", "stored_events", "plans", "target_values", "rule_versions", "findings"]


def plant(db: DB, tenant: str) -> UUID:
    """Leave something of a tenant in each view."""
    db.execute("select rules.define_rule(%s, tenant => %s)", [Jsonb({"name": "summer"}), tenant])
    refusal = ("SKU-9", "below_minimum", "too low", None, None, None)
    run_id = UUID(str(preview(db, rows(2), [refusal], tenant=tenant)["run_id"]))
    applied(db, run_id)
    work(db, fails("SKU-2"))
    db.execute("select rules.write_event('k', 'custom', tenant => %s)", [tenant])
    db.execute("select rules.reconcile(%s)", [run_id])
    drift = {"target_id": ids(db, run_id)[0], "finding": "mismatch", "actual": 1, "actual_currency": "EUR"}
    for page in claim(db):
        db.execute(RECORD, [page.step_id, page.lease_id, Jsonb([drift])])
        settle(db, [page])
    return run_id


@pytest.mark.parametrize("role", RUNTIME)
def test_a_tenant_sees_and_reaches_its_own_runs_only(login: Login, db: DB, role: str) -> None:
    """R34, X-14: in every view; another's run looks as if it were not there"""
    define(db)
    runs = {tenant: plant(db, tenant) for tenant in ("a", "b")}
    a = login(role, tenants=["a"])
    narrowed = login(role)

    for view in VIEWS:
        query = f"select distinct tenant_id from rules.{view} order by 1"
        assert db.execute(query).fetchall() == [("a",), ("b",)], view
        assert a.execute(query).fetchall() == [("a",)], view
        with narrowed.transaction():
            narrowed.execute("select set_config('holdfast.tenants', '{a}', true)")
            assert narrowed.execute(query).fetchall() == [("a",)], view
    assert value(a, "select count(*) from rules.target_values") == 2
    assert refused(a, "select rules.validate_run_state(%s)", [runs["b"]]) == "RN004"
    assert a.execute("select * from rules.states_from_history(%s)", [runs["b"]]).fetchall() == []
    if role == "hf_operator":
        for statement in (
            "rules.apply(%s)",
            "rules.apply_at(%s, holdfast.clock() + interval '1 hour')",
            "rules.rollback(%s)",
            "rules.reconcile(%s)",
            "rules.retry_failed(%s)",
            "rules.retry_all(%s)",
            "rules.resolve(%s, '{1}')",
        ):
            assert refused(a, f"select {statement}", [runs["b"]]) == "RN004", statement
        assert value(a, "select rules.dlq_report()")["total"] == 1
    if role == "hf_worker":
        assert a.execute("select * from rules.target_inputs(%s)", [ids(db, runs["b"])]).fetchall() == []
    if role != "hf_reader":
        assert refused(a, "select rules.write_event('k', 'custom', tenant => 'b')") == "RN009"
        with pytest.raises(psycopg.Error) as raised:
            preview(a, rows(1), tenant="b")
        assert raised.value.sqlstate == "RN009"
        own = preview(a, rows(1), tenant="a", key="same")
        assert preview(db, rows(1), tenant="b", key="same")["run_id"] != own["run_id"]


def test_producers_preview_and_operators_do_the_rest(login: Login, db: DB) -> None:
    """R35, X-15"""
    define(db)
    producer, operator, reader = login("hf_producer"), login("hf_operator"), login("hf_reader")
    run_id = UUID(str(preview(producer, rows(2))["run_id"]))

    for statement in (
        "rules.apply(%s)", "rules.retry_failed(%s)", "rules.retry_all(%s)", "rules.resolve(%s, '{}')",
    ):  # fmt: skip
        assert refused(producer, f"select {statement}", [run_id]) == "42501", statement
    assert refused(producer, "select holdfast.queue_run(%s)", [str(run_id)]) == "RN010"
    assert refused(reader, "select rules.stage_targets('shop')") == "42501"
    assert refused(producer, "update rules.rule_runs set status = 'APPLIED'") == "RN005"
    assert refused(producer, "update rules.run_facts set included = 0") == "42501"
    assert applied(operator, run_id, first=1)["status"] == "QUEUED"


@pytest.mark.parametrize("machine", ["rules.run", "rules.reconcile"])
def test_only_operators_pause_resume_and_stop_runs_of_rules(login: Login, db: DB, machine: str) -> None:
    """R35, X-15: a producer would send the targets that an operator held back"""
    define(db)
    producer, operator = login("hf_producer"), login("hf_operator")
    run_id = str(preview(producer, rows(2))["run_id"])
    applied(operator, UUID(run_id), first=1)
    if machine == "rules.reconcile":
        work(db)
        db.execute("select holdfast.resume_run(%s)", [run_id])
        work(db)
        run_id = str(value(operator, "select pass_id from rules.reconcile(%s)", run_id))
    halt = "select halt, halted_by from holdfast.runs where id = %s"
    before = db.execute(halt, [run_id]).fetchall()

    for function in ("resume_run", "pause_run", "stop_run"):
        assert refused(producer, f"select holdfast.{function}(%s)", [run_id]) == "42501", function
    assert db.execute(halt, [run_id]).fetchall() == before
    for function in ("pause_run", "resume_run", "stop_run"):
        assert refused(operator, f"select holdfast.{function}(%s)", [run_id]) is None, function


def test_a_producer_still_pauses_runs_of_other_machines(login: Login, db: DB) -> None:
    """R35"""
    producer = login("hf_producer")
    (run_id,) = kernel_run(producer, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "x"}]))

    for function in ("pause_run", "resume_run", "stop_run"):
        assert refused(producer, f"select holdfast.{function}(%s)", [str(run_id)]) is None, function


def test_a_preview_that_a_producer_wants_applied_is_refused_and_leaves_nothing(login: Login, db: DB) -> None:
    """R35, X-15: preview(apply=True)"""
    define(db)
    db.execute("create schema shop; create table shop.prices (sku text primary key, price numeric)")
    db.execute("insert into shop.prices values ('SKU-1', 10); grant usage on schema shop to hf_producer")
    db.execute("grant select on shop.prices to hf_producer")
    hf = Holdfast(login("hf_producer").info.dsn)
    hf.rules.channel("shop", Table("shop.prices", key="sku", price="price", currency="EUR"))
    try:
        with pytest.raises(PermissionMissing):
            hf.rules.preview(SUMMER, channel="shop", apply=True)
        assert value(db, "select count(*) from holdfast.runs") == 0
        assert hf.rules.preview(SUMMER, channel="shop").summary.status == "PREVIEW"
    finally:
        hf.close()
        db.execute("drop schema shop cascade")


@pytest.mark.parametrize("role", ["hf_operator", "hf_owner", "superuser"])
def test_what_is_written_once_stays(login: Login, db: DB, role: str, proof: Proof) -> None:
    """R38, X-07: price changes, events, plans, values, versions of rules and what passes found"""
    define(db)
    plant(db, "default")
    user = db if role == "superuser" else login(role)
    expected = "42501" if role == "hf_operator" else "RN008"

    for table in WRITTEN_ONCE:
        column = "currency" if table in ("target_values", "findings") else "tenant"
        changes = [f"update rules.{table} set {column} = 'x'", f"truncate rules.{table}"]
        if table not in ("plans", "target_values", "findings"):
            changes.append(f"delete from rules.{table}")
        for change in changes:
            assert refused(user, change) == expected, change
            proof.add(rounds=1)
    for view in ("price_changes", "events"):
        assert refused(user, f"delete from rules.{view}") == "RN008"
    for view in ("reconciliations", "mismatches"):
        assert refused(user, f"delete from rules.{view}") == "RN005"


def test_functions_of_rules_use_our_objects_only(login: Login, db: DB) -> None:
    """R35: those that act as their owner; a staging table of the caller's own is refused"""
    define(db)
    caller = login("hf_producer", "hf_worker", "hf_operator")
    waylay(db, caller)
    with caller.transaction(force_rollback=True):
        caller.execute("create temporary table staged_refusals (item_id pg_catalog.text)")
        assert refused(caller, "select rules.stage_targets('shop')") is not None

    run_id = UUID(str(preview(caller, rows(3), key="k")["run_id"]))
    applied(caller, run_id, leave_out_shared=True)
    steps = claim(caller)
    inputs(caller, steps)
    settle(caller, steps[:1])
    settle(caller, steps[1:], Fail({"message": "no"}))
    for function, arguments in {
        "define_rule": """'{"name": "r"}'""", "define_channel": "'c', 'table'", "dlq_report": "",
        "write_event": "'k', 'custom'", "validate_run_state": f"'{run_id}'",
        "resolve": f"'{run_id}', array[{steps[1].step_id}]",
        "retry_failed": f"'{run_id}', array[{steps[1].step_id}]",
    }.items():  # fmt: skip
        caller.execute(f"select * from rules.{function}({arguments})")
    settle(caller, claim(caller))
    later = UUID(str(preview(caller, rows(1, first=9))["run_id"]))
    soon = datetime.now(UTC) + timedelta(hours=1)
    caller.execute("select * from rules.apply_at(%s, at => %s)", [later, soon])
    caller.execute("select * from rules.apply_at(%s, revert_at => %s)", [later, soon])
    caller.execute("select holdfast.run_schedule(%s)", [f"rules:revert:{later}"])
    (task,) = [step for step in claim(caller) if step.kind == "revert:shop"]
    caller.execute("select rules.revert(%s, %s)", [task.step_id, task.lease_id])
    caller.execute("select * from rules.scheduled_task(%s, %s)", [task.step_id, task.lease_id])
    caller.execute("select rules.apply_scheduled(%s, %s, %s)", [task.step_id, task.lease_id, later])
    caller.execute("select * from rules.states_from_history(%s)", [later])
    caller.execute("select * from rules.retry_all(%s)", [run_id])
    _undo(caller, run_id)
    for view in [*VIEWS, "channels"]:
        caller.execute(f"select * from rules.{view}")


def _undo(caller: DB, run_id: UUID) -> None:
    """Check, correct and roll back a run, and stop what a channel refuses."""
    settle(caller, claim(caller))
    caller.execute("select * from rules.reconcile(%s, correct => true)", [run_id])
    drift = {"target_id": ids(caller, run_id)[0], "finding": "mismatch", "actual": 1, "actual_currency": "EUR"}
    (page,) = claim(caller)
    caller.execute("select * from rules.page_targets(%s, %s, 10)", [page.step_id, page.lease_id])
    caller.execute("select rules.turn_page(%s, %s, 0, 0, 0, '[]', 10)", [page.step_id, page.lease_id])
    caller.execute(RECORD, [page.step_id, page.lease_id, Jsonb([drift])])
    settle(caller, [page])
    (last,) = claim(caller)
    caller.execute("select * from rules.pass_mismatches(%s, %s)", [last.step_id, last.lease_id])
    made = value(caller, "select rules.correct(%s, %s, true)", last.step_id, last.lease_id)
    settle(caller, [last])
    (held,) = claim(caller)
    assert (held.run_id, made is not None) == (made, True)
    given = [[held.step_id], [held.lease_id]]
    assert value(caller, "select rules.stop_failing(%s, %s, '401')", *given) == made
    settle(caller, [held])
    caller.execute("select * from rules.rollback(%s, apply => true)", [run_id])


def test_a_worker_of_one_tenant_applies_its_own_targets(login: Login, db: DB) -> None:
    """R34, X-14"""
    define(db)
    runs = {tenant: UUID(str(preview(db, rows(1), tenant=tenant)["run_id"])) for tenant in ("a", "b")}
    for run_id in runs.values():
        applied(db, run_id)
    worker = login("hf_worker", tenants=["a"])

    steps = claim(worker)
    settle(worker, steps, Done({"effect": "written"}))

    assert [step.run_id for step in steps] == [runs["a"]]
    assert (run(db, runs["a"])["status"], run(db, runs["b"])["status"]) == ("APPLIED", "QUEUED")
