"""Short stories about retention that each hold one property (see scenarios.py)."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Any

import psycopg

from holdfast import errors
from holdfast.durations import duration
from holdfast.kernel import calls, retention_calls
from holdfast.kernel.db import run
from holdfast.testing import Clock
from kernel.retention import flow, is_there, keep, left_of, sweep, task
from kernel.steps import ids_by_name, until_blocked, wide_run, wish_in_chunks
from properties.guards import login_for, refused
from properties.scenarios import DB, sound, start, value

DAY = timedelta(days=1)
INSERT_SCHEDULE = """
insert into holdfast.schedules (tenant, name, face, target, input, options, every, timezone, missed, overlap, spread,
                                shift, after_at, next_at, wake_at, upcoming, last_at, defined_at)
select 'default', 'report', 'work', 'mail', '{}', '{}', '1 day', 'UTC', 'one', 'skip', '0', '0', c.now, null, null,
       '{}', null, c.now from (select holdfast.clock() as now) c
"""
INSERT_TICK = """
insert into holdfast.ticks (tenant, name, at, due_at, fired_at, cause, outcome, face, ids, actor)
select 'default', 'report', c.now, c.now, c.now, 'clock', 'started', 'work', array['7'], 'scheduler'
  from (select holdfast.clock() as now) c
"""


def later(db: DB, days: float) -> None:
    Clock(db).advance(duration(days * DAY, "days"))


def a_task_is_kept_for_its_time(db: DB) -> None:
    keep(db, DAY, queue="other")  # so that young tasks are looked at too
    step_id = task(db)
    later(db, 29)
    sweep(db)
    assert is_there(db, step_id)


def a_run_is_kept_for_its_time(db: DB) -> None:
    keep(db, DAY, queue="other")
    run_id = flow(db)
    later(db, 29)
    sweep(db)
    assert is_there(db, run_id)


def a_run_goes_whole(db: DB) -> None:
    run_id = flow(db)
    steps = list(ids_by_name(db, run_id).values())
    later(db, 31)
    sweep(db)
    assert left_of(db, run_id, steps) == {}
    sound(db)


def a_run_whose_steps_move_stays(db: DB) -> None:
    run_id = wide_run(db, 6)
    wish_in_chunks(db, run_id, "cancelled", 2)
    later(db, 31)
    sweep(db)
    assert is_there(db, run_id)


def a_run_stays_while_another_undoes_it(db: DB) -> None:
    run_id = flow(db)
    run(db, calls.start_run("flow.task", "undo", "flow.step", steps=[{"kind": "a", "name": "a"}], of_run=run_id))
    later(db, 31)
    sweep(db)
    assert is_there(db, run_id)


def what_is_reopened_meanwhile_stays(db: DB) -> None:
    """The sweep has seen it ended, and waits; before it goes on, the step is due again."""
    step_id = task(db, "failed")
    later(db, 91)
    with psycopg.connect(db.info.dsn) as holder, psycopg.connect(db.info.dsn, autocommit=True) as sweeper:
        holder.execute("lock table holdfast.machine_states in access exclusive mode")
        with meanwhile_sweeping(sweeper) as ended:
            until_blocked(db, sweeper.info.backend_pid)
            db.execute("set session_replication_role = replica")  # no trigger: they read the locked table
            db.execute(
                "update holdfast.steps set state = 'pending', finished_at = null, due_at = holdfast.clock()"
                " where id = %s",
                [step_id],
            )
            db.execute("reset session_replication_role")
            holder.rollback()
            ended()
    assert is_there(db, step_id)
    run(db, calls.cancel(str(step_id)))


class meanwhile_sweeping:  # noqa: N801 - reads as `with meanwhile_sweeping(…)`
    """Sweep in a thread; give what waits for its end."""

    def __init__(self, sweeper: DB) -> None:
        import threading

        self._thread = threading.Thread(target=lambda: sweep(sweeper))

    def __enter__(self) -> Any:
        self._thread.start()
        return self._thread.join

    def __exit__(self, *_: object) -> None:
        self._thread.join()


def one_session_sweeps(db: DB) -> None:
    task(db)
    later(db, 31)
    with psycopg.connect(db.info.dsn, autocommit=True) as other, other.transaction():
        run(other, retention_calls.sweep_now())
        db.execute("set lock_timeout = '2s'")
        try:
            assert run(db, retention_calls.sweep_now())[0].is_through is None
        finally:
            db.execute("reset lock_timeout")


def a_key_is_kept_for_its_time(db: DB) -> None:
    start(db, key="k", key_for=2 * DAY)
    later(db, 1)
    sweep(db)
    assert value(db, "select count(*) from holdfast.keys") == 1


def a_key_starts_once_within_its_time(db: DB) -> None:
    assert start(db, key="k", key_for=2 * DAY) == start(db, key="k", key_for=2 * DAY)


def a_drop_waits_for_a_moment_only(db: DB) -> None:
    """Claims queue up behind it, whatever its session's own lock_timeout is."""
    task(db)
    later(db, 260)
    db.execute("set lock_timeout = '5s'")
    with psycopg.connect(db.info.dsn) as reader:
        reader.execute("select count(*) from holdfast.journal")
        began = time.monotonic()
        assert run(db, retention_calls.drop_month()) == [None]
        took = time.monotonic() - began
    db.execute("reset lock_timeout")
    assert took < 3


def a_drop_has_a_transaction_of_its_own(db: DB) -> None:
    start(db)
    later(db, 260)
    with db.transaction(force_rollback=True):
        run(db, calls.claim_steps("a"))
        with refused(errors.WrongState):
            run(db, retention_calls.drop_month())


def what_was_pruned_is_known_to_its_own_tenants(db: DB) -> None:
    (step_id, run_id) = task(db, tenant="theirs"), flow(db, tenant="theirs")
    later(db, 31)
    sweep(db)
    with login_for(db, "hf_reader", "ours") as reader:
        for subject in (step_id, run_id):
            assert run(reader, retention_calls.pruned(str(subject))) == []
        assert value(reader, "select count(*) from holdfast.pruned_steps(%s)", run_id) == 0


def a_tick_that_started_something_is_known_to_the_next(db: DB) -> None:
    """It may not be over yet, however old it is."""
    db.execute("set session_replication_role = replica")
    db.execute(INSERT_SCHEDULE)
    db.execute(INSERT_TICK)
    db.execute("reset session_replication_role")
    later(db, 31)
    sweep(db)
    assert value(db, "select count(*) from holdfast.ticks") == 1
