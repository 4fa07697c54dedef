"""The journal and the notes: append-only for everybody, one order, partitions made ahead."""

from __future__ import annotations

from datetime import timedelta

import psycopg
import pytest

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.db import run, translate
from holdfast.models import Done, Retry
from holdfast.testing import Clock, journal
from kernel.steps import DB, claim_one, fingerprint, finish, node, settle, start, start_flow, value, violations


def written(db: DB) -> None:
    """Moves and notes to be changed."""
    start(db)
    step = claim_one(db)
    run(db, calls.note(step.step_id, step.lease_id, "info", "hello"))
    settle(db, step, Done())


def partitions(db: DB, table: str) -> list[str]:
    rows = db.execute(
        "select inhrelid::regclass::text from pg_inherits where inhparent = %s::regclass order by 1",
        [f"holdfast.{table}"],
    )
    return [name for (name,) in rows]


def test_each_failed_attempt_has_its_error_also_the_same_one_twice(db: DB) -> None:
    """W-58: what an attempt failed of is told by its own move."""
    fault = {"type": "Away", "message": "the server is away"}
    start(db)
    for _ in range(2):
        settle(db, claim_one(db), Retry(fault, timedelta(0)))

    assert [entry.error for entry in journal(db) if entry.event == "retried"] == [fault, fault]


@pytest.mark.parametrize("role", ["hf_owner", None], ids=["as the owner", "as a superuser"])
@pytest.mark.parametrize("table", ["journal", "notes"])
def test_what_is_written_stays(db: DB, table: str, role: str | None) -> None:
    """X-07 W-42: UPDATE, DELETE and TRUNCATE, of the table and of a partition by its name"""
    written(db)
    (used,) = [name for name in partitions(db, table) if value(db, f"select count(*) from {name}")]
    empty = partitions(db, table)[-1]
    before = fingerprint(db)
    if role is not None:
        db.execute(f"set role {role}")

    for name in (f"holdfast.{table}", used):
        for statement in (f"update {name} set at = at", f"delete from {name}", f"truncate {name}"):
            with pytest.raises(psycopg.Error) as caught:
                db.execute(statement)
            assert isinstance(translate(caught.value), errors.AppendOnly)
    with pytest.raises(psycopg.Error, match="append-only"):
        db.execute(f"truncate {empty}")

    db.execute("reset role")
    assert fingerprint(db) == before


def test_other_tables_can_be_truncated_only_without_the_journal(db: DB) -> None:
    """A cascade does not take it along"""
    written(db)

    with pytest.raises(psycopg.Error, match="append-only"):
        db.execute("truncate holdfast.steps, holdfast.journal")


def test_moves_and_notes_are_numbered_in_one_order(db: DB) -> None:
    """X-07"""
    for _ in range(3):
        written(db)

    ids = [
        i for (i,) in db.execute("select id from holdfast.journal union all select id from holdfast.notes order by 1")
    ]

    assert len(ids) == len(set(ids)) == 9
    story = db.execute("select entry from holdfast.step_story order by step_id, id").fetchall()
    assert story == [("move",), ("note",), ("move",)] * 3


def test_the_creation_of_a_run_is_journaled_and_of_a_step_is_not(db: DB) -> None:
    run_id = start_flow(db, node("a"), tenant="t")

    (entry,) = journal(db)

    assert (entry.run_id, entry.step_id, entry.tenant, entry.machine) == (run_id, None, "t", "flow.task")
    assert (entry.from_state, entry.event, entry.to_state, entry.actor_kind) == ("new", "created", "pending", "api")


def test_a_run_inserted_by_hand_is_journaled_as_its_makers(db: DB) -> None:
    db.execute(
        """insert into holdfast.runs (id, machine, name, state, created_at)
           values (holdfast.uuid7(), 'flow.task', 'order', 'pending', holdfast.clock())"""
    )

    (entry,) = journal(db)

    assert (entry.event, entry.actor_kind, entry.actor) == ("created", "user", value(db, "select session_user::text"))


def test_an_entry_tells_whose_run_attempt_and_lease_it_was(db: DB) -> None:
    run_id = start_flow(db, node("a"), tenant="t")
    step = claim_one(db, "w")
    settle(db, step, Done())

    entries = journal(db, step=step.step_id)

    assert {(e.run_id, e.tenant, e.machine, e.attempt, e.lease_id, e.actor) for e in entries} == {
        (run_id, "t", "flow.step", 1, step.lease_id, "w")
    }


def test_the_actor_of_one_call_does_not_stick_to_the_next(db: DB) -> None:
    """In one transaction: a worker's claim, then a plain UPDATE by a person"""
    start(db), start(db)
    with db.transaction():
        step = claim_one(db, "w")
        db.execute(
            "update holdfast.steps set state = 'cancelled', due_at = null, finished_at = now() where lease_id is null"
        )
        settle(db, step, Done())

    assert [(e.event, e.actor_kind, e.actor) for e in journal(db)] == [
        ("claimed", "worker", "w"),
        ("by_hand", "user", value(db, "select session_user::text")),
        ("succeeded", "worker", "w"),
    ]


def test_each_of_several_workers_in_one_settle_is_named_in_its_own_entry(db: DB) -> None:
    start(db), start(db)
    steps = [claim_one(db, "a"), claim_one(db, "b")]

    finish(db, steps)

    assert [journal(db, step=s.step_id)[-1].actor for s in steps] == ["a", "b"]


@pytest.mark.parametrize("table", ["journal", "notes"])
def test_there_are_partitions_for_a_year_ahead_and_no_default(db: DB, table: str, clock: Clock) -> None:
    names = partitions(db, table)

    assert len(names) >= 13
    assert names[0] == f"holdfast.{table}_{clock.now():%Y%m}"
    assert value(db, "select count(*) from pg_partitioned_table where partdefid <> 0") == 0


def test_upkeep_makes_partitions_ahead_and_seals_them(db: DB, clock: Clock) -> None:
    """Append-only holds for those that are made later"""
    clock.advance(timedelta(days=100))

    assert run(db, calls.upkeep())[0].partitions >= 6
    assert run(db, calls.upkeep())[0].partitions == 0

    newest = partitions(db, "journal")[-1]
    assert value(db, "select holdfast.partitions_ahead()") > timedelta(days=350)
    with pytest.raises(psycopg.Error, match="append-only"):
        db.execute(f"truncate {newest}")
    with pytest.raises(psycopg.Error, match="append-only"):
        db.execute(f"truncate {newest.replace('journal', 'notes')}")


def test_a_database_that_rested_past_its_last_partition_is_brought_back_by_upkeep(db: DB, clock: Clock) -> None:
    """Also when a step is still held from then, whose rescue wants a journal entry"""
    start(db)
    step = claim_one(db)
    clock.advance(timedelta(days=800))

    done = run(db, calls.upkeep())[0]

    assert (done.rescued, done.partitions > 0) == (1, True)
    assert claim_one(db, "b").step_id == step.step_id


def test_a_journal_entry_stands_in_the_partition_of_its_month(db: DB, clock: Clock) -> None:
    written(db)
    month = clock.now()
    clock.advance(timedelta(days=40))
    written(db)

    used = [name for name in partitions(db, "journal") if value(db, f"select count(*) from {name}")]

    assert used == [f"holdfast.journal_{month:%Y%m}", f"holdfast.journal_{clock.now():%Y%m}"]


@pytest.mark.unsound
def test_missing_guards_are_violations(db: DB) -> None:
    """X-13"""
    db.execute("alter table holdfast.steps disable trigger journaled")
    db.execute("drop trigger acyclic on holdfast.edges")
    db.execute("alter table holdfast.notes no force row level security")

    assert set(violations(db)) == {
        ("trigger_fires", "steps.journaled"),
        ("trigger_fires", "edges.acyclic"),
        ("row_security_is_forced", "notes"),
    }


@pytest.mark.unsound
def test_a_move_that_was_not_journaled_is_a_violation(db: DB) -> None:
    """X-13"""
    step_id = start(db)
    settle(db, claim_one(db), Done())
    db.execute("set session_replication_role = replica")
    db.execute("update holdfast.steps set state = 'cancelled'")

    assert violations(db) == [("journal_ends_where_the_row_is", f"step {step_id}")]
