"""Pushes and ticks: runs that nobody queues by hand."""

from __future__ import annotations

from typing import Any

import pytest
from psycopg import Connection
from psycopg.types.json import Jsonb

from ops.runs import called, claim, event, queue, refused, run, status, value
from ops.test_projects import define

DB = Connection[Any]


def push(db: DB, ref: str = "refs/heads/main", sha: str = "a1", key: str | None = None) -> list[dict[str, Any]]:
    return called(db, "queue_push", p_repository="Org/App", p_git_ref=ref, p_git_sha=sha, p_idempotency_key=key)


@pytest.mark.parametrize(
    ("pattern", "ref", "matches"),
    [
        ("main", "refs/heads/main", True),
        ("main", "main", True),
        ("main", "refs/heads/main2", False),
        ("main", "refs/tags/main", False),
        ("release/*", "refs/heads/release/1.0", True),
        ("release/*", "refs/heads/release/1.0/hotfix", False),
        ("release/**", "refs/heads/release/1.0/hotfix", True),
        ("v1.?", "refs/heads/v1.2", True),
        ("v1.?", "refs/heads/v1x2", False),
        ("refs/tags/v*", "refs/tags/v1.0", True),
        ("refs/tags/v*", "refs/heads/v1.0", False),
        ("a+b(c)[d]", "refs/heads/a+b(c)[d]", True),
        ("a\\d", "refs/heads/a1", False),
        ("*", "refs/heads/main", True),
        (None, "refs/heads/main", False),
    ],
)
@pytest.mark.one_server
def test_a_branch_pattern_selects_refs(db: DB, pattern: str | None, ref: str, matches: bool) -> None:
    assert value(db, "matches_branch", pattern, ref) is matches


def test_a_push_queues_one_run_per_environment_that_matches(db: DB) -> None:
    """O-24, O-28: the repository selects the project; the same delivery queues nothing"""
    called(db, "define_project", p_project_id="proj-123", p_repository="org/app")
    staging = define(db, p_branch_pattern="main")
    prod = define(db, "prod", p_branch_pattern="refs/tags/v*", p_kind="release")

    first, again = push(db, key="github:1:d1"), push(db, key="github:1:d1")
    tagged = push(db, "refs/tags/v1")
    nothing = push(db, "refs/heads/feature")

    assert [(r["env_id"], r["is_new"]) for r in first + again] == [(staging, True), (staging, False)]
    assert first[0]["run_id"] == again[0]["run_id"]
    assert [r["env_id"] for r in tagged] == [prod]
    assert run(db, tagged[0]["run_id"])["kind"] == "release"
    assert nothing == []
    assert refused(db, "define_project", "other", "ORG/APP") == "RN003"


@pytest.mark.parametrize(
    ("on_push", "expected"),
    [
        ("queue", ["running", "queued", "queued", "queued"]),
        ("cancel_queued", ["running", "cancelled", "queued", "queued"]),
        ("cancel_all", ["cancelled", "cancelled", "queued", "queued"]),
    ],
)
def test_a_new_push_cancels_older_runs_of_the_ref_as_the_environment_says(
    db: DB, on_push: str, expected: list[str]
) -> None:
    called(db, "define_project", p_project_id="proj-123", p_repository="org/app")
    define(db, p_branch_pattern="*", p_on_push=on_push)
    running = push(db)[0]["run_id"]
    claim(db)
    event(db, running)
    older = queue(db, p_git_ref="refs/heads/main")
    other = push(db, "refs/heads/other")[0]["run_id"]

    newest = push(db, sha="a2", key="d2")[0]["run_id"]
    push(db, sha="a2", key="d2")

    assert [status(db, run_id) for run_id in (running, older, other, newest)] == expected
    if on_push != "queue":
        assert run(db, older)["metadata"]["reason"] == f"Superseded by {newest}"


def test_deliveries_are_recorded_once(db: DB) -> None:
    for outcome in ("no environment matches", "queued"):
        called(db, "record_delivery", p_source="github", p_delivery="d1", p_event="push", p_outcome=outcome)

    assert db.execute("select delivery, outcome, run_ids from ops.webhook_deliveries").fetchall() == [
        ("d1", "no environment matches", [])
    ]


def tick(db: DB, target: str, given: dict[str, Any] | None = None, options: dict[str, Any] | None = None) -> list[str]:
    with db.transaction():
        db.execute("select holdfast.set_actor('scheduler', 'nightly')")
        ((ids,),) = db.execute(
            "select ops.start_for_tick(%s, %s, %s, 'default')", [target, Jsonb(given or {}), Jsonb(options or {})]
        ).fetchall()
        assert db.execute("select current_setting('holdfast.actor')").fetchall() == [("nightly",)]
        db.execute("select holdfast.set_actor()")
        return list(ids)


def test_a_tick_queues_one_run_per_environment(db: DB) -> None:
    """O-17, O-25"""
    define(db)
    define(db, "prod")
    called(db, "define_environment", p_project_id="other", p_env="staging")

    everywhere, one = tick(db, "backup", options={"priority": 2}), tick(db, "backup", {"project_id": "other"})

    assert (len(everywhere), len(one)) == (3, 1)
    runs = [run(db, run_id) for run_id in everywhere]
    assert {(r["kind"], r["queued_by"], r["status"]) for r in runs} == {("backup", "nightly", "queued")}
    assert len({r["env_id"] for r in runs}) == 3
    ((made_by,),) = db.execute(
        "select distinct payload -> 'actor_kind' from ops.run_events where run_id = any (%s)", [everywhere]
    ).fetchall()
    assert made_by == "scheduler"
    assert value(db, "is_any_open", everywhere)
    with db.transaction():
        db.execute("select holdfast.set_actor('scheduler', 'nightly', 'the next one begins')")
        db.execute("select ops.cancel_open(%s, 'overlap')", [everywhere])
    assert not value(db, "is_any_open", everywhere)
    assert run(db, everywhere[0])["metadata"]["cancelled_by"] == "nightly"


def test_the_monitors_tick_sweeps_and_queues_nothing(db: DB) -> None:
    """O-96: as a schedule does every five minutes"""
    queue(db)

    assert tick(db, "monitor") == ["monitor"]
    assert not value(db, "is_any_open", ["monitor"])
