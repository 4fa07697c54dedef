"""What the guards of ops are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any, LiteralString

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
    ((login,),) = db.execute("select session_user").fetchall()
    by_login = queue(db)
    assert refused(db, "decide_approval", own, "approved", "mine", "ada") == "RN010"
    assert refused(db, "decide_approval", own, "approved", "mine", login) == "RN010"
    assert refused(db, "decide_approval", by_login, "approved", "mine", "eva") == "RN010"
    value(db, "decide_approval", twice, "approved", "good", "eva")
    assert refused(db, "decide_approval", twice, "rejected", "bad", "eva") == "RN010"
    clock.advance(timedelta(hours=24))
    assert refused(db, "decide_approval", late, "approved", "good", "eva") == "RN010"


def an_approval_is_given_to_a_run_that_waits_for_it(db: DB) -> None:
    """O-02"""
    called(db, "define_environment", p_project_id="proj-123", p_env="staging", p_needs_approval=True)
    run_id = queue(db, p_actor="ada")
    db.execute("select holdfast.unpark(array[%s]::bigint[], 'by hand', 'ada', true)", [run(db, run_id)["step_id"]])
    claim(db)
    event(db, run_id)
    assert refused(db, "decide_approval", run_id, "rejected", "no", "eva") == "RN010"


def a_run_that_waits_for_approval_is_unparked_by_the_decision_alone(db: DB) -> None:
    """O-02: not by whoever queued it"""
    called(db, "define_environment", p_project_id="proj-123", p_env="staging", p_needs_approval=True)
    step_id = run(db, queue(db, p_actor="ada"))["step_id"]
    with login_for(db, "hf_operator", "default") as operator:
        assert state_of(operator, "select holdfast.unpark_steps(array[%s]::bigint[])", step_id) == "RN005"
    assert claim(db) is None


def only_a_start_parks_runs_for_approval(db: DB) -> None:
    step_id = run(db, queue(db))["step_id"]
    assert db.execute("select holdfast.park_steps(array[%s]::bigint[], 'approval')", [step_id]).fetchall() == []


def only_its_face_starts_a_run(db: DB) -> None:
    """X-15: approvals and strict projects bind who calls the kernel directly, too"""
    plan = Jsonb([{"name": "one", "kind": "ops:deploy"}])
    with login_for(db, "hf_producer", "default") as producer:
        producer.execute("set holdfast.is_by_face = 'true'")  # any login can set a custom setting
        assert state_of(producer, "select holdfast.start_step('ops.run', 'ops:deploy', queue => 'ops')") == "RN005"
        start_run = "select holdfast.start_run('flow.task', 'x', 'ops.run', %s)"
        assert state_of(producer, start_run, plan) == "RN005"
    assert claim(db) is None


def an_id_belongs_to_one_run(db: DB) -> None:
    given = Jsonb({"run_id": queue(db)})
    start = "select holdfast.make_step('ops.run', 'ops:deploy', %s, 'ops', is_by_face => true)"
    assert state_of(db, start, given) == "RN003"


def two_pushes_of_one_ref_at_once_leave_the_newer(db: DB) -> None:
    """The older one is not committed yet when the newer one looks for it"""
    queue(db)  # the queue is there: its first starts wait for each other
    called(db, "define_project", p_project_id="p", p_repository="o/r")
    called(db, "define_environment", p_project_id="p", p_env="e", p_branch_pattern="main", p_on_push="cancel_queued")

    def pushed(one: DB, sha: str) -> str:
        return str(called(one, "queue_push", p_repository="o/r", p_git_ref="main", p_git_sha=sha)[0]["run_id"])

    older: list[str] = []
    newer = overlapping(db, lambda one: older.append(pushed(one, "a")), lambda two: pushed(two, "b"))
    assert (status(db, older[0]), status(db, newer)) == ("cancelled", "queued")


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


def state_of(db: DB, statement: LiteralString, *given: Any) -> str | None:
    """Execute a statement; give the SQLSTATE that it was refused with."""
    try:
        with db.transaction():
            db.execute(statement, given)
    except psycopg.Error as error:
        return error.sqlstate
    return None


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
           Cut("ops.decide_approval", "waiting", "if false then")),
    mutant("approved too late", an_approval_is_given_once_in_time_and_by_somebody_else,
           Cut("ops.decide_approval", "late", "if false then")),
    mutant("approved by oneself", an_approval_is_given_once_in_time_and_by_somebody_else,
           Cut("ops.decide_approval", "own", "if false then")),
    mutant("approved while it runs", an_approval_is_given_to_a_run_that_waits_for_it,
           Cut("ops.decide_approval", "waiting", "if false then")),
    mutant("unparked by anybody", a_run_that_waits_for_approval_is_unparked_by_the_decision_alone,
           Cut("unpark_steps", "face", "if false then")),
    mutant("parked for approval by anybody", only_a_start_parks_runs_for_approval, Cut("park_steps", "face")),
    mutant("started by anybody", only_its_face_starts_a_run, Cut("make_step", "face", ";")),
    mutant("planned by anybody", only_its_face_starts_a_run, Cut("initial_state", "face", "if false then")),
    mutant("facts of another run", an_id_belongs_to_one_run, Cut("ops.record_moves", "facts", "if false then")),
    mutant("pushes that do not wait", two_pushes_of_one_ref_at_once_leave_the_newer, Cut("ops.queue_push", "push")),
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
