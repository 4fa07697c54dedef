"""Engines that lack a guard of large runs, and the story that each of them fails (see mutants.py)."""

from __future__ import annotations

import psycopg

from holdfast import errors
from properties import window_stories as w
from properties.mutants import Cut, mutant

# fmt: off
WINDOW = [
    mutant("a window that stops admitting", w.two_runs_go_on_in_turn, Cut("claim_steps", "window", "rest := 0;")),
    mutant("a lot that waits for half of the window", w.a_lot_is_due_while_the_last_is_in_work,
           Cut("runs_to_fill", "ahead", "and r.live <= r.window_size / 2")),
    mutant("a run closed before its last lot", w.a_run_is_open_until_its_last_lot, Cut("tally_runs", "last-lot")),
    mutant("a run that never has its last lot", w.a_window_admits_all_in_turn,
           Cut("count_lot", "last", "to_admit = case when r.to_admit = 0 then 0")),
    mutant("a draft that is closed", w.a_draft_is_not_closed, Cut("tally_runs", "queued", "),")),
    mutant("a retry that makes a paused run's step due", w.nothing_of_a_paused_run_becomes_due,
           Cut("tally_runs", "halt", "null::uuid[]")),
    mutant("a retry that makes a stopped run's step due", w.a_stopped_run_keeps_what_was_not_tried,
           Cut("tally_runs", "halt", "null::uuid[]")),
    mutant("a claim of a paused run's step", w.nothing_of_a_paused_run_becomes_due,
           Cut("prepare_runs", "halted", "null::uuid[],")),
    mutant("a stopped run's step cancelled", w.a_claim_does_not_cancel_what_was_stopped,
           Cut("prepare_runs", "halted", "array_agg(r.id) filter (where r.halt = 'paused'),"),
           Cut("prepare_runs", "over",
               "select coalesce(array_agg(r.id) filter (where r.finished_at is not null), '{}'),")),
    mutant("a lot that splits a key", w.a_lot_ends_between_two_keys, Cut("pick_lot", "key", "fresh := '{}';")),
    mutant("a claimed lot that is not counted", w.a_window_goes_on_when_all_of_it_is_held,
           Cut("count_lot", "leased", "set live = r.live + cardinality(count_lot.fresh),"),
           caught_by=psycopg.errors.CheckViolation),
    mutant("a claimed lot with half of its journal", w.a_lot_is_claimed_at_once,
           Cut("journal_step_moves", "both", "if false then")),
    mutant("a claimed lot that its limits do not count", w.a_lot_under_a_limit_is_claimed_at_once,
           Cut("lease_unadmitted", "holds")),
    mutant("a claimed lot without its tokens", w.a_lot_is_charged_to_its_bucket, Cut("claim_lot", "charged")),
    mutant("a claimed lot whose limits are not looked at last", w.a_lot_of_a_limit_that_was_paused_meanwhile_waits,
           Cut("claim_lot", "charged")),
    mutant("a claimed lot that is charged by steps", w.a_lot_is_charged_by_the_weight_of_its_calls,
           Cut("claim_lot", "weights", "true")),
    mutant("a claimed lot that waits for limits while it holds some", w.a_claim_with_limits_waits_for_no_more,
           Cut("claim_lot", "waits"), caught_by=psycopg.errors.LockNotAvailable),
    mutant("a claimed lot of one key of several", w.keys_of_a_lot_are_claimed_by_due_time,
           Cut("claim_lot", "keys", "if count = 0 or false and not exists (")),
    mutant("a lot of another tenant", w.a_lot_of_another_tenant_is_not_claimed, Cut("claim_lot", "tenant")),
    mutant("a lot from a paused queue", w.a_paused_queue_claims_no_lot,
           Cut("claim_steps", "paused", "if not is_full and not is_limited then")),
    mutant("a lot that takes a step that waits", w.a_step_that_waits_is_not_claimed_with_a_lot,
           Cut("lease_unadmitted", "unadmitted")),
    mutant("a lot whose first move is not checked", w.a_lot_may_not_make_a_move_that_is_not_listed,
           Cut("journal_step_moves", "passed", "case when true")),
    mutant("a claimed lot that cuts a call", w.a_claimed_lot_has_whole_calls, Cut("claim_lot", "whole", "null;")),
    mutant("a claimed lot that splits a key", w.a_claimed_lot_ends_between_two_keys, Cut("claim_lot", "key", "null;")),
    mutant("chunks that begin anew after a kill", w.chunks_go_on_where_they_were,
           Cut("move_run_steps", "resumes", "where n.run_id = run.id")),
    mutant("two that move one run", w.one_worker_at_a_time_moves_a_run, Cut("move_next_chunk", "one-mover")),
    mutant("a choice of steps that succeeded", w.a_retry_takes_only_what_was_chosen,
           Cut("readmit", "admissible", "where false"), caught_by=errors.IllegalTransition),
    mutant("a retry into a held state that forgets the start", w.a_retry_admits_what_failed,
           Cut("move_runs", "started", "when m.event = 'reopened' then null")),
    mutant("a start before it was queued", w.a_clock_that_steps_back_fails_no_settle,
           Cut("prepare_runs", "clock", "started_at = prepare_runs.clock"),
           caught_by=psycopg.errors.CheckViolation),
    mutant("an end before the start", w.a_clock_that_steps_back_fails_no_settle,
           Cut("move_runs", "clock", "then move_runs.clock end,"), caught_by=psycopg.errors.CheckViolation),
    mutant("runs paused for any tenant", w.a_run_belongs_to_its_tenant, Cut("run_to_change", "tenant", ";")),
    mutant("choices that outlive their run", w.the_choices_of_a_run_go_with_it, Cut("prune_runs", "choices")),
]
# fmt: on
