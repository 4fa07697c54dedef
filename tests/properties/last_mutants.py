"""Engines that lack a guard of claims that charge limits last, and the story that each fails (see mutants.py)."""

from __future__ import annotations

from properties import last_stories as last
from properties.mutants import Cut, mutant

# fmt: off
LAST = [
    mutant("leases that are kept though limits are used up", last.slots_are_taken_meanwhile,
           Cut("charge_last", "certain", "if false then")),
    mutant("slots that are not looked at last", last.slots_are_taken_meanwhile, Cut("has_ample_room", "slots")),
    mutant("tokens that are not looked at last", last.tokens_are_taken_meanwhile,
           Cut("has_ample_room", "tokens", "< 0) is not true and true")),
    mutant("tokens spent before they came", last.tokens_that_come_meanwhile_are_not_spent_before,
           Cut("has_ample_room", "since", "- ceil(0")),
    mutant("a step before one that was parked meanwhile", last.a_step_is_parked_meanwhile,
           Cut("has_ample_room", "queue")),
    mutant("a step of a limit that was paused meanwhile", last.the_limit_is_paused_meanwhile,
           Cut("has_ample_room", "pause")),
    mutant("a step of a breaker that opened meanwhile", last.the_breaker_opens_meanwhile,
           Cut("has_ample_room", "breaker")),
    mutant("a step that no limit counts", last.the_state_is_removed_meanwhile,
           Cut("has_ample_room", "present", "select true")),
    mutant("a charge of a bucket that is newer", last.the_bucket_is_made_meanwhile, Cut("has_ample_room", "bucket")),
    mutant("a later step after a charge that failed", last.a_claim_that_charges_again_keeps_the_order,
           Cut("claim_steps", "position")),
]
