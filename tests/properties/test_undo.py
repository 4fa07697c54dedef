"""Random faults of a channel, rollbacks, passes and corrections beside applies and edits, held against a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.models import Done, Outcome
from properties.database import Database
from properties.mutants import Cut, Edited
from properties.rules_machine import Write, compare_and_set
from properties.rules_model import Shop, Target
from properties.test_rules import write_blindly
from properties.undo_machine import Undo

MANY = 4 * settings.default.max_examples
FEW = max(1, settings.default.max_examples // 3)
Story = Callable[[Undo], None]


@pytest.fixture
def database(dsn: str) -> Iterator[Database]:
    database = Database(dsn)
    yield database
    database.close()


@pytest.mark.one_server
@pytest.mark.timeout(600)
@pytest.mark.parametrize("examples", [FEW, pytest.param(MANY, marks=pytest.mark.long)], ids=["few", "many"])
def test_what_is_undone_is_undone(database: Database, examples: int) -> None:
    """A-08, A-17, A-18, A-29, A-35, A-81, A-83, A-123, A-124, C-06, C-07, C-12, R27"""

    def undo() -> Undo:  # a failure prints a @reproduce_failure(…): it goes here
        return Undo(database)

    phases = [Phase.explicit, Phase.generate]
    run_state_machine_as_test(undo, settings=settings(stateful_step_count=40, max_examples=examples, phases=phases))


def over_an_edit(machine: Undo) -> None:
    """Somebody edits an item between the sale and its end."""
    _sold(machine)
    machine.edit("SKU-1", gone=False)
    _undone(machine)


def after_a_stop(machine: Undo) -> None:
    """A write whose answer was lost, and a stop before the next try."""
    machine.preview({"SKU-1", "SKU-2"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "settled")
    machine.claim(1)
    machine.call_a_failing_shop(0, "lost after")
    machine.halt(0, "stop")
    _undone(machine)


def of_a_later_run(machine: Undo) -> None:
    """A pass over a run whose item a later run wrote."""
    _sold(machine)
    _sold(machine)
    machine.reconcile(0)


def of_a_rollback(machine: Undo) -> None:
    """What a rollback restored is undone in turn; the run that it undid stays rolled back."""
    _sold(machine)
    _undone(machine)
    machine.rollback(1, None)
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "settled")
    assert [each.state for each in machine.runs.values()] == ["ROLLED_BACK", "ROLLED_BACK", "APPLIED"]


def of_a_correction(machine: Undo) -> None:
    """A correction that waits for a person, and another edit meanwhile: its plan is stale."""
    _sold(machine)
    machine.edit("SKU-1", gone=False)
    machine.reconcile(0, corrects=True, is_safe=False)
    machine.edit("SKU-1", gone=False)
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "settled")
    assert [each.state for each in machine.runs.values()] == ["APPLIED", "FAILED"]


def after_a_correction(machine: Undo) -> None:
    """A correction supersedes the run that it corrects: a later edit is its drift, and no longer the run's."""
    _sold(machine)
    machine.edit("SKU-1", gone=False)
    machine.reconcile(0, corrects=True, is_safe=True)
    machine.claim(1)
    machine.call(0, "settled")
    assert [each.state for each in machine.runs.values()] == ["APPLIED", "APPLIED"]
    machine.edit("SKU-1", gone=False)
    machine.reconcile(0)
    machine.reconcile(1)


def of_items_in_an_open_run(machine: Undo) -> None:
    """A correction beside an open run with its item waits for a person."""
    _sold(machine)
    machine.edit("SKU-1", gone=False)
    machine.preview({"SKU-1"})
    machine.apply(0, None, None, leaves=False)
    machine.reconcile(0, corrects=True, is_safe=True)
    assert [each.state for each in machine.runs.values()] == ["APPLIED", "QUEUED", "PREVIEW"]


def _sold(machine: Undo) -> None:
    machine.preview({"SKU-1"})
    machine.apply(0, None, None, leaves=False)
    machine.claim(1)
    machine.call(0, "settled")


def _undone(machine: Undo) -> None:
    """Roll the first run back; what is unknown is read first."""
    for _ in range(2):
        machine.rollback(0, None)
        if machine._in("PREVIEW"):
            machine.apply(0, None, None, leaves=False)
        machine.wait(3)
        machine.claim(2)
        while machine.calls:
            machine.call(0, "settled")


def told(database: Database, story: Story, write: Write = compare_and_set) -> None:
    machine = Undo(database, write)
    story(machine)
    machine.database_is_as_the_model_says()
    machine.each_target_wrote_at_most_once_and_over_nothing_foreign()
    machine.history_tells_the_states()
    machine.no_price_of_a_run_that_was_rolled_back_is_left()
    machine.nothing_is_broken()


def claims_it_wrote(shop: Shop, target: Target) -> Outcome:
    """Mutant: a worker that says it has restored a price and has not."""
    if target.after < target.before and target.after < 10_000:
        return Done({"effect": "written"})
    return compare_and_set(shop, target)


# A later run is looked for twice: when a page is read, and when what the channel showed is recorded.
NOTHING_SUPERSEDED = (
    Cut("rules.page_targets", "superseded", "when false then ''"),
    Cut("rules.is_overtaken", "newest", "order by c.id desc limit 1), target.step_id) is null"),
)
# fmt: off
MUTANTS: dict[str, tuple[Story, Write, tuple[Cut, ...]]] = {
    "rollback without comparison": (over_an_edit, write_blindly, ()),
    "rollback that restores nothing": (of_a_rollback, claims_it_wrote, ()),
    "rollback that leaves what was stopped": (after_a_stop, compare_and_set, (
        Cut("rules.unknown_targets", "open", "and s.state = 'FAILED'"),)),
    "rollback without settling unknown outcomes": (after_a_stop, compare_and_set, (
        Cut("rules.plan_rollback", "unknown", "unknown := 0;"),)),
    "a correction without comparison": (of_a_correction, write_blindly, ()),
    "a correction that supersedes nothing": (after_a_correction, compare_and_set, NOTHING_SUPERSEDED),
    "a correction beside an open run": (of_items_in_an_open_run, compare_and_set, (
        Cut("rules.refuse_shared", "overlap", "select null::uuid as run_id, 0 as items into other where false;"),)),
    "a pass without superseded": (of_a_later_run, compare_and_set, NOTHING_SUPERSEDED),
}
# fmt: on


@pytest.mark.one_server
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_mutant_is_caught(database: Database, mutant: tuple[Story, Write, tuple[Cut, ...]]) -> None:
    """A-81, A-123, C-12, R27: the story holds, and not with the mutant"""
    story, write, cuts = mutant
    told(database, story)
    with Edited("", lambda _: None, cuts).installed(database.person), pytest.raises(AssertionError):
        told(database, story, write)
