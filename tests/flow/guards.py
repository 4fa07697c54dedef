"""Engines that lack a guard of the flow: what each of them does wrong must be found by random examples."""

from __future__ import annotations

import pytest

from holdfast.errors import HoldfastError
from properties.mutants import Cut, Edited
from properties.scenarios import DB


def random_examples(_: DB) -> None:
    """What a mutant is held against here: not one story, but what tests/flow/test_dags.py plays."""


def guard(name: str, *cuts: Cut) -> Edited:
    return Edited(name, random_examples, cuts, HoldfastError)


def seldom(mutant: Edited) -> object:
    """Mark one that takes some looking for."""
    return pytest.param(mutant, marks=pytest.mark.long)


EXPIRED_BUDGET = Cut("expire_steps", "budget", "false"), Cut("expire_steps", "retryable")
ONE_AHEAD = "extract(epoch from law.waits[backoff.failure + 1])"
BACKWARDS = "select coalesce(jsonb_agg(coalesce(i.result, 'null') order by i.id desc), '[]')"

# fmt: off
GUARDS = [
    guard("children not counted", Cut("admit_children", "waits", "set waits = s.waits,")),
    guard("children let in twice", Cut("admit_children", "waits", "set waits = greatest(0, s.waits - 2 * c.done),")),
    seldom(guard("done without the lease", Cut("succeed_steps", "lease"))),
    guard("tried again without a budget", Cut("settle_others", "budget", "s.failures + 1 > p.tries")),
    guard("tried again though not retryable", Cut("settle_others", "retryable")),
    guard("rescued without a budget", *EXPIRED_BUDGET),
    seldom(guard("reset on the old budget", Cut("move_steps", "fresh-budget", "when b.event = 'continued' then 0"))),
    guard("backoff one ahead", Cut("backoff", "waits", ONE_AHEAD)),
    guard("Retry-After without a limit", Cut("settle_others", "retry_after", "o.retry_after")),
    guard("expansion that is not waited for", Cut("add_awaited", "waits", "set waits = s.waits")),
    guard("a parent's result mislaid", Cut("flow.step_surroundings", "parent", "else 'null' end")),
    seldom(guard("a map that forgets its items' order", Cut("flow.result_in_run", "order", BACKWARDS))),
    seldom(guard("done again, and all with it", Cut("flow.retry_from", "taken-over", "and false"))),
    seldom(guard("done again without what waits for it",
                 Cut("flow.retry_from", "taken-over", "and o.id <> retry_from.step_id"))),
    guard("done again on the old items", Cut("flow.plan_of_run", "afresh", "and false")),
    guard("a task that is over before its time", Cut("tally_runs", "open-steps", "where true")),
    guard("ready before its time", Cut("is_due", "due", "select step.due_at is not null;")),
]
# fmt: on
