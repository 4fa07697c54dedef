"""The life of a run, by the functions that the document prints."""

from __future__ import annotations

from typing import Any

from psycopg import Connection
from psycopg.types.json import Jsonb

from ops.runs import SHA, claim, event, events, finish, queue, refused, run, status, value

DB = Connection[Any]


def test_a_run_goes_from_queued_to_success_and_each_change_has_one_event(db: DB) -> None:
    """O-07 to O-10, O-23, O-31, O-38 to O-40, O-44, O-58, O-71"""
    run_id = queue(db, metadata={"trigger": "webhook"})
    queued = run(db, run_id)
    assert claim(db) == run_id
    claimed = run(db, run_id)
    event(db, run_id)
    running = run(db, run_id)
    finish(db, run_id, "success", {"exit_code": 0})
    done = run(db, run_id)

    assert [r["status"] for r in (queued, claimed, running, done)] == ["queued", "claimed", "running", "success"]
    assert (queued["claimed_by"], queued["started_at"], queued["finished_at"]) == (None, None, None)
    assert claimed["claimed_by"] == "worker-001"
    assert queued["updated_at"] < claimed["started_at"] <= claimed["updated_at"] < running["running_at"]
    assert (done["git_sha"], done["claimed_by"]) == (SHA, "worker-001")
    assert done["metadata"] == {"trigger": "webhook", "exit_code": 0}
    assert events(db, run_id) == [
        ("info", "Run queued"),
        ("info", "Run claimed by worker"),
        ("info", "Run started"),
        ("info", "Starting build process"),
        ("info", "Run finished: success"),
    ]


def test_calls_repeated_change_nothing(db: DB) -> None:
    """O-04, O-15, O-51, O-52, O-76: a worker may repeat each call after a network failure"""
    run_id = queue(db, key="deploy-1")
    assert queue(db, key="deploy-1", p_git_sha="other") == run_id
    claim(db)
    first = event(db, run_id)
    assert event(db, run_id) == first
    assert [finish(db, run_id, "failed", {"error": "Docker build failed"}) for _ in range(2)] == [True, True]
    assert event(db, run_id) == first
    assert queue(db, key="deploy-1") == run_id

    assert [message for _, message in events(db, run_id)] == [
        "Run queued",
        "Run claimed by worker",
        "Run started",
        "Starting build process",
        "Run finished: failed",
    ]


def test_a_run_that_is_finished_without_an_event_passes_through_running(db: DB) -> None:
    """C-35, O-11, O-62, O-63, O-68, O-69"""
    run_id = queue(db, metadata={"author": "john@example.com"})
    claim(db)

    finish(db, run_id, "failed", {"exit_code": 1, "error": "Docker build failed", "step": "build"})

    assert run(db, run_id)["metadata"] == {
        "author": "john@example.com",
        "exit_code": 1,
        "error": "Docker build failed",
        "step": "build",
    }
    assert events(db, run_id)[1:] == [
        ("info", "Run claimed by worker"),
        ("info", "Run started"),
        ("error", "Run finished: failed"),
    ]


def test_an_appended_event_has_the_id_that_was_returned(db: DB) -> None:
    """O-49, O-51"""
    run_id = queue(db)
    claim(db)

    appended = event(db, run_id, "Starting")

    assert event(db, run_id, "Starting") == appended
    assert db.execute("select event_id from ops.run_events where message = 'Starting'").fetchall() == [(appended,)]


def test_each_state_before_the_end_can_be_cancelled(db: DB) -> None:
    """O-12 to O-14, O-64, O-66, O-67"""
    waiting, claimed, running, by_worker = (queue(db) for _ in range(4))
    assert claim(db) == waiting
    assert value(db, "cancel_run", waiting, "not today", "eva")
    assert claim(db) == claimed
    assert value(db, "cancel_run", claimed, None, None)
    assert claim(db) == running
    event(db, running)
    assert value(db, "cancel_run", running, "stop", "eva")
    finish(db, by_worker, "cancelled", {"cancelled_by": "user-456", "reason": "Manual stop via console"})

    seen = {run_id: run(db, run_id) for run_id in (waiting, claimed, running, by_worker)}
    assert {each["status"] for each in seen.values()} == {"cancelled"}
    assert all(each["finished_at"] is not None for each in seen.values())
    assert seen[waiting]["metadata"] | {"timestamp": ""} == {
        "cancelled_by": "eva", "reason": "not today", "timestamp": ""}  # fmt: skip
    assert seen[by_worker]["metadata"] | {"timestamp": ""} == {
        "cancelled_by": "user-456", "reason": "Manual stop via console", "timestamp": ""}  # fmt: skip
    assert value(db, "heartbeat", running, "worker-001") is False
    assert value(db, "cancel_run", running, "again", "eva") is True


def test_what_cannot_be_is_refused_by_its_code(db: DB) -> None:
    """O-15, O-55 to O-57, O-70, C-36: RN004, RN005, RN002, RN010"""
    run_id = queue(db)
    nobody = "run-00000000-0000-0000-0000-000000000000"
    assert refused(db, "append_event", nobody, "info", "x") == "RN004"
    assert refused(db, "finish_run", nobody, "success") == "RN004"
    assert refused(db, "append_event", run_id, "foo", "x") == "RN005"
    assert refused(db, "finish_run", run_id, "done") == "RN005"
    assert refused(db, "finish_run", run_id, "success") == "RN010"
    assert refused(db, "finish_run", run_id, "failed") == "RN010"
    assert refused(db, "heartbeat", run_id, None) == "RN010"
    claim(db)
    assert refused(db, "finish_run", run_id, "success", Jsonb({}), "worker-002") == "RN002"
    assert refused(db, "heartbeat", run_id, "worker-002") == "RN002"
    assert refused(db, "finish_run", run_id, "success", Jsonb([1])) == "RN005"
    finish(db, run_id, "success", worker="worker-001")
    assert refused(db, "finish_run", run_id, "failed") == "RN010"
    assert refused(db, "cancel_run", run_id, None, None) == "RN010"
    assert refused(db, "append_event", run_id, "info", "late") == "RN010"
    assert status(db, run_id) == "success"


def test_an_empty_queue_gives_no_row(db: DB) -> None:
    """O-37"""
    assert claim(db) is None


def test_an_event_on_a_queued_run_leaves_it_queued(db: DB) -> None:
    """O-47"""
    run_id = queue(db)

    event(db, run_id, "seen by the release manager")

    assert (status(db, run_id), claim(db)) == ("queued", run_id)
