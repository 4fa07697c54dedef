"""Engines that lack a guard, and the story that each of them fails.

A guard is a line of SQL that is marked: `and s.lease_id = o.lease_id  -- guard: lease`. A mutant has something else in
its place, or nothing. tests/properties/test_marks.py sees to it that each mark has a mutant.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import psycopg

from properties import batch_stories as batches
from properties import guards as g
from properties import limit_stories as limits
from properties import retention_stories as kept
from properties import scenarios as s
from properties import schedule_stories as schedules
from properties.scenarios import DB

Story = Callable[[DB], None]
SQL = Path(str(files("holdfast"))) / "sql"
MARK = re.compile(r"^.*\S  -- guard: ([a-z_-]+)(?:;.*)?$", re.MULTILINE)


class Cut(NamedTuple):
    """A guard to be taken out of a function, by its mark, and what stands in its place.

    A function of another schema than holdfast is named with its schema.
    """

    function: str
    mark: str
    instead: str = ""

    def text(self) -> str:
        """Read the function as it is installed."""
        schema, _, name = self.function.rpartition(".")
        folder = SQL / schema / "functions" if schema else SQL / "kernel" / "functions"
        (file,) = folder.rglob(f"{name}.sql")
        return file.read_text("utf-8")

    def made_in(self, text: str) -> str:
        """Take the guard out; a mark that is not there, or twice, is an error of its own."""
        lines = [match for match in MARK.finditer(text) if match[1] == self.mark]
        assert len(lines) == 1, f"{self.function} has {len(lines)} guards: {self.mark}"
        return text[: lines[0].start()] + self.instead + text[lines[0].end() :]


class Edited(NamedTuple):
    """Functions without some guards."""

    name: str
    story: Story
    cuts: tuple[Cut, ...]
    caught_by: type[Exception] = AssertionError  # or the guard behind it

    @contextmanager
    def installed(self, db: DB) -> Iterator[None]:
        whole = {cut.function: cut.text() for cut in self.cuts}
        edited = dict(whole)
        for cut in self.cuts:
            edited[cut.function] = cut.made_in(edited[cut.function])
        for text in edited.values():
            db.execute(text)  # type: ignore[arg-type]
        try:
            yield
        finally:
            for text in whole.values():
                db.execute(text)  # type: ignore[arg-type]


class Maimed(NamedTuple):
    """A schema that lacks something. `{month}` is this month, as partitions are named."""

    name: str
    story: Story
    statement: str


LEASE_RENEWED, OWNER_RENEWED = Cut("renew_leases", "lease"), Cut("renew_leases", "owner")
NOT_FOUND = (  # what is not found passes
    ("move", "coalesce(m.to_state = n.state, true)"),
    ("actor", "and coalesce(announced = any (m.actors), true)"),
)
CHILDREN_LATER = ", clock); perform holdfast.tally_runs(holdfast.admit_children(ids, clock), clock);"
NO_PARENTS = "due_at = case when true"


def mutant(name: str, story: Story, *cuts: Cut, caught_by: type[Exception] = AssertionError) -> Edited:
    return Edited(name, story, cuts, caught_by)


# fmt: off
EDITED = [
    mutant("done without the lease", s.who_lost_its_lease_settles_nothing, Cut("succeed_steps", "lease")),
    mutant("settled without the lease", s.who_lost_its_lease_settles_nothing,
           Cut("settle_others", "lease"), Cut("move_steps", "lease")),
    mutant("renewed without the lease", s.who_lost_its_lease_renews_nothing, LEASE_RENEWED, OWNER_RENEWED),
    mutant("renewed by the owner's name alone", s.who_lost_its_lease_renews_nothing, LEASE_RENEWED),
    mutant("renewed by the number alone", s.who_lost_its_lease_renews_nothing, OWNER_RENEWED),
    mutant("time left without the lease", s.who_lost_its_lease_has_no_time_left,
           Cut("leases_left", "lease", "where true")),
    mutant("time left of a lease that runs out", s.a_lease_that_runs_out_soon_does_not_last,
           Cut("leases_left", "until")),
    mutant("noted without the lease", s.who_lost_its_lease_writes_no_note, Cut("note", "lease")),
    mutant("half a lease", g.a_state_goes_with_its_columns, Cut("broken_rule", "whole", "then null")),
    mutant("due while held", g.a_due_step_is_free, Cut("broken_rule", "due-free", "then null")),
    mutant("parked while held or over", g.a_parked_step_is_free, Cut("broken_rule", "parked-free", "then null")),
    mutant("rows that are changed unchecked", g.a_due_step_is_free,
           Cut("journal_step_moves", "sound", "if false then")),
    mutant("rows that are made unchecked", g.a_new_step_breaks_no_rule,
           Cut("check_new_steps", "sound", "if false then")),
    mutant("lease numbers for each step by itself", s.lease_numbers_only_grow,
           Cut("lease_steps", "lease-number", "lease_id = s.attempt + 1,")),
    mutant("rescue of leases that stand", s.a_lease_is_kept_until_it_runs_out,
           Cut("expire_leases", "lease", "where s.lease_until is not null")),
    mutant("lease from the transaction's time", s.a_lease_counts_from_the_claim_and_not_from_its_transaction,
           Cut("claim_steps", "clock", "clock constant timestamptz := now();")),
    mutant("claim that waits for locks", s.a_claim_passes_over_what_another_has,
           Cut("pick_steps", "lock", "for update"),
           caught_by=psycopg.errors.LockNotAvailable),
    mutant("claim before the due time", s.a_claim_takes_only_what_is_due,
           Cut("pick_steps", "due", "and d.due_at is not null")),
    mutant("lower priority first", s.a_claim_takes_the_higher_priority_first,
           Cut("claim_steps", "priority", "for level in 0 .. coalesce(top, 9) loop")),
    mutant("claim from a paused queue", s.a_paused_queue_gives_nothing,
           Cut("claim_steps", "pause", "select (select q.top_priority")),
    mutant("claim from a run that is over", s.a_step_of_a_cancelled_run_is_not_claimed,
           Cut("prepare_runs", "ended", "if true then")),
    mutant("retry without a budget", s.a_retry_ends_with_its_budget,
           Cut("settle_others", "budget", "false"), Cut("settle_others", "retryable")),
    mutant("backoff by all failures", s.a_retry_waits_by_the_ordinal_that_it_names,
           Cut("settle_others", "ordinal", "holdfast.backoff(coalesce(n.policy, p.policy), s.failures + 1)")),
    mutant("failures that are not counted", s.a_retry_ends_with_its_budget,
           Cut("move_steps", "failures", "s.failures")),
    mutant("rescue without a budget", s.a_step_that_kills_its_workers_ends_with_its_budget,
           Cut("expire_steps", "budget", "false"), Cut("expire_steps", "retryable")),
    mutant("retry by hand on the old budget", s.a_retry_by_hand_has_a_fresh_budget,
           Cut("move_steps", "fresh-budget", "when b.event = 'continued' then 0")),
    mutant("cursor that moves from anywhere", s.a_cursor_moves_only_from_where_it_was,
           Cut("settle_others", "cursor", "or true")),
    mutant("key for any input", s.a_key_is_for_one_input, Cut("id_of_key", "input", "if false then")),
    mutant("children freed twice", s.a_join_comes_once_after_all_its_parents,
           Cut("admit_children", "waits", "set waits = greatest(0, s.waits - 2 * c.done),")),
    mutant("children not freed", s.a_join_comes_once_after_all_its_parents,
           Cut("admit_children", "waits", "set waits = s.waits,")),
    mutant("children let in too early", s.a_join_comes_once_after_all_its_parents,
           Cut("admit_children", "parents", NO_PARENTS), caught_by=psycopg.errors.CheckViolation),
    mutant("live steps not counted", s.a_run_closes_with_its_last_step, Cut("tally_runs", "live", "live = r.live,")),
    mutant("ends not counted", s.a_run_closes_with_its_last_step,
           Cut("tally_runs", "succeeded", "succeeded = r.succeeded,")),
    mutant("run that is never closed", s.a_run_closes_with_its_last_step,
           Cut("tally_runs", "closing", "if false then")),
    mutant("run closed before its children are freed", s.a_run_closes_with_its_last_step,
           Cut("settle_batch", "children-first", CHILDREN_LATER)),
    mutant("any move by hand", g.an_illegal_move_by_hand_is_refused,
           Cut("check_by_hand", "move", "and false and not exists (select from holdfast.machine_moves m")),
    mutant("held by hand without a lease", g.a_state_goes_with_its_columns,
           Cut("check_by_hand", "lease", "and false)")),
    mutant("over by hand without an end", g.a_state_goes_with_its_columns, Cut("check_by_hand", "end")),
    mutant("step's move that is not found", g.an_announced_move_must_be_listed_for_its_actor,
           *(Cut("journal_step_moves", *cut) for cut in NOT_FOUND)),
    mutant("run's move that is not found", g.an_announced_move_must_be_listed_for_its_actor,
           *(Cut("journal_run_moves", *cut) for cut in NOT_FOUND)),
    mutant("step's move by any actor", g.an_announced_move_must_be_listed_for_its_actor,
           Cut("journal_step_moves", "actor")),
    mutant("run's move by any actor", g.an_announced_move_must_be_listed_for_its_actor,
           Cut("journal_run_moves", "actor")),
    mutant("step of a machine that is not found", g.a_row_begins_in_an_initial_state,
           Cut("check_new_steps", "initial", "select s.is_initial is not false")),
    mutant("run of a machine that is not found", g.a_row_begins_in_an_initial_state,
           Cut("journal_new_runs", "initial", "where not s.is_initial")),
    mutant("start for any tenant", g.a_login_starts_for_its_own_tenants,
           Cut("check_tenant", "tenant", "if false then")),
    mutant("claim for any tenant", g.a_login_works_for_its_own_tenants,
           Cut("claim_steps", "tenant", "serves constant text[] := claim_steps.tenants;")),
    mutant("done for any tenant", g.a_login_works_for_its_own_tenants, Cut("succeed_steps", "tenant")),
    mutant("settled for any tenant", g.a_login_works_for_its_own_tenants, Cut("settle_others", "tenant", "where true")),
    mutant("renewed for any tenant", g.a_login_works_for_its_own_tenants, Cut("renew_leases", "tenant")),
    mutant("time left for any tenant", g.a_login_works_for_its_own_tenants, Cut("leases_left", "tenant", ";")),
    mutant("noted for any tenant", g.a_login_works_for_its_own_tenants, Cut("note", "tenant")),
    mutant("wish for any tenant's step", g.a_login_wishes_for_its_own_tenants, Cut("act_on", "step-tenant")),
    mutant("wish for any tenant's run", g.a_login_wishes_for_its_own_tenants, Cut("act_on", "run-tenant")),
    mutant("a claim that splits a key", batches.a_claim_ends_between_two_keys,
           Cut("lock_calls", "whole", "else greatest(0, least(room - c.steps_before,")),
    mutant("calls of steps that another claim has", batches.a_claim_passes_what_another_has,
           Cut("lock_due", "lock", ");")),
    mutant("calls numbered with gaps", batches.no_limit_joins_keys_of_two_priorities,
           Cut("claim_steps", "calls", "select called + n.call")),
    mutant("a key that two claims take", batches.a_key_is_taken_by_one_claim,
           Cut("lock_calls", "key", "locked := firsts;")),
    mutant("a claim that takes too little beside another", batches.keys_that_others_have_leave_room_for_the_next,
           Cut("lock_calls", "others", "elsif true then")),
    mutant("a lost step settled with its call", batches.a_lost_step_is_not_settled_with_its_call,
           Cut("succeed_steps", "lease")),
    mutant("a limit that splits a key", batches.a_used_up_limit_does_not_cut_a_key, Cut("admit_steps", "call")),
    mutant("a claim that splits a key of a limit", batches.a_key_leaves_the_queue_of_a_limit_whole,
           Cut("pull_calls", "whole", "own := own[1 : room]; if false then")),
    mutant("a limit's key that two claims take", batches.a_key_of_a_limit_is_taken_by_one_claim,
           Cut("pull_calls", "key", "continue when own = '{}';")),
    mutant("late steps that share calls", batches.steps_that_ran_out_of_time_share_no_call, Cut("lock_calls", "alone")),
    mutant("late steps that wait for a call", batches.steps_that_ran_out_of_time_share_no_call,
           Cut("call_units", "alone", "s.batch_key is not null as may_share,")),
    mutant("poison that is not marked", batches.steps_of_a_lost_worker_share_no_call, Cut("expire_steps", "poison")),
    mutant("call_weight per step", batches.a_call_is_charged_once,
           Cut("limits_in_force", "call", "when true then coalesce((")),
    mutant("a call that counts as many times as it has steps", batches.a_call_that_raises_counts_once_for_a_breaker,
           Cut("judge_breakers", "once", "select 0)) filter (")),
    mutant("keys of any length", batches.a_key_that_no_index_holds_is_refused,
           Cut("batch_key_for", "batch_key", "if false then")),
    mutant("no lock on the limit", limits.two_claims_share_one_slot,
           Cut("admit_steps", "lock", "where false;")),
    mutant("limits read by the statement that locks them", limits.two_claims_share_one_probe,
           Cut("admit_steps", "lock", "where false;"),
           Cut("limit_room", "later", "for update of t) l;")),
    mutant("slots that are not counted", limits.a_limit_is_held_by_no_more_than_it_says,
           Cut("admit_steps", "slots", "if shut[no] then")),
    mutant("slots of the same claim not counted", limits.a_claim_counts_what_it_took_before,
           Cut("limit_room", "pending", ",")),
    mutant("rescue that frees nothing", limits.a_rescue_gives_the_slot_back,
           Cut("count_limits", "held", "set held = s.held + greatest(c.held, 0),")),
    mutant("who waits read by the statement that frees", limits.a_slot_that_is_freed_while_a_step_is_parked_is_used,
           Cut("count_limits", "awaited",
               "returning (select w.parked > 0 from holdfast.limit_states w where w.id = s.id) as is_awaited)")),
    mutant("tokens that are not counted", limits.a_bucket_gives_no_more_than_it_has,
           Cut("admit_steps", "tokens", "elsif false then")),
    mutant("charges before the last one", limits.a_claim_leaves_alone_what_was_charged_after_its_time,
           Cut("admit_steps", "charged")),
    mutant("no wake_at", limits.time_alone_opens_a_limit, Cut("refresh_limits", "wake", "set wake_at = s.wake_at")),
    mutant("sleepers that are not told of limits", limits.a_sleeper_is_told_when_a_limit_opens,
           Cut("mark_asleep", "wake", "select null::timestamptz));")),
    mutant("light steps before heavy ones", limits.a_light_step_waits_behind_a_heavy_one_of_its_claim,
           Cut("admit_steps", "fifo")),
    mutant("new steps before parked ones", limits.a_light_step_waits_behind_a_heavy_one_that_is_parked,
           Cut("admit_steps", "queue", "elsif false then")),
    mutant("steps behind later ones", limits.a_step_under_two_limits_is_not_behind_later_ones,
           Cut("admit_steps", "order")),
    mutant("steps fetched ahead where a limit binds", limits.a_tight_limit_gives_no_more_than_free_handlers,
           Cut("admit_steps", "free", "if false then")),
    mutant("two probes", limits.an_open_breaker_admits_one_probe, Cut("admit_steps", "probe")),
    mutant("claims that no rule waits for", limits.a_new_rule_counts_a_claim_under_way, Cut("claim_steps", "rules")),
    mutant("rules that wait for no claim", limits.a_new_rule_counts_a_claim_under_way, Cut("change_rule", "rules")),
    mutant("no refund", limits.tokens_of_what_was_not_tried_come_back,
           Cut("settle_others", "refund", "where false), settle_others.clock);")),
    mutant("pauses that are shortened", limits.a_pause_is_not_shortened, Cut("pause_for_outcomes", "longer")),
    mutant("charges beyond the bucket", limits.a_charge_takes_no_more_than_the_bucket_has,
           Cut("charge_limit", "tokens", "if false then")),
    mutant("charges without a lock", limits.two_charges_share_one_token, Cut("charge_limit", "lock", ");")),
    mutant("charges without the lease", limits.who_lost_its_lease_charges_nothing, Cut("charge_limit", "lease")),
    mutant("charges for any tenant", limits.a_login_charges_and_limits_for_its_own_tenants,
           Cut("charge_limit", "tenant")),
    mutant("apps that undo what a person set", limits.what_a_person_set_outlasts_a_worker_that_connects,
           Cut("define_limit", "person")),
    mutant("rules for any tenant", limits.a_login_charges_and_limits_for_its_own_tenants,
           Cut("limit_tenants", "tenant", "null;")),
    mutant("tasks pruned before their time", kept.a_task_is_kept_for_its_time,
           Cut("expired_steps", "age", "where true")),
    mutant("runs pruned before their time", kept.a_run_is_kept_for_its_time, Cut("expired_runs", "age", "where true")),
    mutant("a task pruned that is not over", kept.what_is_reopened_meanwhile_stays, Cut("prune_steps", "over")),
    mutant("a run pruned that is not over", kept.a_run_whose_steps_move_stays,
           Cut("expired_runs", "over"), Cut("lock_whole_runs", "over")),
    mutant("a run pruned while another undoes it", kept.a_run_stays_while_another_undoes_it,
           Cut("expired_runs", "undoing"), Cut("lock_whole_runs", "undoing")),
    mutant("half a run pruned", kept.a_run_goes_whole, Cut("delete_steps_of_runs", "steps")),
    mutant("a run pruned without its edges", kept.a_run_goes_whole, Cut("delete_run_steps", "edges")),
    mutant("a run pruned without the keys of its notes", kept.a_run_goes_whole, Cut("delete_run_steps", "notes")),
    mutant("two sweeps at once", kept.one_session_sweeps,
           Cut("sweep_chunk", "one", "select w.* into sweep from holdfast.retention_sweep w for update;"),
           caught_by=psycopg.errors.LockNotAvailable),
    mutant("keys pruned before their time", kept.a_key_is_kept_for_its_time,
           Cut("prune_rest", "expiry", "where o.expires_at is not null")),
    mutant("keys that start twice", kept.a_key_starts_once_within_its_time, Cut("take_key", "expired", "where true;")),
    mutant("a month dropped without its lock timeout", kept.a_drop_waits_for_a_moment_only,
           Cut("drop_month", "patience")),
    mutant("a month dropped after a claim", kept.a_drop_has_a_transaction_of_its_own,
           Cut("drop_month", "alone", "if false then")),
    mutant("pruned steps of any tenant", kept.what_was_pruned_is_known_to_its_own_tenants,
           Cut("pruned", "step-tenant")),
    mutant("pruned runs of any tenant", kept.what_was_pruned_is_known_to_its_own_tenants, Cut("pruned", "run-tenant")),
    mutant("steps of pruned runs of any tenant", kept.what_was_pruned_is_known_to_its_own_tenants,
           Cut("pruned_steps", "tenant", ";")),
    mutant("ticks pruned that are needed", kept.a_tick_that_started_something_is_known_to_the_next,
           Cut("prune_ticks", "needed")),
    mutant("a tick that is fired again", schedules.a_tick_that_was_fired_is_not_fired_again,
           Cut("fire_tick", "tick", "where false) then"), caught_by=psycopg.errors.UniqueViolation),
    mutant("a tick without its row", schedules.a_tick_has_its_row, Cut("fire_tick", "row")),
    mutant("the next tick computed from now", schedules.the_next_tick_follows_the_last_one,
           Cut("plan_by_interval", "after", "after constant timestamptz := plan_by_interval.clock;")),
    mutant("ticks after the end", schedules.no_tick_comes_after_the_end, Cut("with_ticks", "end", "where true")),
    mutant("the newest of the planned for the newest of all", schedules.after_an_outage_one_tick_is_fired,
           Cut("fire_schedules", "newest", "if true then")),
    mutant("late ticks that are never fired", schedules.the_newest_of_late_ticks_is_fired,
           Cut("fire_due", "late", "and schedule.missed = 'all'")),
    mutant("any number of late ticks", schedules.at_most_a_hundred_late_ticks_are_fired,
           Cut("fire_due", "most", ");")),
    mutant("a plan for another definition", schedules.a_plan_is_for_the_definition_that_it_was_made_for,
           Cut("plan_schedules", "version", "continue when not found")),
    mutant("two plans", schedules.of_two_plans_the_first_counts, Cut("plan_schedules", "planned", "is null;")),
    mutant("sleepers that are not told of ticks", schedules.a_sleeper_is_told_when_a_tick_comes,
           Cut("mark_asleep", "tick", "return soonest - clock;")),
    mutant("changes of schedules that nobody hears of", schedules.a_change_is_told_to_all_who_listen,
           Cut("wake_for_schedules", "hint", "select null;")),
    mutant("a backfill of all", schedules.a_backfill_leaves_what_has_started,
           Cut("backfill_schedule", "backfill", "and false)")),
    mutant("schedules for any tenant", schedules.a_login_has_schedules_of_its_own_tenants,
           Cut("define_schedule", "tenant")),
    mutant("schedules changed for any tenant", schedules.a_login_has_schedules_of_its_own_tenants,
           Cut("schedule_to_change", "tenant")),
    mutant("schedules removed for any tenant", schedules.a_login_has_schedules_of_its_own_tenants,
           Cut("forget_schedule", "tenant")),
    mutant("ticks for any tenant", schedules.a_login_has_schedules_of_its_own_tenants,
           Cut("fire_schedules", "tenant", "where s.wake_at <= clock")),
]
MAIMED = [
    Maimed("lease numbers that begin again", s.lease_numbers_only_grow,
           "alter sequence holdfast.lease_ids maxvalue 3 cycle"),
    Maimed("unique keys without their index", s.a_unique_key_stands_once_among_the_open,
           "drop index holdfast.steps_open_key"),
    Maimed("edges without their trigger", s.steps_do_not_wait_for_each_other, "drop trigger acyclic on holdfast.edges"),
    Maimed(
        "steps without their trigger", g.an_illegal_move_by_hand_is_refused, "drop trigger journaled on holdfast.steps"
    ),
    Maimed("steps with their trigger off", g.the_guards_stand, "alter table holdfast.steps disable trigger journaled"),
    Maimed("steps moved by hand unseen", g.a_legal_move_by_hand_is_journaled,
           "alter table holdfast.steps disable trigger journaled"),
    Maimed("runs without their trigger", g.an_illegal_move_of_a_run_by_hand_is_refused,
           "drop trigger journaled on holdfast.runs"),
    Maimed("runs moved by hand unseen", g.a_legal_move_by_hand_is_journaled,
           "alter table holdfast.runs disable trigger journaled"),
    Maimed("steps that begin anywhere", g.a_row_begins_in_an_initial_state, "drop trigger begins on holdfast.steps"),
    Maimed("runs that begin anywhere", g.a_row_begins_in_an_initial_state, "drop trigger begins on holdfast.runs"),
    Maimed("steps that change their number", g.a_row_keeps_its_number, "drop trigger keeps_its_id on holdfast.steps"),
    Maimed("runs that change their number", g.a_row_keeps_its_number, "drop trigger keeps_its_id on holdfast.runs"),
    Maimed("a journal that can be changed", g.what_is_written_stays, "drop trigger stays on holdfast.journal"),
    Maimed("notes that can be changed", g.what_is_written_stays, "drop trigger stays on holdfast.notes"),
    Maimed("a month that can be changed", g.what_is_written_stays,
           "alter table holdfast.notes_{month} disable trigger stays"),
    Maimed(
        "a month that can be emptied", g.what_is_written_stays, "drop trigger stays_whole on holdfast.journal_{month}"
    ),
    Maimed("a journal that can be emptied", g.the_guards_stand,  # its months stand behind it
           "drop trigger stays_whole on holdfast.journal"),
    Maimed(
        "row security that is not forced", g.the_guards_stand, "alter table holdfast.steps no force row level security"
    ),
    Maimed("row security that is off", g.a_login_reads_its_own_tenants,
           "alter table holdfast.notes disable row level security"),
    Maimed("a policy that lets all rows through", g.a_login_reads_its_own_tenants,
           "alter policy own_tenants on holdfast.journal using (true)"),
]
# fmt: on
