"""The views: what they show, which writes they refuse, and what is reported where rows are broken."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from holdfast import errors
from holdfast.kernel import calls, schedule_calls
from holdfast.kernel.db import run as ran
from holdfast.testing import Clock
from kernel.retention import days, sweep
from kernel.steps import seconds, violations
from ops.runs import called, claim, event, finish, queue, run, status, value

DB = Connection[Any]
STATUSES = ("queued", "claimed", "running", "success", "failed", "cancelled")
LEGAL = {("claimed", "cancelled")}  # through the view, and only if it is stale
BY_HAND = {
    ("queued", "claimed"), ("claimed", "running"), ("running", "success"), ("running", "failed"),
    ("queued", "cancelled"), ("claimed", "cancelled"), ("running", "cancelled"),
}  # fmt: skip


def in_status(db: DB, wanted: str) -> str:
    """Give a run in a status."""
    run_id = queue(db, p_priority=0 if wanted == "queued" else 9)
    if wanted == "cancelled":
        value(db, "cancel_run", run_id, None, None)
    if wanted in ("queued", "cancelled"):
        return run_id
    assert claim(db) == run_id
    if wanted != "claimed":
        event(db, run_id)
    if wanted in ("success", "failed"):
        finish(db, run_id, wanted)
    return run_id


def updated(db: DB, statement: str, *arguments: Any) -> str:
    """Update and give what came of it: the number of rows, or the SQLSTATE of the refusal; nothing is left of it."""
    try:
        with db.transaction(force_rollback=True):
            return str(db.execute(statement, arguments).rowcount)
    except psycopg.Error as error:
        return str(error.sqlstate)


def test_no_pair_of_statuses_is_passed_by_an_update_of_the_view_but_the_stale_one(db: DB, clock: Clock) -> None:
    """O-02, O-16: each of 36 pairs"""
    clock.freeze()
    runs = {each: in_status(db, each) for each in STATUSES}
    statement = (
        "update ops.runs set status = %s, finished_at = case when %s then now() else finished_at end where run_id = %s"
    )
    for is_stale in (False, True):
        for before, run_id in runs.items():
            for after in STATUSES:
                left = updated(db, statement, after, after in STATUSES[3:], run_id)
                if before == after and before not in STATUSES[3:]:
                    assert left == "1", (before, after)  # nothing is changed
                elif (before, after) in LEGAL:
                    assert left == ("1" if is_stale else "0"), (before, after)
                else:
                    assert left == "RN005", (before, after)
        clock.advance(seconds(301))
    ran(db, calls.rescue_steps())


def test_an_update_of_the_step_makes_the_moves_of_the_diagram_and_the_facts_follow(db: DB) -> None:
    """O-02, O-05, O-16, O-26, O-110: each of 36 pairs by hand, on the table beneath"""
    held = "lease_id = nextval('holdfast.lease_ids'), lease_owner = 'hand', lease_until = holdfast.clock() + '1 h'"
    free = "lease_id = null, lease_owner = null, lease_until = null"
    sets = {
        "queued": f"due_at = holdfast.clock(), finished_at = null, {free}",
        "claimed": f"due_at = null, finished_at = null, claimed_at = holdfast.clock(), {held}",
        "running": f"due_at = null, finished_at = null, {held}",
    } | dict.fromkeys(STATUSES[3:], f"due_at = null, finished_at = holdfast.clock(), {free}")
    for before in STATUSES:
        step = run(db, in_status(db, before))["step_id"]
        for after in STATUSES:
            if before == after:
                continue
            with db.transaction(force_rollback=True):
                try:
                    with db.transaction():
                        db.execute(f"update holdfast.steps set state = '{after}', {sets[after]} where id = %s", [step])
                    left = "moved"
                except psycopg.Error as error:
                    left = str(error.sqlstate)
                facts = db.execute("select status from ops.runs where step_id = %s", [step]).fetchone()
                seen = db.execute(
                    "select count(*) from ops.run_events e join ops.runs r using (run_id) "
                    "where r.step_id = %s and e.payload ->> 'event' = 'by_hand' and e.payload ->> 'to' = %s",
                    [step, after],
                ).fetchone()
                is_legal = (before, after) in BY_HAND
                assert (left, facts, seen) == (
                    "moved" if is_legal else "RN001",
                    (after if is_legal else before,),
                    (int(is_legal),),
                ), (before, after)
                assert [v for v in violations(db) if v[0] != "lease_was_rescued"] == []


@pytest.mark.parametrize("view", ["runs", "run_events", "projects", "environments", "artifacts", "approvals"])
def test_views_take_no_other_write(db: DB, view: str) -> None:
    """O-05, X-07: events are append-only"""
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True)
    queue(db, p_project_id="p", p_env="prod")
    run_id = queue(db)
    claim(db)
    value(db, "add_artifact", run_id, "image", "x")
    expected = "RN008" if view == "run_events" else "RN005"

    column = "tenant" if view != "run_events" else "message"
    assert updated(db, f"delete from ops.{view}") == expected
    assert updated(db, f"update ops.{view} set {column} = 'x'") == expected
    assert updated(db, f"insert into ops.{view} ({column}) values ('x')") == expected


def test_runs_have_the_columns_of_the_document(db: DB) -> None:
    """O-01, O-54, O-74, O-77, O-103, O-109: and kinds are told apart"""
    columns = {
        view: [
            name
            for (name,) in db.execute(
                "select column_name from information_schema.columns where table_schema = 'ops' and table_name = %s "
                "order by ordinal_position",
                [view],
            )
        ]
        for view in ("runs", "run_events")
    }
    assert columns["runs"][:19] == [
        "run_id", "project_id", "env_id", "git_sha", "git_ref", "status", "claimed_by", "queued_at", "started_at",
        "finished_at", "created_at", "updated_at", "metadata", "idempotency_key", "running_at", "kind", "tenant",
        "retry_of", "rollback_of",
    ]  # fmt: skip
    assert columns["run_events"] == ["event_id", "run_id", "level", "message", "payload", "created_at"]
    kinds = [queue(db, metadata={"kind": "build"}), queue(db), queue(db, p_kind="backup")]
    assert [run(db, each)["kind"] for each in kinds] == ["build", "deploy", "backup"]
    assert all(re.fullmatch(r"run-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", each) for each in kinds)


def test_functions_have_the_arguments_and_results_of_the_document(db: DB) -> None:
    """O-33, O-36, O-41, O-48, O-49, O-75, O-78, O-107: new parameters come last"""
    shown = {
        name: (arguments, result, definer)
        for name, arguments, result, definer in db.execute(
            "select proname, pg_get_function_arguments(oid), pg_get_function_result(oid), prosecdef from pg_proc "
            "where pronamespace = 'ops'::regnamespace"
        )
    }
    assert shown["claim_next_run"] == (
        "p_worker_id text",
        "TABLE(run_id text, project_id text, env_id text, git_sha text, git_ref text, metadata jsonb)",
        True,
    )
    arguments, result, _ = shown["queue_run"]
    assert arguments.startswith(
        "p_project_id text, p_env text, p_git_sha text, p_git_ref text, p_metadata jsonb DEFAULT '{}'::jsonb, "
        "p_idempotency_key text DEFAULT NULL::text"
    )
    assert result == "TABLE(run_id text, status text, queued_at timestamp with time zone)"
    arguments, result, _ = shown["append_event"]
    assert arguments.startswith("p_run_id text, p_level text, p_message text, p_payload jsonb DEFAULT '{}'::jsonb")
    assert result == "text"
    assert shown["finish_run"][0].startswith("p_run_id text, p_status text, p_metadata jsonb DEFAULT '{}'::jsonb")
    assert all(definer for name, (_, _, definer) in shown.items() if name in ("queue_run", "append_event"))


def test_the_duration_is_from_the_claim(db: DB, clock: Clock) -> None:
    """O-18, O-20, O-61, C-85: queued 10:30:00, claimed 10:30:15, over 10:45:30"""
    begun = clock.freeze()
    run_id = queue(db)
    clock.advance(seconds(15))
    claim(db)
    clock.advance(seconds(200))
    event(db, run_id)
    for _ in range(3):
        clock.advance(seconds(200))
        value(db, "heartbeat", run_id, None)
    clock.advance(seconds(115))
    finish(db, run_id, "success", {"exit_code": 0})

    after = run(db, run_id)
    assert (after["finished_at"] - after["started_at"], after["running_at"] - begun) == (seconds(915), seconds(215))
    assert after["metadata"]["exit_code"] == 0


CORRUPTIONS = {
    "run_has_facts": "delete from ops.run_facts where status = 'queued'",
    "facts_have_a_run": "update ops.run_facts set step_id = 999999 where status = 'success'",
    "facts_agree_with_the_run": "update ops.run_facts set status = 'running' where status = 'claimed'",
    "queued_is_unclaimed": "update ops.run_facts set claimed_by = 'x', started_at = now() where status = 'queued'",
    "finished_is_over": "update ops.run_facts set finished_at = null where status = 'success'",
    "claimed_has_a_worker": "update ops.run_facts set started_at = null where status = 'success'",
    "times_in_order": "update ops.run_facts set started_at = queued_at - interval '1 h' where status = 'success'",
    "waiting_has_an_approval": "delete from ops.run_approvals",
    "approval_has_a_waiting_run": "update holdfast.steps set due_at = parked_due_at, parked_due_at = null, "
    "parked_for = null where parked_for = 'approval'",
}


@pytest.mark.one_server
@pytest.mark.own_database
@pytest.mark.unsound
@pytest.mark.parametrize("invariant", CORRUPTIONS)
def test_a_broken_invariant_is_reported(db: DB, invariant: str) -> None:
    """O-26, O-110, X-13"""
    called(db, "define_environment", p_project_id="p", p_env="prod", p_needs_approval=True)
    queue(db, p_project_id="p", p_env="prod")
    in_status(db, "success")
    in_status(db, "claimed")
    queue(db)
    assert violations(db) == []
    db.execute("alter table ops.run_facts drop constraint facts_are_sound")

    db.execute("set session_replication_role = replica")
    db.execute(CORRUPTIONS[invariant])
    db.execute("reset session_replication_role")

    assert invariant in {each for each, _ in violations(db)}


@pytest.mark.one_server
@pytest.mark.own_database
@pytest.mark.parametrize(
    "change",
    [
        "status = 'lost'",
        "claimed_by = 'x', started_at = queued_at",
        "status = 'claimed'",
        "status = 'claimed', claimed_by = 'x'",
        "status = 'success', claimed_by = 'x', started_at = queued_at",
        "finished_at = queued_at",
        "status = 'claimed', claimed_by = 'x', started_at = queued_at - interval '1 s'",
        "status = 'running', claimed_by = 'x', started_at = queued_at, running_at = queued_at - interval '1 s'",
        "status = 'cancelled', finished_at = queued_at - interval '1 s'",
    ],
)
def test_facts_that_do_not_fit_together_are_refused(db: DB, change: str) -> None:
    """O-26: also by plain SQL of an administrator"""
    queue(db)

    with pytest.raises(psycopg.errors.CheckViolation, match="facts_are_sound"):
        db.execute(f"update ops.run_facts set {change}")


@pytest.mark.one_server
def test_each_invariant_of_ops_has_a_corruption(db: DB) -> None:
    ((body,),) = db.execute("select prosrc from pg_proc where oid = 'ops.violations'::regproc").fetchall()

    assert set(re.findall(r"select '(\w+)'", body)) == CORRUPTIONS.keys()


def test_a_failed_run_is_resolved_by_a_mark_and_its_end_stays(db: DB) -> None:
    """The machine has no `resolved`: the dead letter ends by the mark, with actor and reason"""
    run_id = in_status(db, "failed")
    step = str(run(db, run_id)["step_id"])

    assert ran(db, calls.resolve(step, "known flake")) == ["failed"]

    assert status(db, run_id) == "failed"
    assert db.execute("select count(*) from holdfast.dead_steps").fetchall() == [(0,)]
    assert db.execute("select reason from holdfast.resolutions").fetchall() == [("known flake",)]
    for again in (calls.resolve(step, "again"), calls.retry(step, "again")):
        with pytest.raises(errors.RefusedError):
            ran(db, again)
    other = str(run(db, in_status(db, "success"))["step_id"])
    with pytest.raises(errors.RefusedError):
        ran(db, calls.resolve(other, "it did not fail"))


def test_the_monitor_is_a_schedule_that_fires_every_five_minutes(db: DB, clock: Clock) -> None:
    """O-96: it comes with a tenant's first environment"""
    clock.freeze()
    run_id = queue(db)
    queue(db)
    claim(db)
    shown = db.execute("select name, face, target, every from holdfast.schedules").fetchall()
    assert shown == [("ops-monitor", "ops", "monitor", seconds(300))]
    ran(db, schedule_calls.fire_schedules())
    clock.advance(seconds(600))

    ran(db, schedule_calls.fire_schedules())

    assert status(db, run_id) == "cancelled"
    assert run(db, run_id)["metadata"]["cancelled_by"] == "system"


def test_retention_takes_a_run_with_all_that_belongs_to_it(db: DB, clock: Clock) -> None:
    """X-16"""
    run_id = queue(db, key="k")
    claim(db)
    value(db, "add_artifact", run_id, "image", "x")
    finish(db, run_id, "failed", {"error": "no"})
    ran(db, calls.resolve(str(run(db, run_id)["step_id"]), "known"))
    clock.advance(days(91))

    assert sweep(db).steps == 1

    left = [db.execute(f"select count(*) from ops.{t}").fetchone() for t in ("run_facts", "run_artifacts")]
    assert left == [(0,), (0,)]
    assert db.execute("select count(*) from holdfast.resolutions").fetchone() == (0,)
    assert queue(db, key="k") != run_id  # the key goes with its run
