"""Projects and environments: what a run's environment says about it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection
from psycopg.rows import dict_row

from holdfast.testing import Clock
from kernel.steps import seconds
from ops.runs import called, claim, event, events, finish, queue, refused, run, status, value

DB = Connection[Any]


def define(db: DB, env: str = "staging", **given: Any) -> str:
    return str(called(db, "define_environment", p_project_id="proj-123", p_env=env, **given)[0]["define_environment"])


def environments(db: DB) -> list[dict[str, Any]]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute("select * from ops.environments order by name").fetchall()


def test_first_use_registers_a_project_and_its_environment(db: DB) -> None:
    """O-81, C-37: and they require no approval"""
    first, second = run(db, queue(db)), run(db, queue(db, p_env="prod"))
    again = run(db, queue(db))

    assert first["env_id"] == again["env_id"] != second["env_id"]
    assert called(db, "claim_next_run", p_worker_id="w")[0]["env_id"] == first["env_id"]
    assert [(e["name"], e["type"], e["needs_approval"], e["on_push"]) for e in environments(db)] == [
        ("prod", "prod", False, "queue"),
        ("staging", "staging", False, "queue"),
    ]
    assert db.execute("select project_id, environments from ops.projects").fetchall() == [("proj-123", 2)]


def test_strict_projects_refuse_what_nobody_defined(db: DB) -> None:
    """C-37"""
    value(db, "set_strict_projects", True)
    assert refused(db, "queue_run", "proj-123", "staging", "sha", "main") == "RN004"
    define(db)
    queue(db)
    assert refused(db, "queue_run", "proj-123", "prod", "sha", "main") == "RN004"
    value(db, "set_strict_projects", False, "default")  # a tenant's own setting goes first

    queue(db, p_env="prod")


@pytest.mark.parametrize(
    ("function", "given"),
    [
        ("queue_run", ("", "staging", "sha", "main")),
        ("queue_run", ("proj", None, "sha", "main")),
        ("define_environment", ("proj", "staging", "qa")),
        ("define_environment", ("proj", "staging", None, None, False, "cancel")),
        ("define_environment", ("proj", "staging", None, None, False, "queue", 0)),
        ("define_environment", ("proj", "staging", None, None, False, "queue", None, seconds(0))),
        ("define_project", ("",)),
        ("set_strict_projects", (None,)),
        ("decide_approval", ("run-1", "maybe", "because")),
        ("decide_approval", ("run-1", "approved", " ")),
    ],
)
def test_what_cannot_be_right_is_refused(db: DB, function: str, given: tuple[Any, ...]) -> None:
    assert refused(db, function, *given) == "RN005"


def test_one_run_at_a_time_is_opted_into(db: DB) -> None:
    env_id = define(db, p_concurrency=1)
    first, second = queue(db), queue(db)
    other = queue(db, p_env="prod")

    assert [claim(db, "a"), claim(db, "b"), claim(db, "c")] == [first, other, None]
    finish(db, first, "success")
    assert claim(db, "b") == second
    assert db.execute("select concurrency from holdfast.limits where name = %s", [f"env:{env_id}"]).fetchall() == [(1,)]

    define(db)
    assert db.execute("select concurrency from holdfast.limits").fetchall() == []


def test_priority_goes_first_and_a_later_run_waits_for_its_time(db: DB, clock: Clock) -> None:
    now = clock.freeze()
    plain, later = queue(db), queue(db, p_due_at=now + seconds(60), p_priority=9)
    urgent = queue(db, p_priority=5)

    assert [claim(db), claim(db), claim(db)] == [urgent, plain, None]
    clock.advance(seconds(61))
    assert claim(db) == later


def test_a_run_that_waits_past_its_time_is_cancelled(db: DB, clock: Clock) -> None:
    """C-41"""
    clock.freeze()
    define(db, "prod", p_queue_ttl=seconds(60))
    short, forever, by_env = queue(db, p_ttl=seconds(30)), queue(db), queue(db, p_env="prod")
    clock.advance(seconds(31))

    assert claim(db) == forever
    assert (status(db, short), run(db, short)["metadata"]["reason"]) == ("cancelled", "Run expired in the queue")
    assert (status(db, by_env), value(db, "cancel_stale_runs")) == ("queued", {"cancelled": 0})
    clock.advance(seconds(30))
    assert value(db, "cancel_stale_runs") == {"cancelled": 1}
    assert status(db, by_env) == "cancelled"


def test_an_approved_run_can_be_claimed_and_a_rejected_one_is_cancelled(db: DB) -> None:
    define(db, p_needs_approval=True)
    yes, no = queue(db, p_actor="ada"), queue(db, p_actor="ada")
    assert (status(db, yes), claim(db)) == ("queued", None)
    assert refused(db, "decide_approval", yes, "approved", "looks good", "ada") == "RN010"

    assert value(db, "decide_approval", yes, "approved", "looks good", "eva") == "approved"
    assert value(db, "decide_approval", no, "rejected", "not on a Friday", "eva") == "rejected"

    assert claim(db) == yes
    assert status(db, no) == "cancelled"
    assert run(db, no)["metadata"] | {"timestamp": ""} == {
        "cancelled_by": "eva",
        "reason": "Approval rejected: not on a Friday",
        "timestamp": "",
    }
    for run_id in (yes, no):
        assert refused(db, "decide_approval", run_id, "approved", "again", "eva") == "RN010"
    assert db.execute(
        "select decision, requested_by, decided_by, reason from ops.approvals order by decision"
    ).fetchall() == [
        ("approved", "ada", "eva", "looks good"),
        ("rejected", "ada", "eva", "not on a Friday"),
    ]
    assert "unparked by eva: looks good" in [message for _, message in events(db, yes)]


def test_an_approval_expires_after_a_day(db: DB, clock: Clock) -> None:
    clock.freeze()
    define(db, p_needs_approval=True)
    run_id, cancelled = queue(db, p_actor="ada"), queue(db, p_actor="ada")
    value(db, "cancel_run", cancelled, "changed my mind", "ada")
    clock.advance(seconds(86_399))
    assert value(db, "cancel_stale_runs") == {"cancelled": 0}
    clock.advance(seconds(1))
    assert refused(db, "decide_approval", run_id, "approved", "late", "eva") == "RN010"

    assert value(db, "cancel_stale_runs") == {"cancelled": 1}

    assert (status(db, run_id), run(db, run_id)["metadata"]["reason"]) == ("cancelled", "Approval expired")
    decisions = dict(db.execute("select run_id, decision from ops.approvals").fetchall())
    assert decisions == {run_id: "expired", cancelled: "cancelled"}


def test_a_run_without_an_approval_cannot_be_decided_on(db: DB) -> None:
    assert refused(db, "decide_approval", queue(db), "approved", "why not", "eva") == "RN010"


def test_a_retry_is_a_new_run_with_what_the_old_one_was_queued_with(db: DB) -> None:
    """C-40: and a failed run leaves the dead letter by it"""
    old = queue(db, metadata={"trigger": "cli"}, p_priority=3, p_kind="build")
    assert refused(db, "retry_run", old, None, None) == "RN010"
    claim(db)
    finish(db, old, "failed", {"error": "no disk"})
    assert db.execute("select count(*) from holdfast.dead_steps").fetchall() == [(1,)]

    (new,) = called(db, "retry_run", p_run_id=old, p_reason="disk is back", p_actor="eva")

    assert called(db, "retry_run", p_run_id=old) == [new]  # while it is not over
    after = run(db, new["run_id"])
    assert (after["retry_of"], after["kind"], after["git_sha"], after["queued_by"], after["status"]) == (
        old,
        "build",
        run(db, old)["git_sha"],
        "eva",
        "queued",
    )
    assert after["metadata"] == {"trigger": "cli", "retry_of": old, "why": "disk is back"}
    assert db.execute("select priority from holdfast.steps where id = %s", [after["step_id"]]).fetchall() == [(3,)]
    assert status(db, old) == "failed"
    assert db.execute("select count(*) from holdfast.dead_steps").fetchall() == [(0,)]
    assert db.execute("select actor, reason from holdfast.resolutions").fetchall() == [("eva", "disk is back")]
    claim(db)
    finish(db, new["run_id"], "success")
    assert called(db, "retry_run", p_run_id=old)[0]["run_id"] != new["run_id"]


def test_a_rollback_goes_to_the_last_sha_that_succeeded_before(db: DB) -> None:
    runs = {}
    for sha, end in [("a", "success"), ("b", "success"), ("c", "failed"), ("d", "success"), ("d", "success")]:
        runs[sha] = queue(db, p_git_sha=sha, p_git_ref=f"release/{sha}")
        claim(db)
        finish(db, runs[sha], end)
    other = queue(db, p_env="prod", p_git_sha="p")
    assert refused(db, "rollback_run", other, None, None) == "RN010"  # not over
    claim(db)
    finish(db, other, "success")

    back = [called(db, "rollback_run", p_run_id=runs[sha], p_actor="eva")[0]["run_id"] for sha in ("d", "c", "b")]

    assert [(run(db, r)["git_sha"], run(db, r)["git_ref"]) for r in back] == [
        ("b", "release/b"),
        ("b", "release/b"),
        ("a", "release/a"),
    ]
    assert run(db, back[0])["rollback_of"] == runs["d"]
    assert refused(db, "rollback_run", runs["a"], None, None) == "RN010"
    assert refused(db, "rollback_run", other, None, None) == "RN010"


def test_artifacts_are_registered_once_and_kept(db: DB) -> None:
    """O-22, O-59, O-60"""
    run_id = queue(db)
    assert refused(db, "add_artifact", run_id, "image", "ghcr.io/a") == "RN010"
    claim(db)

    ids = [value(db, "add_artifact", run_id, "image", "ghcr.io/org/odoo-ce:abc123", "sha256:1", 5) for _ in range(2)]
    other = value(db, "add_artifact", run_id, "sbom", "s3://bucket/sbom.json")
    value(db, "cancel_run", run_id, None, None)

    assert ids[0] == ids[1] != other
    assert value(db, "add_artifact", run_id, "sbom", "s3://bucket/sbom.json") == other
    assert refused(db, "add_artifact", run_id, "logs", "s3://bucket/logs") == "RN010"
    assert db.execute("select run_id, type, url, digest, size_bytes from ops.artifacts order by type").fetchall() == [
        (run_id, "image", "ghcr.io/org/odoo-ce:abc123", "sha256:1", 5),
        (run_id, "sbom", "s3://bucket/sbom.json", None, None),
    ]
    assert [m for _, m in events(db, run_id)][2:] == [
        "Run started",
        "Artifact added: image",
        "Artifact added: sbom",
        "Run finished: cancelled",
    ]


def test_an_artifact_can_be_long_and_not_of_negative_size(db: DB) -> None:
    run_id = queue(db)
    claim(db)
    value(db, "add_artifact", run_id, "logs", "https://example.com/" + "x" * 3900)
    assert refused(db, "add_artifact", run_id, "logs", "y", None, -1) == "RN005"
    assert refused(db, "add_artifact", run_id, "logs", "") == "RN005"
    event(db, run_id)


def test_the_time_in_the_queue_begins_when_a_run_is_due(db: DB, clock: Clock) -> None:
    """C-41"""
    now = clock.freeze()
    run_id = queue(db, p_due_at=now + timedelta(hours=2), p_ttl=timedelta(hours=1))
    clock.advance(timedelta(hours=2, minutes=59))
    assert value(db, "cancel_stale_runs") == {"cancelled": 0}

    clock.advance(timedelta(minutes=1))
    assert claim(db) is None

    assert status(db, run_id) == "cancelled"
