"""Events: derived from the journal, or stored once per key and tenant."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from holdfast.models import Done, Retry
from kernel.steps import value
from rules.plans import applied, called, claim, define, fails, ids, preview, previewed, refused, row, settle, work

DB = Connection[Any]
EVENTS = "select event_type, payload, correlation_id, tenant_id from rules.events where rule_run_id = %s order by id"


def test_moves_of_runs_and_tries_of_targets_are_events(db: DB) -> None:
    """A-87, A-88, A-106: they commit with the move and have the run's correlationId"""
    run_id = previewed(db, 2, metadata={"correlationId": "req-7", "actor": "ann", "source": "api"}, tenant="b")
    applied(db, run_id)
    work(db, fails("SKU-2"))
    first, _ = ids(db, run_id)

    events = db.execute(EVENTS, [run_id]).fetchall()
    assert [event for event, *_ in events] == [
        "automation.run.previewed", "automation.run.queued", "automation.run.started", "automation.target.apply",
        "automation.target.apply", "automation.run.partial",
    ]  # fmt: skip
    assert {"targetId": first, "runId": str(run_id)} in [payload for _, payload, *_ in events[3:5]]
    assert {(correlation, tenant) for _, _, correlation, tenant in events} == {("req-7", "b")}
    assert value(db, "select metadata from rules.rule_runs")["actor"] == "ann"


def test_an_aborted_move_leaves_no_event(db: DB) -> None:
    """A-88"""
    run_id = previewed(db)
    with db.transaction(force_rollback=True):
        applied(db, run_id)

    assert [event for event, *_ in db.execute(EVENTS, [run_id])] == ["automation.run.previewed"]


def test_an_event_is_stored_once_per_key_and_tenant(db: DB) -> None:
    """A-85, A-86"""
    write = "select rules.write_event('k', 'automation.custom', %s, %s)"
    first = value(db, write, Jsonb({"n": 1}), "default")

    assert value(db, write, Jsonb({"n": 2}), "default") == first
    assert value(db, write, Jsonb({"n": 1}), "b") != first
    assert db.execute("select tenant_id, payload from rules.events where event_key = 'k' order by id").fetchall() == [
        ("default", {"n": 1}), ("b", {"n": 1}),
    ]  # fmt: skip
    assert refused(db, "insert into rules.stored_events (at, event_key, tenant, event_type, written_by) "
                       "values (now(), 'k', 'b', 't', 'me')") == "23505"  # fmt: skip


def test_the_key_of_a_try_finds_the_event_in_the_journal(db: DB) -> None:
    """A-84 to A-86: the worker of the document may write it while it applies the target"""
    run_id = previewed(db, 1)
    applied(db, run_id)
    (target,) = ids(db, run_id)
    steps = claim(db)

    key = f"{run_id}:{target}:apply:0"
    written = value(db, "select rules.write_event(%s, 'automation.target.apply')", key)
    settle(db, steps)

    assert db.execute("select id from rules.events where event_key = %s", [key]).fetchall() == [(written,)]
    assert value(db, "select count(*) from rules.stored_events") == 0


@pytest.mark.parametrize("place", ["run", "target"])
def test_a_key_of_the_journal_is_reserved_until_its_event_happens(db: DB, place: str) -> None:
    """A-85: otherwise two events would have one key"""
    run_id = previewed(db, 1)
    (target,) = ids(db, run_id)
    last = value(db, "select max(id) from holdfast.journal")
    key = f"{run_id}:queued:{last + 1}" if place == "run" else f"{run_id}:{target}:apply:0"
    write = "select rules.write_event(%s, 'custom')"

    assert refused(db, write, [key]) == "RN005"
    assert value(db, "select rules.write_event(%s, 'custom', tenant => 'b')", key) > 0
    applied(db, run_id)
    work(db)

    query = "select event_key, tenant_id, count(*) from rules.events group by 1, 2 having count(*) > 1"
    assert db.execute(query).fetchall() == []


def test_the_key_of_each_derived_event_returns_its_id(db: DB) -> None:
    """A-85, A-86: of runs, tries and breakers"""
    define(db)
    db.execute("insert into holdfast.limit_changes (at, tenant, name, event, actor_kind, actor) "
               "values (now(), 'default', 'rules:shop', 'opened', 'system', 'breaker')")  # fmt: skip
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-2"))
    called(db, "retry_failed", run_id=run_id)
    work(db)
    called(db, "rollback", run_id=run_id, apply=True)
    work(db)
    derived = db.execute("select event_key, tenant_id, id, event_type from rules.events").fetchall()

    for key, tenant, event_id, _ in derived:
        assert value(db, "select rules.write_event(%s, 'custom', tenant => %s)", key, tenant) == event_id, key
    assert value(db, "select count(*) from rules.stored_events") == 0
    types = ["previewed", "queued", "started", "partial", "retried", "applied", "rolled_back"]
    assert {kind for *_, kind in derived} >= {f"automation.run.{name}" for name in types}
    assert "automation.channel.paused" in {kind for *_, kind in derived}
    assert refused(db, "select rules.write_event('rules:shop:breaker:9', 'custom')") == "RN005"


def test_a_key_that_only_looks_like_one_of_the_journal_is_free(db: DB) -> None:
    run_id = previewed(db, 1)

    for key in (f"{run_id}:waiting:1", f"{uuid4()}:queued:1", f"{uuid4()}:1:apply:0", f"{run_id}:1:apply:x"):
        assert value(db, "select rules.write_event(%s, 'custom')", key) > 0
    assert value(db, "select count(*) from rules.stored_events") == 4


@pytest.mark.parametrize("effect", ["written", "found", None])
def test_each_applied_target_is_one_price_change(db: DB, effect: str | None) -> None:
    """A-89: also after a try whose answer was lost"""
    define(db)
    (given,) = [preview(db, [row("a", 500, 400, compare_before=None, compare_after=500, writes_compare_at=True)])]
    applied(db, given["run_id"])
    settle(db, claim(db), Retry({"message": "lost"}))
    db.execute("update holdfast.steps set due_at = holdfast.clock()")
    settle(db, claim(db), Done(None if effect is None else {"effect": effect}))

    (change,) = db.execute(
        "select item_id, old_json, new_json, effect, source, rule_id, rule_version from rules.price_changes"
    ).fetchall()
    assert change == (
        "a",
        {"unit_amount": 500, "currency": "EUR", "compare_at": None},
        {"unit_amount": 400, "currency": "EUR", "compare_at": 500},
        effect or "written", "api", "summer", 1,
    )  # fmt: skip
