"""Engines that lack a guard of the flow: what each of them does wrong must be found by random examples."""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError
from properties.mutants import Edited
from properties.scenarios import DB


def random_examples(_: DB) -> None:
    """What a mutant is held against here: not one story, but what tests/flow/test_dags.py plays."""


def guard(name: str, function: str, fragment: str, instead: str) -> Edited:
    return Edited(name, random_examples, function, fragment, instead, HoldfastError)


def seldom(mutant: Edited) -> object:
    """Mark one that takes some looking for."""
    return pytest.param(mutant, marks=pytest.mark.long)


PARENTS_RESULT = "else coalesce(o.result, 'null') end"
RETRY_AFTER = "least(o.retry_after, p.longest_retry_after, '100 years')"
TAKEN_OVER = "and o.id <> all (again)"

# fmt: off
GUARDS = [
    guard("children not counted", "admit_children", "set waits = s.waits - c.done", "set waits = s.waits"),
    guard("children let in twice", "admit_children", "set waits = s.waits - c.done",
          "set waits = greatest(0, s.waits - 2 * c.done)"),
    seldom(guard("done without the lease", "succeed_steps", "and s.lease_id = o.lease_id", "")),
    guard("tried again without a budget", "settle_others", "s.failures + 1 >= p.tries", "s.failures + 1 > p.tries"),
    guard("tried again though not retryable", "settle_others", " or not p.retryable", ""),
    guard("rescued without a budget", "expire_steps", "(s.failures + 1 >= p.tries or not p.retryable)", "false"),
    seldom(guard("reset on the old budget", "move_steps", "when b.event in ('continued', 'reopened') then 0",
                 "when b.event = 'continued' then 0")),
    guard("backoff one ahead", "backoff", "law.waits[backoff.failure]", "law.waits[backoff.failure + 1]"),
    guard("Retry-After without a limit", "settle_others", RETRY_AFTER, "o.retry_after"),
    guard("expansion that is not waited for", "add_awaited", "waits = s.waits + cardinality(ids)", "waits = s.waits"),
    guard("a parent's result mislaid", "flow.step_surroundings", PARENTS_RESULT, "else 'null' end"),
    seldom(guard("a map that forgets its items' order", "flow.result_in_run", "ORDER BY i.id", "ORDER BY i.id DESC")),
    seldom(guard("done again, and all with it", "flow.retry_from", TAKEN_OVER, "and false")),
    seldom(guard("done again without what waits for it", "flow.retry_from", TAKEN_OVER,
                 "and o.id <> retry_from.step_id")),
    guard("done again on the old items", "flow.plan_of_run", "(f.step_id = ANY (plan_of_run.afresh))", "false"),
    guard("a task that is over before its time", "tally_runs", "c.live = 0 and", ""),
    guard("ready before its time", "is_due", "(step).due_at <= clock", "(step).due_at IS NOT NULL"),
]
# fmt: on
