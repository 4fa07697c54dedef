"""Engines that lack a guard, and the story that each of them fails.

A mutant is made from the installed definition. If the fragment that it takes away is not there any more, that is an
error of its own: a mutant that changes nothing would prove nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

import psycopg

from properties import guards as g
from properties import scenarios as s
from properties.scenarios import DB

Story = Callable[[DB], None]


class Edited(NamedTuple):
    """A function with a fragment replaced; white space in the fragment is any white space.

    A function of another schema than holdfast is named with its schema.
    """

    name: str
    story: Story
    function: str
    fragment: str
    instead: str
    caught_by: type[Exception] = AssertionError  # or the guard behind it

    @contextmanager
    def installed(self, db: DB) -> Iterator[None]:
        named = self.function if "." in self.function else f"holdfast.{self.function}"
        whole = s.value(db, "select pg_get_functiondef(%s::regproc)", named)
        pattern = re.escape(self.fragment).replace(r"\ ", r"\s+")
        edited, count = re.subn(pattern, lambda _: self.instead, whole)
        assert count == 1, f"{self.function} has {count} times: {self.fragment}"
        db.execute(edited)
        try:
            yield
        finally:
            db.execute(whole)


class Maimed(NamedTuple):
    """A schema that lacks something. `{month}` is this month, as partitions are named."""

    name: str
    story: Story
    statement: str


RENEWED, OWNED = "s.lease_id = any (renew_leases.lease_ids)", "s.lease_owner = renew_leases.worker"
LISTED = "announced is null or (m.to_state = n.state and announced = any (m.actors))"
FREED = "|| holdfast.free_children(ids, clock), clock);"
FREED_LATER = ", clock); perform holdfast.tally_runs(holdfast.free_children(ids, clock), clock);"
OUTCOMES_BY_STEP = """from (select x || jsonb_build_object('lease_id', r.lease_id) as j
          from jsonb_array_elements(settle_others.outcomes) x
          join holdfast.steps r on r.id = (x ->> 'step_id')::bigint) y,"""
OURS = "holdfast.matches_any(allowed, s.tenant)"
MAY_SETTLE = "holdfast.matches_any(settle_others.allowed, s.tenant)"

# fmt: off
EDITED = [
    Edited("done without the lease", s.who_lost_its_lease_settles_nothing,
           "succeed_steps", "and s.lease_id = o.lease_id", ""),
    Edited("settled without the lease", s.who_lost_its_lease_settles_nothing,
           "settle_others", "from jsonb_array_elements(settle_others.outcomes) j,", OUTCOMES_BY_STEP),
    Edited("renewed without the lease", s.who_lost_its_lease_renews_nothing,
           "renew_leases", f"and {RENEWED} and {OWNED} -- Not", "-- Not"),
    Edited("renewed by the owner's name alone", s.who_lost_its_lease_renews_nothing,
           "renew_leases", f"and {RENEWED} and {OWNED} -- Not", f"and {OWNED} -- Not"),
    Edited("renewed by the number alone", s.who_lost_its_lease_renews_nothing,
           "renew_leases", f"and {RENEWED} and {OWNED} -- Not", f"and {RENEWED} -- Not"),
    Edited("noted without the lease", s.who_lost_its_lease_writes_no_note,
           "note", "and s.lease_id = note.lease_id for update", "for update"),
    Edited("lease numbers for each step by itself", s.lease_numbers_only_grow,
           "claim_steps", "lease_id = nextval('holdfast.lease_ids')", "lease_id = s.attempt + 1"),
    Edited("rescue of leases that stand", s.a_lease_is_kept_until_it_runs_out,
           "expire_leases", "where s.lease_until < expire_leases.clock", "where s.lease_until is not null"),
    Edited("lease from the transaction's time", s.a_lease_counts_from_the_claim_and_not_from_its_transaction,
           "claim_steps", "timestamptz := holdfast.clock();", "timestamptz := now();"),
    Edited("claim that waits for locks", s.a_claim_passes_over_what_another_has,
           "pick_steps", "for update skip locked", "for update", psycopg.errors.LockNotAvailable),
    Edited("claim before the due time", s.a_claim_takes_only_what_is_due,
           "pick_steps", "and holdfast.is_due(d, pick_steps.clock)", "and d.due_at is not null"),
    Edited("lower priority first", s.a_claim_takes_the_higher_priority_first,
           "claim_steps", "in reverse coalesce(top, 9) .. 0 loop", "in 0 .. coalesce(top, 9) loop"),
    Edited("claim from a paused queue", s.a_paused_queue_gives_nothing,
           "claim_steps", "case when q.paused_at is null then q.top_priority else -1 end", "q.top_priority"),
    Edited("claim from a run that is over", s.a_step_of_a_cancelled_run_is_not_claimed,
           "prepare_runs", "if ended = '{}' then", "if true then"),
    Edited("retry without a budget", s.a_retry_ends_with_its_budget,
           "settle_others", "and (s.failures + 1 >= p.tries or not p.retryable)", "and false"),
    Edited("failures that are not counted", s.a_retry_ends_with_its_budget,
           "move_steps", "then s.failures + 1 when", "then s.failures when"),
    Edited("rescue without a budget", s.a_step_that_kills_its_workers_ends_with_its_budget,
           "expire_steps", "and (s.failures + 1 >= p.tries or not p.retryable)", "and false"),
    Edited("retry by hand on the old budget", s.a_retry_by_hand_has_a_fresh_budget,
           "move_steps", "when b.event in ('continued', 'reopened') then 0", "when b.event = 'continued' then 0"),
    Edited("cursor that moves from anywhere", s.a_cursor_moves_only_from_where_it_was,
           "settle_others", "or s.cursor is not distinct from o.cursor_was)", "or true)"),
    Edited("key for any input", s.a_key_is_for_one_input,
           "id_of_key", "if used.input_hash <> id_of_key.hash then", "if false then"),
    Edited("children freed twice", s.a_join_comes_once_after_all_its_parents,
           "free_children", "set waits = s.waits - c.done", "set waits = greatest(0, s.waits - 2 * c.done)"),
    Edited("children not freed", s.a_join_comes_once_after_all_its_parents,
           "free_children", "set waits = s.waits - c.done", "set waits = s.waits"),
    Edited("children let in too early", s.a_join_comes_once_after_all_its_parents,
           "free_children", "case when s.waits = c.done and", "case when", psycopg.errors.CheckViolation),
    Edited("live steps not counted", s.a_run_closes_with_its_last_step,
           "tally_runs", "live = r.live + d.live,", "live = r.live,"),
    Edited("ends not counted", s.a_run_closes_with_its_last_step,
           "tally_runs", "succeeded = r.succeeded + d.succeeded,", "succeeded = r.succeeded,"),
    Edited("run that is never closed", s.a_run_closes_with_its_last_step,
           "tally_runs", "if closable is not null then", "if false then"),
    Edited("run closed before its children are freed", s.a_run_closes_with_its_last_step,
           "settle_batch", FREED, FREED_LATER),
    Edited("any move by hand", g.an_illegal_move_by_hand_is_refused,
           "check_by_hand", "and not exists (", "and false and not exists ("),
    Edited("held by hand without a lease", g.a_state_goes_with_its_columns,
           "check_by_hand", "(phase = 'held') <> check_by_hand.has_lease", "false"),
    Edited("over by hand without an end", g.a_state_goes_with_its_columns,
           "check_by_hand", "(phase = 'over' and not check_by_hand.has_ended)", "false"),
    Edited("step's move that is not found", g.an_announced_move_must_be_listed_for_its_actor,
           "journal_step_moves", LISTED, f"({LISTED}) is not false"),
    Edited("run's move that is not found", g.an_announced_move_must_be_listed_for_its_actor,
           "journal_run_moves", LISTED, f"({LISTED}) is not false"),
    Edited("step's move by any actor", g.an_announced_move_must_be_listed_for_its_actor,
           "journal_step_moves", "and announced = any (m.actors)", ""),
    Edited("run's move by any actor", g.an_announced_move_must_be_listed_for_its_actor,
           "journal_run_moves", "and announced = any (m.actors)", ""),
    Edited("step of a machine that is not found", g.a_row_begins_in_an_initial_state,
           "check_new_steps", "s.is_initial is not true", "not s.is_initial"),
    Edited("run of a machine that is not found", g.a_row_begins_in_an_initial_state,
           "journal_new_runs", "s.is_initial is not true", "not s.is_initial"),
    Edited("start for any tenant", g.a_login_starts_for_its_own_tenants,
           "check_tenant", "if not holdfast.matches_any(allowed, check_tenant.tenant)", "if false"),
    Edited("claim for any tenant", g.a_login_works_for_its_own_tenants,
           "claim_steps", "holdfast.narrow_tenants(claim_steps.tenants)", "claim_steps.tenants"),
    Edited("done for any tenant", g.a_login_works_for_its_own_tenants, "succeed_steps",
           "and holdfast.matches_any(succeed_steps.allowed, s.tenant)", ""),
    Edited("settled for any tenant", g.a_login_works_for_its_own_tenants, "settle_others", MAY_SETTLE, "true"),
    Edited("renewed for any tenant", g.a_login_works_for_its_own_tenants, "renew_leases",
           f"and {OURS} for no", "for no"),
    Edited("noted for any tenant", g.a_login_works_for_its_own_tenants,
           "note", "or not holdfast.matches_any(allowed, step.tenant)", ""),
    Edited("wish for any tenant's step", g.a_login_wishes_for_its_own_tenants,
           "wish", f"and {OURS} for update", "for update"),
    Edited("wish for any tenant's run", g.a_login_wishes_for_its_own_tenants,
           "wish", "and holdfast.matches_any(allowed, r.tenant)", ""),
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
    Maimed(
        "half a lease", g.a_state_goes_with_its_columns, "alter table holdfast.steps drop constraint lease_is_whole"
    ),
    Maimed("due while held", g.a_due_step_is_free, "alter table holdfast.steps drop constraint due_only_when_free"),
    Maimed("parked while held or over", g.a_parked_step_is_free,
           "alter table holdfast.steps drop constraint parked_only_when_free"),
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
