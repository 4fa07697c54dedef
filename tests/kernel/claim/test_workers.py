"""What workers say of themselves, when they sleep, and what they have lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import psycopg
import pytest
from psycopg import Connection
from psycopg.rows import dict_row

from holdfast import errors
from holdfast.kernel import calls
from holdfast.kernel.call import Call
from holdfast.kernel.db import run
from holdfast.models import LostLease
from holdfast.testing import Clock
from kernel.steps import claim, claim_one, column, finish, rescue, seconds, start, value

DB = Connection[Any]


def hints(worker: DB) -> list[str]:
    """Read the queues that were hinted at since the last look."""
    worker.execute("select 1")
    return [hint.payload for hint in worker.notifies(timeout=0)]


def listed(db: DB, worker: str = "w") -> dict[str, Any]:
    with db.cursor(row_factory=dict_row) as cursor:
        (row,) = cursor.execute("select * from holdfast.worker_list where worker = %s", [worker]).fetchall()
    return row


def version(db: DB) -> str:
    """Tell one version of the worker's row from the next: it changes with each write."""
    xmin: str = value(db, "select xmin::text || ctid::text from holdfast.workers")
    return xmin


def test_an_idle_poll_of_a_sleeping_worker_keeps_it_asleep_and_writes_nothing(db: DB, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as worker:
        worker.execute("listen holdfast")
        claim(worker, "w")
        run(worker, calls.mark_asleep("w"))
        before = version(db)

        assert claim(worker, "w") == []

        assert (version(db), value(db, "select is_asleep from holdfast.workers")) == (before, True)
        start(db)
        assert hints(worker) == ["default"]


def test_an_idle_poll_of_a_sleeping_worker_shows_now_and_then_that_it_lives(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    claim(db, "w")
    run(db, calls.mark_asleep("w"))
    clock.advance(seconds(11))

    claim(db, "w")

    assert db.execute("select is_asleep, seen_at from holdfast.workers").fetchall() == [(True, now + seconds(11))]


def test_a_claim_that_brings_something_wakes_its_worker_in_the_same_transaction(db: DB, dsn: str) -> None:
    claim(db, "w")
    run(db, calls.mark_asleep("w"))
    start(db, priority=3)
    start(db)

    with db.transaction(force_rollback=True):
        assert len(claim(db, "w", batch=2)) == 2
        assert value(db, "select is_asleep from holdfast.workers") is False
    assert value(db, "select is_asleep from holdfast.workers") is True
    claim(db, "w")
    assert value(db, "select is_asleep from holdfast.workers") is False


def test_a_claim_by_a_worker_that_is_awake_does_not_write_its_row(db: DB, clock: Clock) -> None:
    clock.freeze()
    start(db)
    claim(db, "w", kinds=["none"])
    run(db, calls.enlist_worker("w", ["default"]))
    before = version(db)

    assert len(claim(db, "w")) == 1

    assert version(db) == before


def test_a_claim_wakes_its_worker_on_that_queue_and_no_other_worker(db: DB) -> None:
    for worker, queue in (("v", "default"), ("w", "default"), ("w", "other")):
        claim(db, worker, queue=queue)
        run(db, calls.mark_asleep(worker, queue))
    start(db)

    claim(db, "w")

    rows = db.execute("select worker, queue from holdfast.workers where is_asleep order by 1, 2").fetchall()
    assert rows == [("v", "default"), ("w", "other")]


def test_a_worker_says_what_it_serves_and_what_it_is(db: DB, clock: Clock) -> None:
    """W-64"""
    now = clock.freeze()
    about = {"state": "connecting", "host": "a", "pid": 7}

    run(db, calls.enlist_worker("w", ["b", "a", "a"], kinds=["sms", "mail"], tenants=["t"], about=about))

    assert listed(db) == {
        "worker": "w", "queues": ["a", "b"], "kinds": ["mail", "sms"], "tenants": ["t"], "state": "connecting",
        "standing": "alive", "is_asleep": False, "held": 0, "oldest_claimed_at": None, "started_at": now,
        "seen_at": now, "about": about,
    }  # fmt: skip


def test_a_worker_that_connects_again_is_awake_and_has_the_queues_it_names_now(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    run(db, calls.enlist_worker("w", ["a", "b"]))
    run(db, calls.enlist_worker("v", ["a"]))
    run(db, calls.mark_asleep("w", "b"))
    clock.advance(seconds(5))

    run(db, calls.enlist_worker("w", ["b", "c"], kinds=["mail"], about={"state": "connecting"}))

    rows = db.execute(
        "select queue, kinds, is_asleep, seen_at from holdfast.workers where worker = 'w' order by queue"
    ).fetchall()
    assert rows == [(queue, ["mail"], False, now + seconds(5)) for queue in ("b", "c")]
    assert listed(db)["started_at"] == now
    assert listed(db, "v")["queues"] == ["a"]


def test_enlisting_brings_back_what_was_parked_until_somebody_serves_it(db: DB) -> None:
    step_id, other = start(db, "print"), start(db, "sms")
    claim(db, "v", kinds=["mail"], batch=10)
    assert column(db, step_id, "parked_for") == "handler"

    run(db, calls.enlist_worker("w", ["default"], kinds=["print"]))

    assert (column(db, step_id, "parked_for"), column(db, other, "parked_for")) == (None, "handler")
    assert claim_one(db, "w", kinds=["print"]).step_id == step_id


@pytest.mark.parametrize(
    "call",
    [
        calls.enlist_worker("", ["a"]),
        calls.enlist_worker("w", []),
        calls.enlist_worker("w", ["a"], about={"state": "dancing"}),
        calls.enlist_worker("w", ["a"], about=["polling"]),  # type: ignore[arg-type]
        calls.upkeep(worker="w", about=["polling"]),  # type: ignore[arg-type]
        calls.lost_leases([1, 2], [1]),
    ],
)
def test_what_makes_no_sense_is_refused(db: DB, call: Call[Any]) -> None:
    with pytest.raises(errors.BadInput):
        run(db, call)

    assert value(db, "select count(*) from holdfast.workers") == 0


def test_upkeep_shows_how_its_worker_is(db: DB, clock: Clock) -> None:
    """W-64"""
    now = clock.freeze()
    run(db, calls.enlist_worker("w", ["a", "b"], about={"state": "connecting", "host": "a"}))
    run(db, calls.enlist_worker("v", ["a"]))
    run(db, calls.mark_asleep("w", "a"))
    clock.advance(seconds(30))

    run(db, calls.upkeep(worker="w", about={"state": "processing", "in_flight": 3}))

    row = listed(db)
    assert (row["state"], row["about"]) == ("processing", {"state": "processing", "in_flight": 3})
    assert (row["seen_at"], listed(db, "v")["seen_at"]) == (now + seconds(30), now)
    assert value(db, "select is_asleep from holdfast.workers where worker = 'w' and queue = 'a'") is True


def test_upkeep_makes_nobody_known_and_keeps_what_is_not_said_again(db: DB) -> None:
    about = {"state": "polling", "host": "a"}
    run(db, calls.enlist_worker("w", ["default"], about=about))

    run(db, calls.upkeep(worker="w"))
    run(db, calls.upkeep(worker="stranger", about={"state": "polling"}))

    assert (listed(db)["state"], listed(db)["about"]) == ("polling", about)
    assert value(db, "select count(*) from holdfast.workers") == 1


def test_upkeep_does_not_wait_for_a_claim_of_its_own_worker(db: DB, dsn: str) -> None:
    claim(db, "w")
    run(db, calls.mark_asleep("w"))
    start(db)

    with psycopg.connect(dsn, autocommit=True) as other, db.transaction():
        other.execute("set lock_timeout = '5s'")
        assert len(claim(db, "w")) == 1
        run(other, calls.upkeep(worker="w", about={"state": "recovery"}))

    assert value(db, "select is_asleep from holdfast.workers") is False


def test_who_was_silent_for_a_day_is_forgotten(db: DB, clock: Clock) -> None:
    run(db, calls.enlist_worker("w", ["default"]))
    clock.advance(seconds(86401))
    run(db, calls.enlist_worker("v", ["default"]))

    run(db, calls.upkeep())

    assert db.execute("select worker from holdfast.worker_list").fetchall() == [("v",)]


def test_a_worker_that_stops_in_order_is_gone_and_what_only_it_served_is_parked(db: DB) -> None:
    run(db, calls.enlist_worker("w", ["default", "other"], kinds=["print"]))
    run(db, calls.enlist_worker("v", ["default"], kinds=["mail"]))
    step_id = start(db, "print")
    claim(db, "v", kinds=["mail"])
    assert column(db, step_id, "parked_for") is None

    run(db, calls.retire_worker("w"))

    assert db.execute("select worker from holdfast.workers").fetchall() == [("v",)]
    claim(db, "v", kinds=["mail"])
    assert value(db, "select standing from holdfast.step_list where id = %s", step_id) == "no handler"


def test_a_lost_lease_is_told_with_the_state_of_its_step(db: DB, clock: Clock) -> None:
    """W-61: held, done, cancelled, rescued and claimed again, gone"""
    for _ in range(4):
        start(db)
    held, done, cancelled, rescued = claim(db, "w", batch=4)
    finish(db, [done])
    run(db, calls.cancel(str(cancelled.step_id)))
    run(db, calls.renew_leases("w", [held.lease_id], lease=seconds(1000)))
    clock.advance(seconds(31))
    rescue(db)
    claim(db, "v", batch=9)

    asked = [held, done, cancelled, rescued]
    lost = run(db, calls.lost_leases([*(s.step_id for s in asked), 10**9], [*(s.lease_id for s in asked), 10**9]))

    assert lost == [
        LostLease(done.lease_id, "done"),
        LostLease(cancelled.lease_id, "cancelled"),
        LostLease(rescued.lease_id, "running"),
        LostLease(10**9, None),
    ]


def test_a_lease_that_ran_out_and_was_not_yet_taken_is_not_lost(db: DB, clock: Clock) -> None:
    start(db)
    step = claim_one(db)
    clock.advance(seconds(31))

    assert run(db, calls.lost_leases([step.step_id], [step.lease_id])) == []
    rescue(db)
    assert run(db, calls.lost_leases([step.step_id], [step.lease_id])) == [LostLease(step.lease_id, "pending")]


@pytest.mark.parametrize(
    ("silent", "standing"), [(0, "alive"), (44, "alive"), (46, "late"), (149, "late"), (151, "gone"), (90000, "gone")]
)
def test_the_list_tells_who_is_alive_late_or_gone(db: DB, clock: Clock, silent: int, standing: str) -> None:
    clock.freeze()
    run(db, calls.enlist_worker("w", ["default"]))

    clock.advance(seconds(silent))

    assert listed(db)["standing"] == standing


def test_the_list_tells_what_a_worker_holds_and_since_when(db: DB, clock: Clock) -> None:
    first: datetime = clock.freeze()
    for _ in range(4):
        start(db)
    claim(db, "w", batch=2)
    clock.advance(seconds(5))
    finish(db, claim(db, "w"))
    claim(db, "v")

    assert (listed(db)["held"], listed(db)["oldest_claimed_at"]) == (2, first)
    assert (listed(db, "v")["held"], listed(db, "v")["oldest_claimed_at"]) == (1, first + seconds(5))


def test_the_list_has_one_row_for_a_worker_of_several_queues(db: DB) -> None:
    run(db, calls.enlist_worker("w", ["a"], kinds=["mail"], tenants=["t"], about={"state": "polling"}))
    claim(db, "w", queue="b", kinds=["sms"])
    run(db, calls.mark_asleep("w", "a"))

    row = listed(db)
    assert (row["queues"], row["kinds"], row["tenants"], row["state"]) == (["a", "b"], ["mail", "sms"], None, "idle")
    assert (row["is_asleep"], row["about"]) == (False, {"state": "polling"})
    claim(db, "w", queue="c")
    assert listed(db)["kinds"] is None
