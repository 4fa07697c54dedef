"""Who may read and do what in the schema `work`."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translated
from kernel.steps import start
from security.conftest import Login, login
from work.tasks import claim_next, held, recover, report, rows

__all__ = ["login"]
DB = Connection[Any]
RUNTIME = ["hf_producer", "hf_worker", "hf_reader", "hf_operator"]


def test_a_login_sees_the_tasks_and_entries_of_its_tenants(db: DB, login: Login) -> None:
    """X-14: usage too; nobody else's are claimed"""
    mine, other = start(db, tenant="a"), start(db, tenant="b")
    for _ in range(2):
        claimed = held(db)
        key = {"payload": {"of": claimed["tenant"]}, "key": "usage:1"}
        run(db, calls.note(claimed["id"], claimed["lease_id"], "info", "used", **key))
    start(db, tenant="b")
    own = login("hf_worker", tenants=["a"])

    assert rows(own, "select id, usage from work.tasks") == [{"id": mine, "usage": {"of": "a"}}]
    assert rows(own, "select resource_id from work.audit_logs") == [{"resource_id": mine}]
    assert rows(own, "select step_id from holdfast.note_keys") == [{"step_id": mine}]
    assert claim_next(own, "of_a") is None
    assert {row["id"] for row in rows(db, "select id from work.tasks where usage is not null")} == {mine, other}


def test_a_worker_lives_by_the_face(db: DB, login: Login) -> None:
    """X-15"""
    start(db)
    worker = login("hf_worker")

    assert report(worker, held(worker)) == ["done"]
    assert recover(worker) == 0


@pytest.mark.parametrize("group", ["hf_producer", "hf_reader", "hf_operator"])
def test_others_read_and_do_not_claim(db: DB, login: Login, group: str) -> None:
    """X-15"""
    start(db)
    other = login(group)

    assert len(rows(other, "select * from work.tasks")) == 1
    for statement in ("select work.claim_next_task()", "select work.recover_expired_leases()"):
        with pytest.raises(errors.PermissionMissing), translated():
            other.execute(statement)


@pytest.mark.parametrize("group", RUNTIME)
def test_whoever_writes_to_a_view_is_told_what_to_call(db: DB, login: Login, group: str) -> None:
    """X-07 X-15: by our own error, not by a missing right that somebody may then grant"""
    start(db)
    held(db)
    other = login(group)

    for view, refused in (("tasks", errors.BadInput), ("audit_logs", errors.AppendOnly)):
        for statement in (f"update work.{view} set id = id", f"delete from work.{view}"):
            with pytest.raises(refused), translated():
                other.execute(statement)
        with pytest.raises(refused), translated():
            other.execute(f"insert into work.{view} (id) values (1)")


def test_a_login_in_no_group_has_no_way_in(db: DB, login: Login) -> None:
    """X-15"""
    stranger = login()

    for statement in ("select from work.tasks", "select work.recover_expired_leases()"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            stranger.execute(statement)
