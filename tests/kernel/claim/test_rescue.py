"""Leases that ran out: steps are taken back from silent workers, by whoever comes."""

from __future__ import annotations

from psycopg import Connection

from holdfast.testing import Clock, events, journal
from kernel.steps import (
    DB,
    LEASE,
    claim,
    claim_one,
    column,
    finish,
    insert_step,
    node,
    repeated,
    rescue,
    run_row,
    seconds,
    start,
    start_flow,
    step_row,
)

PAST = LEASE + seconds(1)


def test_a_step_whose_lease_ran_out_is_claimable_at_once(db: DB, clock: Clock) -> None:
    """W-35 W-38 W-40"""
    step_id = start(db)
    claim_one(db)
    clock.freeze()
    clock.advance(PAST)

    assert rescue(db) == [(step_id, "expired")]

    row = step_row(db, step_id)
    assert (row["state"], row["failures"], row["due_at"]) == ("pending", 1, clock.now())
    assert (row["lease_id"], row["lease_owner"], row["lease_until"]) == (None, None, None)
    assert row["error"]["type"] == "LeaseExpired"
    assert "worker a was silent" in row["error"]["message"]
    entry = journal(db, step=step_id)[-1]
    assert (entry.event, entry.actor_kind, entry.actor) == ("expired", "system", "rescue")
    assert claim_one(db, "b").attempt == 2


def test_a_lease_is_left_alone_until_it_has_run_out(db: DB, clock: Clock) -> None:
    """W-39 W-40"""
    clock.freeze()
    start(db)
    claim_one(db)
    clock.advance(LEASE)

    assert rescue(db) == []


def test_the_lease_that_was_lost_stands_in_the_journal(db: DB, clock: Clock) -> None:
    """W-42: who lost it can be told afterwards"""
    start(db)
    old = claim_one(db)
    clock.advance(PAST)
    rescue(db)
    new = claim_one(db)

    assert [(e.event, e.attempt, e.lease_id) for e in journal(db, step=old.step_id)] == [
        ("claimed", 1, old.lease_id),
        ("expired", 1, old.lease_id),
        ("claimed", 2, new.lease_id),
    ]


def test_a_task_that_kills_each_worker_ends_in_error(db: DB, clock: Clock) -> None:
    """W-36 W-37 W-49 C-63"""
    step_id = start(db)
    seen = []
    for worker in ("a", "b", "c"):
        seen.append(claim_one(db, worker).attempt)
        clock.advance(PAST)
        ((_, event),) = rescue(db)

    assert (seen, event) == ([1, 2, 3], "failed")
    row = step_row(db, step_id)
    assert (row["state"], row["failures"]) == ("error", 3)
    assert row["finished_at"] is not None
    assert row["error"]["message"].startswith("Maximum retry attempts exceeded")
    assert events(db, step=step_id) == ["claimed", "expired", "claimed", "expired", "claimed", "failed"]
    assert claim(db) == []


def test_the_longest_silent_are_rescued_first_and_no_more_than_the_batch(db: DB, clock: Clock) -> None:
    """W-35"""
    ids = [start(db) for _ in range(4)]
    for lease in (40, 10, 30, 20):
        claim_one(db, lease=seconds(lease))
    clock.advance(seconds(60))

    batches = [{i for i, _ in rescue(db, batch=2)} for _ in range(3)]

    assert batches == [{ids[1], ids[3]}, {ids[2], ids[0]}, set()]


def test_a_rescue_passes_over_what_its_worker_settles_at_this_moment(db: DB, dsn: str, clock: Clock) -> None:
    """R6"""
    for _ in range(2):
        start(db)
    first, second = claim(db, batch=2)
    clock.advance(PAST)

    with Connection.connect(dsn, autocommit=True) as other, db.transaction():
        assert finish(db, [first]) == [first.step_id]
        other.execute("set lock_timeout = '5s'")
        assert rescue(other) == [(second.step_id, "expired")]

    assert rescue(db) == []
    assert events(db, step=first.step_id) == ["claimed", "succeeded"]


def test_a_flow_step_whose_lease_ran_out_waits_in_error(db: DB, clock: Clock) -> None:
    """T-109: the first wait is a second"""
    run_id = start_flow(db, node("a"))
    step = claim_one(db)
    clock.freeze()
    clock.advance(PAST)

    assert rescue(db) == [(step.step_id, "expired")]

    row = step_row(db, step.step_id)
    assert (row["state"], row["due_at"], row["finished_at"]) == ("error", clock.now() + seconds(1), None)
    assert run_row(db, run_id)["state"] == "in_progress"


def test_an_ops_run_whose_worker_fell_silent_is_cancelled(db: DB, clock: Clock) -> None:
    step_id = insert_step(db, "ops.run", "queued")
    claim_one(db)
    clock.advance(PAST)

    assert rescue(db) == [(step_id, "expired")]

    assert column(db, step_id, "state") == "cancelled"
    assert repeated(lambda: claim(db)) == []
