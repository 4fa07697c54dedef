"""What the guards of ingest are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from holdfast.models import ClaimedStep, Done
from ingest.races import (
    a_record_that_comes_back_while_it_is_aged_stays,
    batches_that_fail_together_alert_once,
    partitions_that_end_together_decide_once,
)
from ingest.runs import (
    DB,
    UNTIL,
    claim,
    consolidate,
    define,
    facts,
    fail_for_good,
    page,
    put,
    run_of,
    settle,
    start,
    watermark,
)
from properties.mutants import Cut, Edited, mutant

Story = Callable[[DB], None]


def refused(db: DB, statement: str, *arguments: Any) -> str | None:
    """Give the SQLSTATE that a statement is refused with, and None if it is not."""
    try:
        with db.transaction():
            db.execute(statement, arguments)
    except psycopg.Error as error:
        return error.sqlstate
    return None


def one_page(db: DB, *keys: str | None, run_type: str = "full", rejected: str | None = None) -> tuple[Any, ClaimedStep]:
    """A run with one partition, whose page is stored, and one of whose records may be rejected."""
    run_id = run_of(db, 1, run_type=run_type)
    (step,) = claim(db, "page")
    with db.transaction():
        put(db, step, keys)
        if rejected is not None:
            record = "select ingest.quarantine_records(%s, %s, 'fetch', %s, '{x}', '{x}')"
            db.execute(record, [step.step_id, step.lease_id, [rejected]])
        settle(db, step, Done({"records": len(keys)}))
    return run_id, step


def a_feed_has_one_active_run(db: DB) -> None:
    """P-154, C-25"""
    run_of(db, 1)
    assert refused(db, "select ingest.start('nivoda')") == "RN010"


def a_plan_is_made_with_the_watermark_that_it_was_counted_for(db: DB) -> None:
    run_id = start(db)
    (step,) = claim(db, "plan")
    db.execute("insert into ingest.feed_watermarks values ('nivoda', 'default', '2020-01-01', null, null, now())")
    plan = Jsonb({"run_type": "full", "until": UNTIL, "watermark": None, "partitions": []})
    assert refused(db, "select ingest.create_run(%s, %s, %s)", step.step_id, step.lease_id, plan) == "RN010", run_id


def only_the_holder_of_a_lease_stores_pages(db: DB) -> None:
    """P-63 to P-65, P-82, C-19"""
    run_of(db, 1)
    (step,) = claim(db, "page")
    page = "select ingest.put_page(%s, %s, '{a}', %s::jsonb[])"
    assert refused(db, page, step.step_id, step.lease_id + 1000, [Jsonb({})]) == "RN002"


def only_the_holder_of_a_lease_quarantines(db: DB) -> None:
    run_of(db, 1)
    (step,) = claim(db, "page")
    record = "select ingest.quarantine_records(%s, %s, 'fetch', '{a}', '{a}', '{a}')"
    assert refused(db, record, step.step_id, step.lease_id + 1000) == "RN002"


def only_the_holder_of_a_lease_consolidates(db: DB) -> None:
    run_of(db, 1)
    (step,) = claim(db, "page")
    page(db, step, ["a"])
    (last,) = claim(db, "consolidate")
    assert refused(db, "select ingest.check_consolidated(%s, %s)", last.step_id, last.lease_id + 1000) == "RN002"


def an_orphan_is_consolidated_by_the_run_that_sees_it_again(db: DB) -> None:
    """P-108, C-81"""
    one_page(db, "a")
    fail_for_good(db, "consolidate")
    one_page(db, "a")
    assert db.execute("select consolidated from ingest.raw_nivoda").fetchall() == [(False,)]


def an_unchanged_record_counts_as_seen(db: DB) -> None:
    """P-40, C-23"""
    for _ in range(2):
        run_id, _ = one_page(db, "a")
        consolidate(db)
        assert facts(db, run_id)["state"] == "completed"


def the_watermark_of_a_run_is_not_before_the_last_one(db: DB) -> None:
    """P-112, C-25"""
    one_page(db, "a")
    consolidate(db)
    db.execute("update ingest.feed_watermarks set last_updated_at = '2025-01-01Z'")
    run_id, _ = one_page(db, "a")
    consolidate(db)
    assert facts(db, run_id)["watermark_after"].year == 2025
    assert watermark(db)["lastUpdatedAt"] == "2025-01-01T00:00:00Z"


def only_the_newest_run_is_continued(db: DB) -> None:
    """P-18, C-25"""
    old = run_of(db, 1)
    fail_for_good(db)
    run_of(db, 1)
    fail_for_good(db)
    assert refused(db, "select ingest.retry_partitions(%s)", old) == "RN010"


def a_run_does_not_complete_while_a_record_is_left(db: DB) -> None:
    """P-29, C-24"""
    run_id, _ = one_page(db, "a")
    consolidate(db, mark=False)
    assert facts(db, run_id)["state"] == "failed"


def a_rejected_record_fails_the_run(db: DB) -> None:
    """C-80"""
    run_id, _ = one_page(db, "a", None)
    consolidate(db)
    assert facts(db, run_id)["state"] == "failed"


def an_incremental_run_deletes_nothing(db: DB) -> None:
    """C-23"""
    one_page(db, "a", "b", "c")
    consolidate(db)
    one_page(db, "a", "b", run_type="incremental")
    (step,) = claim(db, "consolidate")
    gone = db.execute("select ingest.delete_absent(%s, %s)", [step.step_id, step.lease_id]).fetchall()
    assert gone == []


def a_full_run_does_not_delete_most_records(db: DB) -> None:
    """C-23"""
    one_page(db, "a", "b", "c")
    consolidate(db)
    one_page(db, "a")
    (step,) = claim(db, "consolidate")
    assert refused(db, "select ingest.delete_absent(%s, %s)", step.step_id, step.lease_id) == "RN010"


def a_quarantined_record_is_not_deleted_as_absent(db: DB) -> None:
    """P-40, C-23, C-80"""
    define(db, max_rejects=1)
    one_page(db, "a", "b", "c")
    consolidate(db)
    _, step = one_page(db, "a", "b", rejected="c")
    (last,) = claim(db, "consolidate")
    gone = db.execute("select ingest.delete_absent(%s, %s)", [last.step_id, last.lease_id]).fetchall()
    assert gone == [], step


def the_watermark_is_the_bound_of_the_run(db: DB) -> None:
    """P-110, C-21: what changed at the source during the run is newer than the bound"""
    one_page(db, "a")
    consolidate(db)
    assert watermark(db)["lastUpdatedAt"] == UNTIL


def events_stay_while_their_run_is_active(db: DB) -> None:
    """X-07"""
    run_of(db, 1)
    claim(db, "page")
    assert refused(db, "delete from ingest.event_log") == "RN008"


def an_offset_moves_by_compare_and_swap_while_nobody_holds_it(db: DB) -> None:
    """P-82, P-99"""
    run_id = run_of(db, 1)
    moved = "select ingest.move_offset(%s, 'partition-0', %s, %s)"
    assert db.execute(moved, [run_id, 7, 30]).fetchone() == (False,)
    assert refused(db, "update ingest.partition_progress set completed = true, next_offset = 30") == "RN005"
    claim(db, "page")
    assert refused(db, moved, run_id, 0, 30) == "RN010"


def a_feed_has_the_name_of_an_identifier(db: DB) -> None:
    for name in ("Nivoda", "a b", "x" * 42, ""):
        assert refused(db, "select ingest.define_feed(%s)", name) == "RN005"


def only_a_run_that_is_consolidating_is_consolidated(db: DB) -> None:
    """P-21: no data change for a run that is over"""
    one_page(db, "a")
    (step,) = claim(db, "consolidate")
    state = "update ingest.run_facts set state = '{}'"
    db.execute(state.format("failed"))
    assert refused(db, "select ingest.begin_consolidation(%s, %s)", step.step_id, step.lease_id) == "RN010"
    assert db.execute("select count(*) from holdfast.steps where kind = 'ingest:nivoda:batch'").fetchone() == (0,)
    db.execute(state.format("consolidating"))


def a_transaction_fails_with_a_lost_lease_or_a_result_that_is_too_large(db: DB) -> None:
    """P-83, C-19: what it wrote is not committed"""
    run_of(db, 1)
    (step,) = claim(db, "page")
    whole = "select * from holdfast.settle_whole(%s, %s, %s::jsonb[], '[]', true)"
    assert refused(db, whole, [step.step_id], [step.lease_id + 1000], ["null"]) == "RN002"
    assert refused(db, whole, [step.step_id], [step.lease_id], [Jsonb("x" * 1_100_000)]) == "RN011"
    page(db, step, ["a"])


def a_worker_publishes_only_what_it_caused(db: DB) -> None:
    """P-75, P-76"""
    run_id = run_of(db, 2)
    for step, worker in zip(claim(db, "page", 1) + claim(db, "page", 1, "w2"), ("w1", "w2"), strict=True):
        page(db, step, [worker])
    caused = "select event, partition_id from ingest.events_by(%s, '{}', array[%s]) where event <> 'run.created'"
    assert db.execute(caused, ["w1", run_id]).fetchall() == [
        ("run.workers_running", None), ("WORK_DONE", "partition-0")]  # fmt: skip
    assert db.execute(caused, ["w2", run_id]).fetchall() == [
        ("WORK_DONE", "partition-1"), ("run.consolidation_triggered", None)]  # fmt: skip


def what_a_worker_has_published_is_not_read_again(db: DB) -> None:
    """P-75, P-76: else each partition of a run would read the events of all before it"""
    run_id = run_of(db, 2)
    caused = "select id, event from ingest.events_by('w1', %s, known => %s) where event <> 'run.created'"
    known: dict[str, int] = {}
    read = []
    for step in claim(db, "page", 2):
        page(db, step, [str(step.step_id)])
        rows = db.execute(caused, [[step.step_id], Jsonb(known)]).fetchall()
        known[str(run_id)] = rows[-1][0]
        read.append([event for _, event in rows])
    assert read == [["run.workers_running", "WORK_DONE"], ["WORK_DONE", "run.consolidation_triggered"]]


# fmt: off
GUARDS = [
    mutant("a second active run", a_feed_has_one_active_run, Cut("ingest.refuse_if_active", "active", "if false then")),
    mutant("a plan for another watermark", a_plan_is_made_with_the_watermark_that_it_was_counted_for,
           Cut("ingest.create_run", "watermark", "select (create_run.plan ->> 'watermark')::timestamptz) then")),
    mutant("a page under any lease", only_the_holder_of_a_lease_stores_pages, Cut("ingest.held_step", "lease")),
    mutant("a quarantine under any lease", only_the_holder_of_a_lease_quarantines, Cut("ingest.held_step", "lease")),
    mutant("a consolidation under any lease", only_the_holder_of_a_lease_consolidates,
           Cut("ingest.held_step", "lease")),
    mutant("an orphan skipped as unchanged", an_orphan_is_consolidated_by_the_run_that_sees_it_again,
           Cut("ingest.put_page", "orphan", "consolidated = excluded.consolidated,")),
    mutant("seen skipped as unchanged", an_unchanged_record_counts_as_seen, Cut("ingest.put_page", "seen"),
           caught_by=psycopg.Error),
    mutant("a watermark that moves back", the_watermark_of_a_run_is_not_before_the_last_one,
           Cut("ingest.record_run_moves", "watermark", "r.updated_to")),
    mutant("an old run continued", only_the_newest_run_is_continued,
           Cut("ingest.check_again", "newest", "if false then")),
    mutant("completed with a record left", a_run_does_not_complete_while_a_record_is_left,
           Cut("ingest.check_consolidated", "left", "where false")),
    mutant("completed with rejects", a_rejected_record_fails_the_run,
           Cut("ingest.check_consolidated", "rejects", "when false then")),
    mutant("a delete in an incremental run", an_incremental_run_deletes_nothing,
           Cut("ingest.delete_absent", "whole", "if false then")),
    mutant("no delete guard", a_full_run_does_not_delete_most_records,
           Cut("ingest.delete_absent", "ratio", "if false then")),
    mutant("a quarantined record deleted", a_quarantined_record_is_not_deleted_as_absent,
           Cut("ingest.delete_absent", "quarantined", "where false);")),
    mutant("a watermark from the clock at the end", the_watermark_is_the_bound_of_the_run,
           Cut("ingest.record_run_moves", "watermark", "clock")),
    mutant("a decision outside the lock", partitions_that_end_together_decide_once,
           Cut("ingest.count_workers", "lock"),
           Cut("ingest.count_workers", "counted", "set completed_workers = (select x.completed_workers "
               "from ingest.run_facts x where x.run_id = count_workers.run_id)")),
    mutant("records counted before the lock", partitions_that_end_together_decide_once,
           Cut("ingest.count_workers", "lock")),
    mutant("an alert per batch", batches_that_fail_together_alert_once,
           Cut("ingest.record_consolidation_moves", "lock", "order by r.run_id;")),
    mutant("a record aged that came back", a_record_that_comes_back_while_it_is_aged_stays,
           Cut("ingest.age_rows", "aged")),
    mutant("events that can be removed", events_stay_while_their_run_is_active,
           Cut("ingest.refuse_change", "over", ") then")),
    mutant("no compare-and-swap", an_offset_moves_by_compare_and_swap_while_nobody_holds_it,
           Cut("ingest.move_offset", "compare-and-swap")),
    mutant("an offset moved under a worker", an_offset_moves_by_compare_and_swap_while_nobody_holds_it,
           Cut("ingest.move_offset", "held", "if false then")),
    mutant("any update of the view", an_offset_moves_by_compare_and_swap_while_nobody_holds_it,
           Cut("ingest.take_offset", "statement", "to_jsonb(new) - '{next_offset,updated_at}'::text[]) then")),
    mutant("a commit without the lease", a_transaction_fails_with_a_lost_lease_or_a_result_that_is_too_large,
           Cut("settle_whole", "leases", "if false then")),
    mutant("a commit without the result", a_transaction_fails_with_a_lost_lease_or_a_result_that_is_too_large,
           Cut("settle_whole", "progress", "if false then")),
    mutant("a consolidation of a run that is over", only_a_run_that_is_consolidating_is_consolidated,
           Cut("ingest.held_consolidation", "valid", "if false then")),
    mutant("events of other workers", a_worker_publishes_only_what_it_caused, Cut("ingest.events_by", "own")),
    mutant("events that are published already", what_a_worker_has_published_is_not_read_again,
           Cut("ingest.events_by", "known")),
    mutant("any name of a feed", a_feed_has_the_name_of_an_identifier,
           Cut("ingest.define_feed", "identifier", "if false then")),
]
# fmt: on
STORIES: list[Story] = list(dict.fromkeys(each.story for each in GUARDS))
__all__ = ["GUARDS", "STORIES", "Edited"]
