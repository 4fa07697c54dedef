"""A worker sweeps beside its loop: when one is due, on a connection of its own, in chunks that stay short."""

from __future__ import annotations

import pytest

from holdfast import Holdfast
from holdfast.testing import Clock
from holdfast.worker import sweeper
from holdfast.worker.sweeper import next_batch
from kernel.retention import days, flow, is_there, task
from kernel.steps import DB, value, violations
from worker.running import seconds, until, working

pytestmark = pytest.mark.one_server


@pytest.mark.parametrize(
    ("batch", "took", "then"),
    [(500, 0.001, 1000), (4000, 0.001, 4000), (500, 0.05, 500), (500, 0.2, 250), (50, 5.0, 50)],
)
def test_a_chunk_stays_short(batch: int, took: float, then: int) -> None:
    assert next_batch(batch, took) == then


def test_a_worker_removes_what_its_rule_no_longer_keeps(dsn: str, db: DB, clock: Clock) -> None:
    """X-16: on by default, without a process of its own, while it works."""
    old, run_id = [task(db) for _ in range(30)], flow(db)
    clock.advance(days(31))
    app = Holdfast(dsn)
    done = app.task(name="plain")(lambda: None)

    with working(app, recovery_interval=seconds(0.05)):
        handle = done.start()
        until(lambda: not any(is_there(db, each) for each in [*old, run_id]), "the sweep")
        handle.result(timeout=30)

    assert is_there(db, handle.id)
    assert value(db, "select (steps, runs) = (33, 1) from holdfast.retention_sweep")
    assert violations(db) == []
    app.close()


def test_workers_share_one_sweep(dsn: str, db: DB, clock: Clock) -> None:
    """However many workers there are, each row is removed once, and in one pass."""
    old = [task(db) for _ in range(20)]
    clock.advance(days(31))
    app = Holdfast(dsn)
    app.task(name="plain")(lambda: None)

    with (
        working(app, recovery_interval=seconds(0.05)),
        working(app, recovery_interval=seconds(0.05)),
        working(app, recovery_interval=seconds(0.05)),
    ):
        until(lambda: value(db, "select ended_at is not null from holdfast.retention_sweep"), "the sweep")

    assert not any(is_there(db, each) for each in old)
    assert value(db, "select sum(cardinality(step_ids)) from holdfast.prunings") == len(old)
    app.close()


def test_a_sweep_that_fails_disturbs_nobody(dsn: str, db: DB, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """The worker goes on, and the sweep is tried again later."""
    monkeypatch.setattr(sweeper, "LOOK_EACH", 0.05)
    old = task(db)
    clock.advance(days(31))
    db.execute("alter function holdfast.sweep_chunk rename to sweep_chunk_away")
    app = Holdfast(dsn)
    plain = app.task(name="plain")(lambda: None)

    with working(app, recovery_interval=seconds(0.05)):
        plain.start().result(timeout=30)
        assert is_there(db, old)
        db.execute("alter function holdfast.sweep_chunk_away rename to sweep_chunk")
        until(lambda: not is_there(db, old), "the sweep")
    app.close()


@pytest.mark.own_database
def test_a_worker_drops_old_months(dsn: str, db: DB, clock: Clock) -> None:
    task(db)
    clock.advance(days(230))
    app = Holdfast(dsn)
    app.task(name="plain")(lambda: None)

    with working(app, recovery_interval=seconds(0.05)):
        until(lambda: value(db, "select cardinality(holdfast.old_months(holdfast.clock())) = 0"), "the drop")
    assert violations(db) == []
    app.close()
