"""Guards taken out one by one, in the database or in the worker: real processes then do what the checker must find."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from properties.mutants import EDITED, Cut, Edited
from scenarios.crew import Crew, Database, Server, until
from scenarios.history import judge, lines
from scenarios.proof import Proof
from scenarios.stories import (
    Stage,
    a_long_handler_keeps_its_lease,
    a_report_is_cut_off,
    a_zombie_renews,
    a_zombie_reports_first,
    two_claim_at_the_same_moment,
)

Story = Callable[[Stage], int]
BY_NAME = {mutant.name: mutant for mutant in EDITED}
CLAIMS_UNLOCKED = Edited(
    "claims without a lock, and all that is behind it",
    lambda _: None,  # the story is told by processes, not by the properties' own
    (
        Cut("pick_steps", "lock"),
        Cut("lease_steps", "free"),
        Cut("lease_steps", "state", "and m.from_state = 'pending'"),
        Cut("journal_step_moves", "move", "true"),
        Cut("journal_step_moves", "actor"),
    ),
)


class Mutant(NamedTuple):
    """What the checker must find when a guard is taken out: in SQL, or in the worker (see mutant_chores)."""

    story: Story
    finds: Literal["lost", "twice"]
    sql: tuple[Edited, ...] = ()
    without: str = ""


REPORTS, COMMITS, ACOMMITS = (partial(a_zombie_reports_first, kind=kind) for kind in ("wait", "deposit", "adeposit"))
STORIES: dict[str, Story] = {
    "a zombie reports": REPORTS,
    "a zombie commits": COMMITS,
    "a zombie commits on the loop": ACOMMITS,
    "a zombie renews": a_zombie_renews,
    "a lease is kept": a_long_handler_keeps_its_lease,
    "two claim at once": two_claim_at_the_same_moment,
    "a report is cut off": a_report_is_cut_off,
}
FENCE = (BY_NAME["done without the lease"],)
MUTANTS = {
    "done without the lease": Mutant(REPORTS, "twice", FENCE),
    "committed without the lease": Mutant(COMMITS, "twice", FENCE),
    "committed on the loop without the lease": Mutant(ACOMMITS, "twice", FENCE),
    "committed whatever the settle said": Mutant(COMMITS, "twice", without="check"),
    "committed on the loop whatever the settle said": Mutant(ACOMMITS, "twice", without="check"),
    "renewed without the lease": Mutant(a_zombie_renews, "lost", (BY_NAME["renewed without the lease"],)),
    "rescue of leases that stand": Mutant(
        a_long_handler_keeps_its_lease, "lost", (BY_NAME["rescue of leases that stand"],)
    ),
    CLAIMS_UNLOCKED.name: Mutant(two_claim_at_the_same_moment, "twice", (CLAIMS_UNLOCKED,)),
    "a report that is not said again": Mutant(a_report_is_cut_off, "lost", without="memory"),
}


@pytest.mark.long
@pytest.mark.parametrize("story", STORIES.values(), ids=STORIES)
def test_with_all_guards_the_story_is_sound(
    crew: Crew, database: Database, folder: Path, proof: Proof, story: Story
) -> None:
    """R3: however late the worker learns of it, the database refuses what is not its own."""
    started = story(Stage(crew, database, folder))

    proof.check(database, folder, started=started)


@pytest.mark.long
@pytest.mark.scenario("guards")
@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_without_its_guard_the_checker_finds_what_came_of_it(
    crew: Crew, database: Database, folder: Path, mutant: Mutant
) -> None:
    with database.connection() as db, ExitStack() as out:
        for guard in mutant.sql:
            out.enter_context(guard.installed(db))
        started = mutant.story(Stage(crew, database, folder, mutant.without))

    verdict = judge(database, folder, started=started)

    assert getattr(verdict, mutant.finds) > 0, verdict


@pytest.mark.long
@pytest.mark.scenario("guards")
def test_without_the_watchdog_a_handler_goes_on_when_its_lease_has_run_out(
    crew: Crew, database: Database, server: Server, folder: Path
) -> None:
    """What the test of a long outage waits for does not come: while the server is away, only the worker can tell."""
    database.start("wait", gate="go")
    worker = crew.hire_ready(app="mutant_chores", test_without="watchdog")
    until(lambda: lines(folder, "begin"), "the handler began")

    server.halt()

    worker.await_said("worker.error_wait", times=8)  # four leases
    assert not worker.said("lease.lost")
    assert not lines(folder, "stopped")
