"""Random previews, applies, edits, kills, pauses, stops and retries, held against a model of document 000."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.models import ClaimedStep, Done, Fail, Outcome
from properties.database import Database
from properties.mutants import Cut, Edited
from properties.rules_machine import ITEMS, Lease, Rules, Write, compare_and_set, own_lease
from properties.rules_model import Shop, Target

MANY = 4 * settings.default.max_examples
FEW = max(1, settings.default.max_examples // 2)
Story = Callable[[Rules], None]


class Mutant(NamedTuple):
    """A worker or an engine that does something wrong, and the story that shows it."""

    story: Story
    write: Write = compare_and_set
    lease: Lease = own_lease
    cuts: tuple[Cut, ...] = ()


def write_blindly(shop: Shop, target: Target) -> Outcome:
    """Mutant: no comparison with `before`."""
    shop.set(target.item, target.after, target.id)
    return Done({"effect": "written"})


def fail_on_after(shop: Shop, target: Target) -> Outcome:
    """Mutant: a try after an unknown outcome does not look for `after`."""
    if shop.prices.get(target.item) != target.before:
        return Fail({"message": "stale", "reason": "stale"})
    return compare_and_set(shop, target)


def first_lease(_: ClaimedStep, call: Sequence[ClaimedStep]) -> int:
    """Mutant: a worker that settles a whole call under one lease."""
    return call[0].lease_id


def over_an_edit(machine: Rules) -> None:
    """Somebody edits the item between preview and apply."""
    machine.preview({"SKU-1"})
    machine.edit("SKU-1", gone=False)
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "settled")


def after_a_lost_answer(machine: Rules) -> None:
    """The first call has its effect, but its answer is lost."""
    machine.preview({"SKU-1"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "timeout after")
    machine.wait(3)
    machine.claim(1)
    machine.call(0, "settled")


def a_call_of_three(machine: Rules) -> None:
    """Three targets of a call are settled at once."""
    machine.preview({"SKU-1", "SKU-2", "SKU-3"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(3)
    machine.call(0, "settled")


def a_frozen_worker_comes_back(machine: Rules) -> None:
    """Its targets were claimed by another, and it reports them."""
    machine.preview({"SKU-1"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(3)
    machine.wait(31)
    machine.wait(10)
    machine.claim(3)
    machine.settle_late(0)


def more_than_a_call_is_due(machine: Rules) -> None:
    """A claim of four has room for one whole call of three."""
    machine.preview(set(ITEMS))
    machine.apply(0, None, None, leaves=False)
    machine.claim(4)


def two_plans_of_an_item(machine: Rules) -> None:
    """The second is refused while the first is open."""
    machine.preview({"SKU-1"})
    machine.preview({"SKU-1"})
    machine.apply(0, None, None, leaves=False)
    machine.apply(0, None, None, leaves=False)


def one_of_two_is_refused(machine: Rules) -> None:
    """The run ends PARTIAL."""
    machine.preview({"SKU-1", "SKU-2"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(2)
    machine.call(0, "409")


def told(database: Database, story: Story, write: Write = compare_and_set, lease: Lease = own_lease) -> None:
    machine = Rules(database, write, lease)
    story(machine)
    machine.database_is_as_the_model_says()
    machine.each_target_wrote_at_most_once_and_over_nothing_foreign()
    machine.nothing_is_broken()


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    yield database
    database.close()


@pytest.mark.one_server
@pytest.mark.timeout(600)
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
def test_rule_runs_do_what_the_diagram_says(database: Database, examples: int) -> None:
    """A-01, A-13, A-15, A-16, A-30, A-33, A-34, A-89, A-112, A-121, C-08, C-15, C-78"""

    def rules() -> Rules:  # a failure prints a @reproduce_failure(…): it goes here
        return Rules(database)

    phases = [Phase.explicit, Phase.generate]  # what fails is short: shrinking it takes longer than reading it
    run_state_machine_as_test(rules, settings=settings(stateful_step_count=30, max_examples=examples, phases=phases))


# fmt: off
MUTANTS = {
    "no comparison with before": Mutant(over_an_edit, write=write_blindly),
    "no read after an unknown outcome": Mutant(after_a_lost_answer, write=fail_on_after),
    "a call settled under one lease": Mutant(a_call_of_three, lease=first_lease),
    "an engine that accepts lost leases": Mutant(
        a_frozen_worker_comes_back, cuts=(Cut("succeed_steps", "lease"),)),
    "a claim that splits a call": Mutant(
        more_than_a_call_is_due, cuts=(Cut("lock_calls", "whole", "else greatest(0, least(room - c.steps_before,"),)),
    "no overlap check": Mutant(two_plans_of_an_item, cuts=(
        Cut("rules.refuse_shared", "overlap", "select null::uuid as run_id, 0 as items into other where false;"),)),
    "wrong closing": Mutant(one_of_two_is_refused, cuts=(
        Cut("closing_event", "all", "when run.succeeded > 0 then 'all_succeeded'"),)),
}
# fmt: on


@pytest.mark.one_server
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_caught(database: Database, mutant: Mutant) -> None:
    """A-89, C-08, R11: the story holds, and not with the mutant"""
    told(database, mutant.story)
    engine = Edited("", lambda _: None, mutant.cuts)
    with engine.installed(database.person), pytest.raises(AssertionError):
        told(database, mutant.story, mutant.write, mutant.lease)
