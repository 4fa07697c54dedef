"""What the guards of ops are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import psycopg
from psycopg.types.json import Jsonb

from holdfast.testing import Clock
from kernel.retention import sweep
from ops.runs import called, claim, event, finish, queue, refused, run, status, value
from properties.guards import login_for
from properties.limit_stories import overlapping
from properties.mutants import Cut, Edited, mutant
from properties.scenarios import DB

Story = Callable[[DB], None]


def two_calls_with_one_key_queue_one_run(db: DB) -> None:
    """O-79, C-34"""
    queue(db)  # the environment is there
    first: list[str] = []
    second = overlapping(db, lambda one: first.append(queue(one, key="k")), lambda two: queued_or_refused(two, "k"))
    assert [second] == first


def two_equal_events_at_once_are_one(db: DB) -> None:
    """O-53, C-33"""
    run_id = running(db)
    first: list[str] = []
    second = overlapping(db, lambda one: first.append(event(one, run_id, "x")), lambda two: event(two, run_id, "x"))
    assert [second] == first


def an_event_repeats_only_what_is_less_than_ten_seconds_old(db: DB) -> None:
    """O-50"""
    clock = Clock(db)
    clock.freeze()
    run_id = running(db)
    first = event(db, run_id, "x")
    clock.advance(timedelta(seconds=9.9))
    assert event(db, run_id, "x") == first
    clock.advance(timedelta(seconds=0.2))
    assert event(db, run_id, "x") != first


def only_its_worker_finishes_a_run(db: DB) -> None:
    """C-36"""
    run_id = running(db)
    assert refused(db, "finish_run", run_id, "success", None, "worker-002") == "RN002"
    assert status(db, run_id) == "running"


def an_end_is_final(db: DB) -> None:
    """O-15, C-36"""
    run_id = running(db)
    finish(db, run_id, "success")
    assert refused(db, "finish_run", run_id, "failed") == "RN010"
    assert refused(db, "cancel_run", run_id, None, None) == "RN010"


def the_sweep_takes_stale_runs_only(db: DB) -> None:
    """O-92, O-97"""
    Clock(db).freeze()
    at_work, fresh = running(db), queue(db)
    claim(db)
    assert value(db, "cancel_stale_runs") == {"cancelled": 0}
    assert (status(db, at_work), status(db, fresh)) == ("running", "claimed")


def the_printed_update_takes_stale_runs_only(db: DB) -> None:
    """O-72, O-97"""
    run_id = queue(db)
    claim(db)
    assert cancelled_by_update(db, run_id) == 0
    assert status(db, run_id) == "claimed"


def the_view_takes_no_other_update(db: DB) -> None:
    """O-02"""
    run_id = running(db)
    assert cancelled_by_update(db, run_id) == "RN005"


def an_event_rewrites_the_lease_after_a_third_of_it(db: DB) -> None:
    clock = Clock(db)
    clock.freeze()
    run_id = running(db)
    before = db.execute("select lease_until from holdfast.steps").fetchall()
    clock.advance(timedelta(seconds=90))
    event(db, run_id, "y")
    assert db.execute("select lease_until from holdfast.steps").fetchall() == before


def an_approval_is_given_once_in_time_and_by_somebody_else(db: DB) -> None:
    clock = Clock(db)
    clock.freeze()
    called(db, "define_environment", p_project_id="proj-123", p_env="staging", p_needs_approval=True)
    own, late, twice = (queue(db, p_actor="ada") for _ in range(3))
    assert refused(db, "decide_approval", own, "approved", "mine", "ada") == "RN010"
    value(db, "decide_approval", twice, "approved", "good", "eva")
    assert refused(db, "decide_approval", twice, "rejected", "bad", "eva") == "RN010"
    clock.advance(timedelta(hours=24))
    assert refused(db, "decide_approval", late, "approved", "good", "eva") == "RN010"


def a_strict_tenant_knows_its_projects(db: DB) -> None:
    value(db, "set_strict_projects", True)
    assert refused(db, "queue_run", "proj-1", "staging", "sha", "main") == "RN004"


def a_login_reaches_the_runs_of_its_tenants(db: DB) -> None:
    """R34"""
    run_id = running(db)
    with login_for(db, "hf_worker", "b") as other:
        assert refused(other, "append_event", run_id, "info", "x") == "RN004"
        assert refused(other, "finish_run", run_id, "success") == "RN004"


def a_worker_reports_on_what_it_holds_and_its_executions_are_counted(db: DB) -> None:
    """C-39, R34"""
    run_id = running(db)
    ((step_id, lease_id),) = db.execute("select id, lease_id from holdfast.steps").fetchall()
    output = (["info"], ["line"], [Jsonb({})], ["k"])
    assert value(db, "append_output", step_id, lease_id, *output) == 1
    assert value(db, "append_output", step_id, lease_id, *output) == 0
    assert refused(db, "append_output", step_id, lease_id + 1, *output) == "RN002"
    assert refused(db, "retry_in_place", step_id, lease_id + 1, 1, "no") == "RN002"
    assert value(db, "retry_in_place", step_id, lease_id, 2, "no") == timedelta(seconds=10)
    assert value(db, "retry_in_place", step_id, lease_id, 3, "no") is None
    with login_for(db, "hf_worker", "b") as other:
        assert refused(other, "append_output", step_id, lease_id, *output) == "RN002"
        assert other.execute("select * from ops.step_of_run(%s)", [run_id]).fetchall() == []


def a_pruned_run_is_known_to_its_tenant_alone(db: DB) -> None:
    """X-16, R34"""
    clock = Clock(db)
    run_id = running(db)
    finish(db, run_id, "success")
    clock.advance(timedelta(days=31))
    sweep(db)
    assert refused(db, "cancel_run", run_id) == "RN012"
    with login_for(db, "hf_worker", "b") as other:
        assert other.execute("select * from ops.step_of_run(%s)", [run_id]).fetchall() == []


def queued_or_refused(db: DB, key: str) -> str | None:
    """Queue a run; give its id, or the SQLSTATE that it was refused with."""
    try:
        return queue(db, key=key)
    except psycopg.Error as error:
        return error.sqlstate


def running(db: DB) -> str:
    """Give a run that is under way."""
    run_id = queue(db)
    claim(db)
    event(db, run_id)
    assert run(db, run_id)["status"] == "running"
    return run_id


def cancelled_by_update(db: DB, run_id: str) -> int | str | None:
    """Update the view; give how many runs were cancelled by it, or the SQLSTATE that it was refused with."""
    try:
        with db.transaction():
            return db.execute(
                "update ops.runs set status = 'cancelled', finished_at = now() where run_id = %s", [run_id]
            ).rowcount
    except psycopg.Error as error:
        return error.sqlstate


# fmt: off
GUARDS = [
    mutant("select-then-insert in queue_run", two_calls_with_one_key_queue_one_run,
           Cut("ops.begin_run", "key", ";")),
    mutant("no row lock in append_event", two_equal_events_at_once_are_one, Cut("ops.lock_run", "lock", ";")),
    mutant("duplicates without end", an_event_repeats_only_what_is_less_than_ten_seconds_old,
           Cut("ops.repeated_event", "window")),
    mutant("no fence by worker", only_its_worker_finishes_a_run, Cut("ops.check_worker", "worker", "and false")),
    mutant("unconditional finish", an_end_is_final, Cut("ops.finish_run", "end", "if false")),
    mutant("unconditional cancel", an_end_is_final, Cut("ops.cancel_run", "end", "if false then")),
    mutant("sweep without its condition", the_sweep_takes_stale_runs_only, Cut("ops.sweep_runs", "stale", "and (true")),
    mutant("printed sweep without its condition", the_printed_update_takes_stale_runs_only,
           Cut("ops.cancel_if_stale", "stale", "if false then")),
    mutant("any update of the view", the_view_takes_no_other_update, Cut("ops.take_stale_update", "statement", "then")),
    mutant("a lease rewritten by each event", an_event_rewrites_the_lease_after_a_third_of_it,
           Cut("report_on", "third", "is_old constant boolean := true;")),
    mutant("approved twice", an_approval_is_given_once_in_time_and_by_somebody_else,
           Cut("ops.decide_approval", "once", "if false then")),
    mutant("approved too late", an_approval_is_given_once_in_time_and_by_somebody_else,
           Cut("ops.decide_approval", "late", "if false then")),
    mutant("approved by oneself", an_approval_is_given_once_in_time_and_by_somebody_else,
           Cut("ops.decide_approval", "own", "if false then")),
    mutant("strict in name only", a_strict_tenant_knows_its_projects,
           Cut("ops.new_environment", "strict", "where false) then")),
    mutant("runs of any tenant", a_login_reaches_the_runs_of_its_tenants,
           Cut("ops.lock_run", "tenant", "where s.id = found_id")),
    mutant("events under any lease", a_worker_reports_on_what_it_holds_and_its_executions_are_counted,
           Cut("ops.held_run", "lease")),
    mutant("events on runs of any tenant", a_worker_reports_on_what_it_holds_and_its_executions_are_counted,
           Cut("ops.held_run", "tenant")),
    mutant("executions without end", a_worker_reports_on_what_it_holds_and_its_executions_are_counted,
           Cut("ops.retry_in_place", "budget", "if false then")),
    mutant("numbers of any tenant's runs", a_worker_reports_on_what_it_holds_and_its_executions_are_counted,
           Cut("ops.step_of_run", "tenant", ";")),
    mutant("numbers of any tenant's pruned runs", a_pruned_run_is_known_to_its_tenant_alone,
           Cut("ops.step_of_run", "pruned-tenant", ";")),
]
# fmt: on
STORIES: list[Story] = list(dict.fromkeys(each.story for each in GUARDS))
__all__ = ["GUARDS", "STORIES", "Edited"]
