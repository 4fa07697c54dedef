"""Steps that wait for steps, while the workers that do them are killed."""

from __future__ import annotations

from itertools import cycle
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from holdfast.kernel import calls
from holdfast.kernel.db import run
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.stories import kill_and_replace

ROOTS, PARENTS, KILLS, WORKERS = 10, 500, 20, 3
STEPS = ROOTS + PARENTS + 1
TOO_EARLY = """
select c.step_id, p.step_id
  from holdfast.edges e
  join (select step_id, min(id) as id from holdfast.journal where event = 'claimed' group by step_id) c
    on c.step_id = e.next_id
  left join holdfast.journal p on p.step_id = e.step_id and p.event = 'succeeded'
 where p.id is null or p.id > c.id
"""


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_join_of_many_parents_comes_once_and_after_all_of_them_whoever_is_killed(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R23: roots, parents that each wait for a root, and one step that waits for all the parents."""
    run_id = start_join(database)
    alive = {member.name: member for member in (crew.hire("-c", "5") for _ in range(WORKERS))}
    for number in range(KILLS):
        done = number * PARENTS // (KILLS + 5)
        until(lambda: database.count("succeeded") >= done, f"{done} were done")  # noqa: B023
        kill_and_replace(crew, database, alive, proof.chance)
        proof.add(rounds=1, kills=1)

    until(lambda: database.count("succeeded") >= STEPS, "all steps were done")

    assert database.rows(TOO_EARLY) == []
    assert ended_before_join(database, folder) == ROOTS + PARENTS
    assert database.count("all_succeeded") == 1
    assert database.value("select state from holdfast.runs where id = %s", run_id) == "complete"
    assert database.value("select count(*) from holdfast.edges") == 2 * PARENTS
    proof.check(database, folder, started=STEPS)


def ended_before_join(database: Database, folder: Path) -> int:
    """Count the steps whose handler had ended, by what handlers wrote, when that of the join first began."""
    join = database.value("select max(next_id) from holdfast.edges")
    told = lines(folder)
    begun = next(place for place, line in enumerate(told) if line.step == join)
    return len({line.step for line in told[:begun] if line.what == "end"})


def start_join(database: Database) -> UUID:
    """Start the run; some of its steps have an effect in the transaction that completes them."""
    kinds = cycle(["doze", "deposit", "adeposit"])
    roots = [node(f"root{n}", "doze") for n in range(ROOTS)]
    parents = [node(f"parent{n}", next(kinds), f"root{n % ROOTS}") for n in range(PARENTS)]
    join = node("join", "deposit", *(parent["name"] for parent in parents))
    with database.connection() as connection:
        plan = [*roots, *parents, join]
        return run(connection, calls.start_run("flow.task", "join", "flow.step", steps=plan))[0]


def node(name: str, kind: str, *after: str) -> dict[str, Any]:
    return {"name": name, "kind": kind, "after": list(after), "input": {"seconds": 0.05}}
