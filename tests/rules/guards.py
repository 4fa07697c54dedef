"""What the guards of rules are for, as short stories, and engines that lack one: each fails its story."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import psycopg

from holdfast.testing import Clock
from kernel.retention import days, sweep
from kernel.steps import value
from properties.guards import login_for
from properties.limit_stories import overlapping
from properties.mutants import Cut, Edited, mutant
from properties.scenarios import DB
from rules.pass_guards import PASS_GUARDS
from rules.plans import applied, claim, define, fails, preview, previewed, refused, rows, run, statuses, work
from rules.time_guards import TIME_GUARDS
from rules.undo_guards import UNDO_GUARDS

Story = Callable[[DB], None]
APPLY = "select rules.apply(%s)"
BY_HAND = "update holdfast.runs set state = 'APPLIED', finished_at = holdfast.clock() where id = %s"


def a_plan_is_applied_by_its_own_hash(db: DB) -> None:
    run_id = previewed(db)
    whole = run(db, run_id)["plan_hash"]
    other = ("0" if whole[0] != "0" else "1") + whole[1:]
    assert refused(db, "select rules.apply(%s, %s)", [run_id, other]) == "RN010"


def a_plan_expires(db: DB) -> None:
    run_id = previewed(db, expires_in=timedelta(hours=1))
    Clock(db).advance(timedelta(hours=2))
    assert refused(db, APPLY, [run_id]) == "RN010"


def a_login_reaches_the_runs_of_its_tenants(db: DB) -> None:
    """R34"""
    run_id = previewed(db)
    with login_for(db, "hf_operator", "b") as other:
        assert refused(other, APPLY, [run_id]) == "RN004"
        assert refused(other, "select rules.validate_run_state(%s)", [run_id]) == "RN004"


def an_item_is_in_one_open_run(db: DB) -> None:
    define(db)
    first, second = (UUID(str(preview(db, rows(3))["run_id"])) for _ in range(2))
    applied(db, first)
    assert refused(db, APPLY, [second]) == "RN010"


def two_runs_of_an_item_do_not_open_at_once(db: DB) -> None:
    define(db)
    first, second = (UUID(str(preview(db, rows(3))["run_id"])) for _ in range(2))
    answer = overlapping(db, lambda one: applied(one, first), lambda two: refused(two, APPLY, [second]))
    assert answer == "RN010"


def an_event_is_stored_once(db: DB) -> None:
    """A-85, A-86"""
    write = "select rules.write_event('k', 'custom')"
    assert value(db, write) == value(db, write)


def a_run_is_applied_by_hand_only_with_its_targets(db: DB) -> None:
    """A-112"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    claim(db)
    assert refused(db, BY_HAND, [run_id]) == "RN001"


def a_run_closes_by_what_was_applied(db: DB) -> None:
    """C-08"""
    run_id = previewed(db, 2)
    applied(db, run_id)
    work(db, fails("SKU-1"))
    assert run(db, run_id)["status"] == "PARTIAL"


def targets_come_with_the_preview(db: DB) -> None:
    run_id = previewed(db, 1)
    with db.transaction():
        db.execute("select holdfast.stage_steps()")
        db.execute("insert into pg_temp.staged_steps (kind) values ('rules:shop')")
        assert refused(db, "select holdfast.take_staged('rules.target', %s)", [run_id]) == "RN005"


def a_rule_run_has_a_plan(db: DB) -> None:
    assert refused(db, "select holdfast.start_run('rules.run', 'r', 'rules.target')") == "RN005"


def a_run_is_queued_by_apply_alone(db: DB) -> None:
    """R35: a producer may queue runs of other machines, but not apply a preview"""
    run_id = previewed(db)
    with login_for(db, "hf_producer", "*") as producer:
        assert refused(producer, "select holdfast.queue_run(%s)", [str(run_id)]) == "RN010"


def an_operator_halts_a_run(db: DB) -> None:
    """R35, X-15: a producer would send the targets that an operator held back"""
    run_id = previewed(db)
    applied(db, run_id)
    with login_for(db, "hf_producer", "*") as producer:
        assert refused(producer, "select holdfast.pause_run(%s)", [str(run_id)]) == "42501"


def a_key_of_a_move_is_not_taken_before_it(db: DB) -> None:
    """A-85: the event that follows would have the same key"""
    run_id = previewed(db)
    assert refused(db, "select rules.write_event(%s, 'custom')", [f"{run_id}:queued:999999"]) == "RN005"


def no_try_is_used_up_by_hand(db: DB) -> None:
    """A-114"""
    run_id = previewed(db)
    applied(db, run_id)
    assert refused(db, "update holdfast.steps set failures = 99 where state = 'QUEUED'") == "RN001"


def a_preview_is_kept_until_a_week_after_it_expired(db: DB) -> None:
    clock = Clock(db)
    previewed(db)
    clock.advance(days(7))
    sweep(db)
    assert value(db, "select count(*) from rules.run_facts") == 1


def the_ledger_is_kept_for_two_years(db: DB) -> None:
    run_id = previewed(db)
    applied(db, run_id)
    work(db)
    assert refused(db, "delete from rules.ledger") == "RN008"


def retention_leaves_what_has_begun(db: DB) -> None:
    """A face that names a run which was queued meanwhile."""
    run_id = previewed(db, 1)
    applied(db, run_id)
    work(db, fails("SKU-1"))
    db.execute("create or replace function rules.unwanted_runs(most int) returns uuid[] language sql "
               "begin atomic select array(select f.run_id from rules.run_facts f); end")  # fmt: skip
    try:
        sweep(db)
    finally:
        db.execute(Cut("rules.unwanted_runs", "age").text())  # type: ignore[arg-type]
    assert statuses(db, run_id) == ["FAILED"]


# fmt: off
def who_lost_its_lease_stops_no_run(db: DB) -> None:
    """R3: the channel refused a worker that is no longer the one at work."""
    run_id = previewed(db)
    applied(db, run_id)
    held = claim(db)
    given = [[step.step_id for step in held], [step.lease_id + 1000 for step in held]]
    assert db.execute("select rules.stop_failing(%s, %s, 'no')", given).fetchall() == []
    assert run(db, run_id)["status"] == "APPLYING"


GUARDS = [
    mutant("a stop without the lease", who_lost_its_lease_stops_no_run, Cut("rules.stop_failing", "lease")),
    mutant("any hash", a_plan_is_applied_by_its_own_hash, Cut("rules.check_plan_hash", "hash", "if false then")),
    mutant("a plan without end", a_plan_expires, Cut("rules.apply", "expiry", "if false then")),
    mutant("runs of any tenant", a_login_reaches_the_runs_of_its_tenants,
           Cut("rules.facts_to_change", "tenant", ";")),
    mutant("no overlap check", an_item_is_in_one_open_run,
           Cut("rules.refuse_shared", "overlap", "select null::uuid as run_id, 0 as items into other where false;")),
    mutant("overlap without a lock", two_runs_of_an_item_do_not_open_at_once, Cut("rules.lock_channel", "lock", ";")),
    mutant("events stored again", an_event_is_stored_once, Cut("rules.write_event", "once"),
           caught_by=psycopg.errors.UniqueViolation),
    mutant("applied by hand", a_run_is_applied_by_hand_only_with_its_targets,
           Cut("rules.refuse_unapplied", "all-applied", "if false then")),
    mutant("wrong closing", a_run_closes_by_what_was_applied,
           Cut("closing_event", "all", "when run.succeeded > 0 then 'all_succeeded'")),
    mutant("targets that nobody planned", targets_come_with_the_preview,
           Cut("rules.check_new_targets", "planned", ") then")),
    mutant("a run without a plan", a_rule_run_has_a_plan, Cut("rules.record_runs", "plan", "if false then")),
    mutant("a run queued without apply", a_run_is_queued_by_apply_alone,
           Cut("rules.record_runs", "applied", "if false then")),
    mutant("runs that producers pause", an_operator_halts_a_run, Cut("run_to_halt", "role", "true")),
    mutant("keys of moves that come later", a_key_of_a_move_is_not_taken_before_it,
           Cut("rules.derived_event", "reserved", "if false then")),
    mutant("tries used up by hand", no_try_is_used_up_by_hand, Cut("check_budget_by_hand", "budget", "if false then")),
    mutant("previews that go early", a_preview_is_kept_until_a_week_after_it_expired,
           Cut("rules.unwanted_runs", "age")),
    mutant("price changes that go early", the_ledger_is_kept_for_two_years,
           Cut("rules.refuse_change", "age", "if true then")),
    *UNDO_GUARDS, *PASS_GUARDS, *TIME_GUARDS,
    mutant("runs removed that have begun", retention_leaves_what_has_begun,
           Cut("prune_unwanted", "unbegun", "where r.id = any (ids)")),
]
# fmt: on
STORIES: list[Story] = list(dict.fromkeys(each.story for each in GUARDS))
__all__ = ["GUARDS", "STORIES", "Edited"]
