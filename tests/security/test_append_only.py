"""The journal, the notes, the pauses and the changes of limits stay as they were written, whoever asks."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psycopg
import pytest
from psycopg import Connection, sql

from holdfast import errors
from holdfast.kernel import calls, limit_calls
from holdfast.kernel.db import run, translate
from kernel.schedules import define
from scenarios.proof import Proof
from security.conftest import Login

DB = Connection[Any]
EVERYBODY = ["hf_producer", "hf_worker", "hf_reader", "hf_operator", "hf_owner", "hf_migrator", "superuser"]
TABLES = ("journal", "notes", "queue_pauses", "limit_changes", "run_changes", "schedule_changes")
CHANGES = ["update {} set at = now()", "delete from {}", "truncate {}", "truncate {} cascade"]


@pytest.fixture
def written(db: DB) -> list[str]:
    """Write into each of the tables, and name them: the parents and their partitions of this month."""
    run(db, calls.start_task("x"))
    (step,) = run(db, calls.claim_steps("w"))
    run(db, calls.note(step.step_id, step.lease_id, "info", "hello"))
    run(db, calls.pause_queue("default"))
    (run_id,) = run(db, calls.start_run("flow.task", "f", "flow.step", steps=[{"kind": "a", "name": "a"}]))
    run(db, calls.pause_run(str(run_id)))
    run(db, limit_calls.define_limit("api", concurrency=1))
    define(db, every=timedelta(hours=1))
    parts = db.execute(
        """select distinct tableoid::regclass::text from holdfast.journal
           union select distinct tableoid::regclass::text from holdfast.notes"""
    )
    return [*(f"holdfast.{table}" for table in TABLES), *(name for (name,) in parts)]


def rows(db: DB) -> list[Any]:
    return [db.execute(f"select row_to_json(t)::text from holdfast.{name} t order by id").fetchall() for name in TABLES]


@pytest.mark.parametrize("role", EVERYBODY)
def test_nobody_changes_what_is_written(login: Login, db: DB, written: list[str], role: str, proof: Proof) -> None:
    """R38 X-07: neither in the parent nor in a partition by its name; the owner and a superuser are told why."""
    before = rows(db)
    user = db if role == "superuser" else login(role)
    if role == "hf_migrator":
        user.execute("set role hf_owner")
    assert len(written) == len(TABLES) + 2

    for table in written:
        for change in CHANGES:
            with pytest.raises(psycopg.Error) as refused:
                user.execute(sql.SQL(change).format(sql.Identifier(*table.split("."))))
            expected = (
                errors.AppendOnly if role in {"superuser", "hf_owner", "hf_migrator"} else errors.PermissionMissing
            )
            assert isinstance(translate(refused.value), expected)
            proof.add(rounds=1)

    assert rows(db) == before


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("trigger", ["stays", "stays_whole"])
def test_a_table_that_lost_its_trigger_is_a_violation(db: DB, table: str, trigger: str) -> None:
    with db.transaction(force_rollback=True):
        db.execute(f"alter table holdfast.{table} disable trigger {trigger}")
        broken = [(each.invariant, each.subject) for each in run(db, calls.violations())]

    assert broken == [("trigger_fires", f"{table}.{trigger}")]


def test_partitions_that_are_made_later_are_as_firm(db: DB, written: list[str]) -> None:
    """R38: each has the triggers of its parent, and one of its own against TRUNCATE."""
    db.execute("set role hf_owner")
    db.execute("select holdfast.make_partitions(20)")
    db.execute("reset role")

    bare = db.execute(
        """select c.relname
             from pg_class c left join pg_trigger t on t.tgrelid = c.oid and t.tgname in ('stays', 'stays_whole')
            where c.relnamespace = 'holdfast'::regnamespace and c.relispartition and c.relkind = 'r'
            group by c.relname having count(t.oid) < 2"""
    )

    assert bare.fetchall() == []
