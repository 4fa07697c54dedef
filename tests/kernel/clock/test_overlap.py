"""A tick whose previous work is still open: skipped, started beside it, or cancelling it."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection

from holdfast.flow import calls as flow
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import Done, Settlement
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, started, ticks

pytestmark = pytest.mark.one_server
DB = Connection[Any]


def test_a_tick_is_skipped_while_the_work_of_the_previous_one_is_open(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", overlap="skip")
    fire(db)
    for hour in (1, 2, 3):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)
    (step,) = run(db, calls.claim_steps("w"))
    clock.set(at("03-01 04:00"))
    fire(db)
    run(db, calls.settle_steps([Settlement(step.step_id, step.lease_id, Done(None))]))
    clock.set(at("03-01 05:00"))
    fire(db)

    assert [outcome for _, outcome in ticks(db)] == ["started", "skipped", "skipped", "skipped", "started"]
    assert len(started(db)) == 2


@pytest.mark.parametrize("is_held", [False, True], ids=["open", "held"])
def test_a_tick_cancels_the_work_of_the_previous_one(db: DB, clock: Clock, *, is_held: bool) -> None:
    clock.set(at("03-01 00:00"))
    define(db, cron="0 * * * *", overlap="cancel")
    fire(db)
    clock.set(at("03-01 01:00"))
    fire(db)
    if is_held:
        run(db, calls.claim_steps("w"))
    clock.set(at("03-01 02:00"))
    fire(db)

    assert db.execute("select state from holdfast.steps order by id").fetchall() == [("cancelled",), ("pending",)]
    rows = db.execute("select ids, cancelled from holdfast.ticks order by at").fetchall()
    assert rows[1][1] == rows[0][0]
    moves = db.execute("select actor_kind, actor, reason from holdfast.journal where event = 'cancelled'").fetchall()
    assert moves == [("scheduler", "scheduler", "schedule report, tick 2027-03-01T02:00:00Z")]
    assert run(db, calls.violations()) == []


def test_a_flow_is_started_by_its_latest_definition_and_its_run_is_what_overlaps(db: DB, clock: Clock) -> None:
    clock.set(at("03-01 00:00"))
    run(db, flow.define_flow("order", [{"kind": "a", "name": "a"}], namespace="default", version="1"))
    define(db, "orders", face="flow", target="order", input='{"shop": 1}', cron="0 * * * *", overlap="cancel")
    fire(db)
    for hour in (1, 2):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)

    runs = db.execute("select state, context from flow.tasks order by task_id")
    assert runs.fetchall() == [("cancelled", {"shop": 1}), ("pending", {"shop": 1})]
    created = db.execute("select actor_kind, actor from holdfast.journal where event = 'created'").fetchall()
    assert created == [("scheduler", "scheduler")] * 2
    assert run(db, calls.violations()) == []
