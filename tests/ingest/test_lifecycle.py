"""The life of a run, its partitions and its consolidation, in SQL."""

from __future__ import annotations

import psycopg
import pytest

from holdfast.models import Continue, Done, Retry
from holdfast.testing import Clock
from ingest.runs import (
    DB,
    UNTIL,
    claim,
    consolidate,
    define,
    events,
    facts,
    fail_for_good,
    journal,
    page,
    plan,
    put,
    run_of,
    settle,
    start,
    watermark,
)
from kernel.steps import seconds

WHOLE = [
    "created", "workers_running", "consolidation_triggered", "consolidating", "completed",
]  # fmt: skip


@pytest.fixture(autouse=True)
def feed(db: DB) -> None:
    define(db, raw="raw_diamonds_nivoda")


def test_a_run_lives_as_the_document_draws_it(db: DB) -> None:  # noqa: PLR0915 - one life
    """P-01 to P-07, P-09, P-11, P-13 to P-15, P-17, P-35 to P-38, P-44 to P-59, P-61, P-62, P-68 to P-71, P-73,
    P-75 to P-77, P-102, P-103, P-109, P-114, P-116, P-117, P-120, P-121, P-123, P-125, P-137, P-138, P-140"""
    run_id = start(db)
    assert db.execute("select count(*) from ingest.run_metadata").fetchone() == (0,)
    plan(db, 3)
    made = facts(db, run_id)
    assert (made["state"], made["run_type"], made["expected_workers"]) == ("created", "full", 3)
    assert (made["completed_workers"], made["failed_workers"], made["watermark_before"]) == (0, 0, None)
    assert (made["completed_at"], made["watermark_after"]) == (None, None)
    queued = db.execute("select message_id, state from ingest.messages where queue = 'work-items' order by 1")
    assert queued.fetchall() == [(f"{run_id}:partition-{n}:0", "queued") for n in range(3)]
    assert db.execute("select count(*) from ingest.worker_runs").fetchone() == (0,)

    first, second, third = claim(db, "page", 3)
    assert facts(db, run_id)["state"] == "workers_running"
    started = "select status, worker_id, records_processed from ingest.worker_runs order by partition_id"
    assert db.execute(started).fetchall() == [("running", "w1", 0)] * 3
    page(db, first, [f"a{n:02}" for n in range(30)], offset=30)
    progress = "select next_offset, completed from ingest.partition_progress order by partition_id"
    assert db.execute(progress).fetchall() == [(30, False), (0, False), (0, False)]
    (again,) = claim(db, "page")
    assert (again.step_id, again.cursor["offset"]) == (first.step_id, 30)
    with db.transaction():
        assert put(db, again, ["a30"]) == 1
        settle(db, again, Done({"records": 31}))
    page(db, second, ["b"])
    assert (facts(db, run_id)["completed_workers"], events(db, run_id, "CONSOLIDATE")) == (2, [])
    page(db, third, ["c"])

    assert facts(db, run_id)["state"] == "consolidation_triggered"
    ((_, _, message),) = events(db, run_id, "CONSOLIDATE")
    assert message == {"type": "CONSOLIDATE", "runId": str(run_id), "traceId": facts(db, run_id)["trace_id"]}
    done = [body for _, _, body in events(db, run_id, "WORK_DONE")]
    assert [(each["partitionId"], each["recordsProcessed"], each["status"]) for each in done] == [
        ("partition-0", 31, "completed"), ("partition-1", 1, "completed"), ("partition-2", 1, "completed")]  # fmt: skip
    assert watermark(db) is None
    consolidate(db)

    assert journal(db, run_id) == WHOLE
    ended = facts(db, run_id)
    assert (ended["completed_workers"], ended["failed_workers"], ended["records"]) == (3, 0, 33)
    assert ended["completed_at"] is not None
    assert ended["watermark_after"].isoformat() == "2024-01-16T02:00:00+00:00"
    document = watermark(db)
    assert document.keys() == {"lastUpdatedAt", "lastRunId", "lastRunCompletedAt"}
    assert (document["lastUpdatedAt"], document["lastRunId"]) == (UNTIL, str(run_id))
    rows = db.execute("select key, consolidated, run_id = seen_run_id from ingest.raw_diamonds_nivoda").fetchall()
    assert len(rows) == 33
    assert all(each[1] and each[2] for each in rows)


def test_a_failed_partition_skips_the_consolidation_and_fails_the_run(db: DB) -> None:
    """P-08, P-10, P-12, P-41, P-43, P-56, P-59, P-72, P-74, P-78, P-90, P-107, P-139, C-17, C-20"""
    run_id = run_of(db, 2)
    (first,) = claim(db, "page")
    page(db, first, ["a"])
    fail_for_good(db)

    assert journal(db, run_id) == ["created", "workers_running", "consolidation_skipped", "failed"]
    after = facts(db, run_id)
    assert (after["completed_workers"], after["failed_workers"], after["completed_at"]) == (1, 1, None)
    assert "502" in after["reason"]
    assert [(event, severity) for event, severity, _ in events(db, run_id, "alert", "CONSOLIDATE")] == [
        ("alert", "critical")
    ]
    assert watermark(db) is None
    status = db.execute("select status, error_message from ingest.worker_runs order by partition_id").fetchall()
    assert status == [("completed", None), ("failed", "the source answered 502")]
    dead = db.execute(
        "select state, delivery_count from ingest.messages where queue = 'work-items' order by message_id"
    )
    assert dead.fetchall() == [("settled", 0), ("dead", 3)]


def test_a_retried_partition_continues_at_its_offset_and_the_run_completes(db: DB) -> None:
    """P-18, P-91, P-93, P-153, C-20, C-83: the row of worker_runs is the same"""
    run_id = run_of(db, 1)
    (first,) = claim(db, "page")
    page(db, first, ["a"], offset=1)
    fail_for_good(db)
    before = db.execute("select id, status from ingest.worker_runs").fetchall()

    assert db.execute("select ingest.retry_partitions(%s, null, 'the source is back')", [run_id]).fetchone() == (1,)

    assert (facts(db, run_id)["state"], facts(db, run_id)["failed_workers"]) == ("workers_running", 0)
    (again,) = claim(db, "page", worker="w2")
    assert again.cursor["offset"] == 1
    with db.transaction():
        put(db, again, ["b"])
        settle(db, again, Done({"records": 2}))
    consolidate(db)
    after = db.execute("select id, status from ingest.worker_runs").fetchall()
    assert (before[0][0], after[0]) == (after[0][0], (before[0][0], "completed"))
    assert facts(db, run_id)["state"] == "completed"


def test_what_a_person_does_is_in_the_journal_with_the_reason(db: DB) -> None:
    """P-18, P-153: retry, force, resume and cancel"""
    run_id = run_of(db, 1)
    acted = ["retry", "force", "resume", "cancel"]
    fail_for_good(db)
    db.execute("select ingest.retry_partitions(%s, null, 'retry')", [run_id])
    fail_for_good(db)
    db.execute("select ingest.force(%s, false, 'force')", [run_id])
    fail_for_good(db, "consolidate")
    db.execute("select ingest.resume_consolidation(%s, 'resume')", [run_id])
    db.execute("select ingest.cancel_run(%s, 'cancel')", [run_id])

    entries = db.execute(
        "select reason, actor = session_user from holdfast.journal"
        " where run_id = %s and step_id is null and reason = any (%s) order by id",
        [run_id, acted],
    ).fetchall()
    assert entries == [(reason, True) for reason in acted]


def test_pricing_rules_that_cannot_be_loaded_fail_the_run(db: DB) -> None:
    """P-22, P-142: after three deliveries, with the alert"""
    run_id = run_of(db, 1)
    (first,) = claim(db, "page")
    page(db, first, ["a"])
    db.execute("alter table ingest.prices rename column markup to gone")
    for _ in range(3):
        db.execute("update holdfast.steps set due_at = holdfast.clock() where due_at is not null")
        (step,) = claim(db, "consolidate")
        with pytest.raises(psycopg.Error, match="markup"):
            db.execute("select ingest.begin_consolidation(%s, %s)", [step.step_id, step.lease_id])
        settle(db, step, Retry({"type": "UndefinedColumn", "message": "column markup does not exist"}))
    db.execute("alter table ingest.prices rename column gone to markup")

    assert (facts(db, run_id)["state"], watermark(db)) == ("failed", None)
    assert "markup" in facts(db, run_id)["reason"]
    assert [severity for _, severity, _ in events(db, run_id, "alert")] == ["warning", "critical"]


def test_force_consolidates_what_is_there_and_leaves_the_watermark(db: DB) -> None:
    """P-19, P-57, P-58, C-18: with advance_watermark it moves"""
    for advance, after in ((False, None), (True, UNTIL)):
        run_id = run_of(db, 2)
        (first,) = claim(db, "page")
        page(db, first, ["a"])
        fail_for_good(db)
        with pytest.raises(psycopg.Error, match="partitions"):
            db.execute("select ingest.resume_consolidation(%s)", [run_id])

        db.execute("select ingest.force(%s, %s, 'good enough')", [run_id, advance])
        consolidate(db)

        ended = facts(db, run_id)
        assert (ended["state"], ended["forced"], ended["failed_workers"]) == ("completed", True, 1)
        assert ended["completed_at"] is not None
        document = watermark(db)
        assert (None if document is None else document["lastUpdatedAt"]) == after


def test_a_failed_consolidation_is_resumed_with_all_that_is_left(db: DB) -> None:
    """P-27, P-107, P-141, P-142, P-143, C-29: three deliveries, an alert at the first and at the last"""
    run_id = run_of(db, 1)
    (first,) = claim(db, "page")
    page(db, first, ["a", "b"])
    fail_for_good(db, "consolidate")

    alerts = events(db, run_id, "alert")
    assert [severity for _, severity, _ in alerts] == ["warning", "critical"]
    assert {body["title"] for _, _, body in alerts} == {"Consolidation Failed"}
    texts = db.execute("select distinct message from ingest.events where event = 'alert'").fetchall()
    assert texts == [(f"Run {run_id} failed. Watermark NOT advanced.",)]
    assert (facts(db, run_id)["state"], watermark(db)) == ("failed", None)

    db.execute("select ingest.resume_consolidation(%s, 'fixed')", [run_id])
    consolidate(db, mark=False)
    assert "2 records" in facts(db, run_id)["reason"]
    db.execute("select ingest.resume_consolidation(%s, 'fixed')", [run_id])
    consolidate(db)

    assert facts(db, run_id)["state"] == "completed"
    assert db.execute("select count(*) from holdfast.dead_steps").fetchone() == (0,)


def test_only_the_newest_run_is_continued_and_one_is_active(db: DB) -> None:
    """P-154, C-25: a second start is refused, planning included"""
    old = run_of(db, 1)
    fail_for_good(db)
    new = start(db)
    for attempt in range(2):
        with pytest.raises(psycopg.Error) as caught:
            start(db)
        assert caught.value.sqlstate == "RN010"
        assert str(new) in str(caught.value)
        if attempt == 0:
            plan(db, 1)
    for statement in (
        "select ingest.retry_partitions(%s)",
        "select ingest.force(%s)",
        "select holdfast.retry(%s::text)",
    ):
        with pytest.raises(psycopg.Error) as caught:
            db.execute(statement, [old])
        assert caught.value.sqlstate == "RN010"


def test_a_run_of_zero_records_takes_the_same_path_without_a_fetch(db: DB) -> None:
    """C-26, P-152: and moves the watermark"""
    run_id = run_of(db, 0)
    consolidate(db)

    assert journal(db, run_id) == WHOLE
    assert watermark(db)["lastUpdatedAt"] == UNTIL


def test_the_watermark_never_moves_back(db: DB) -> None:
    """P-105, P-106, P-112, C-25: a run with an older bound keeps it"""
    for until, expected in (("2024-03-01T00:00:00Z",) * 2, ("2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z")):
        run_id = start(db)
        (step,) = claim(db, "plan")
        now = watermark(db)
        document = {"run_type": "full", "until": until, "watermark": now and now["lastUpdatedAt"], "partitions": []}
        with db.transaction():
            db.execute(
                "select ingest.create_run(%s, %s, %s)",
                [step.step_id, step.lease_id, psycopg.types.json.Jsonb(document)],
            )
            settle(db, step, Done(None))
        consolidate(db)
        assert (facts(db, run_id)["state"], watermark(db)["lastUpdatedAt"]) == ("completed", expected)


def test_a_page_of_a_lost_lease_writes_nothing(db: DB, clock: Clock) -> None:
    """P-63 to P-65, P-79 to P-83, P-155, C-19: another worker continues where the last page ended"""
    clock.freeze()
    run_of(db, 1)
    (first,) = claim(db, "page")
    page(db, first, ["a"], offset=1)
    (lost,) = claim(db, "page", worker="dead")
    clock.advance(seconds(301))
    db.execute("select holdfast.rescue_steps()")
    clock.advance(seconds(30))
    (again,) = claim(db, "page", worker="w2")

    assert again.cursor == {"offset": 1, "read": 1, "round": 0}
    with pytest.raises(psycopg.Error) as caught:
        put(db, lost, ["z"])
    assert caught.value.sqlstate == "RN002"
    assert settle(db, lost, Continue({"offset": 2}, lost.cursor)) == []
    page(db, again, ["b"])
    consolidate(db)
    keys = db.execute("select key from ingest.raw_diamonds_nivoda order by key").fetchall()
    assert keys == [("a",), ("b",)]


def test_an_unchanged_record_is_not_rewritten_and_an_orphan_is_taken_over(db: DB) -> None:
    """P-67, P-108, C-81: same page twice, no duplicates; seen by the run that saw it last"""
    first = run_of(db, 1)
    (step,) = claim(db, "page")
    with db.transaction():
        assert put(db, step, ["a", "b"]) == 2
        assert put(db, step, ["a", "b"]) == 0
        settle(db, step, Done({"records": 2}))
    before = db.execute("select xmin from ingest.payloads order by key").fetchall()
    fail_for_good(db, "consolidate")
    second = run_of(db, 1)
    (step,) = claim(db, "page")
    page(db, step, ["a", "b"])
    assert db.execute("select xmin from ingest.payloads order by key").fetchall() == before
    owners = "select distinct run_id, seen_run_id, consolidated from ingest.raw_diamonds_nivoda"
    assert db.execute(owners).fetchall() == [(second, second, False)]
    consolidate(db)
    third = run_of(db, 1)
    (step,) = claim(db, "page")
    page(db, step, ["a", "b"])
    assert db.execute(owners).fetchall() == [(second, third, True)]
    consolidate(db)
    assert facts(db, first)["state"] == "failed"


def test_a_busy_source_charges_no_delivery(db: DB) -> None:
    """P-143: a snooze keeps the budget, a continued page begins a new one"""
    from holdfast.models import Snooze

    run_of(db, 1)
    for _ in range(5):
        (step,) = claim(db, "page")
        settle(db, step, Snooze(seconds(0)))
    (step,) = claim(db, "page")
    settle(db, step, Retry("502", seconds(0)))
    (step,) = claim(db, "page")
    page(db, step, ["a"], offset=1)
    failures = db.execute("select failures, state from holdfast.steps where machine = 'ingest.partition'").fetchone()
    assert failures == (0, "fetching_pages")


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("run_type", "'x'"),
        ("expected_workers", "null"),
        ("completed_workers", "-1"),
        ("completed_workers", "5"),
        ("completed_at", "now()"),
        ("watermark_after", "now()"),
        ("state", "'completed'"),
        ("state", "'consolidating'"),
        ("state", "'consolidation_skipped'"),
        ("state", "'x'"),
    ],
)
def test_the_rows_of_runs_are_constrained(db: DB, column: str, value: str) -> None:
    """P-46 to P-60"""
    run_of(db, 2)
    with pytest.raises(psycopg.errors.IntegrityError):
        db.execute(f"update ingest.run_facts set {column} = {value}")


def test_the_rows_of_partitions_are_constrained(db: DB) -> None:
    """P-84 to P-88, P-92 to P-98"""
    run_id = run_of(db, 1)
    for statement in (
        "update ingest.partitions set status = 'x'",
        "update ingest.partitions set run_id = gen_random_uuid()",
        (
            "insert into ingest.partitions (run_id, partition_id, tenant, work_item_payload) "
            f"values ('{run_id}', 'partition-0', 'default', '{{}}')"
        ),
        "update ingest.partitions set next_offset = null",
        "update ingest.partitions set completed = null",
        "update ingest.partitions set partition_id = null",
    ):
        with pytest.raises(psycopg.errors.IntegrityError):
            db.execute(statement)
