"""A flow whose workers are killed: while it plans its own steps, while these are done, before and after a commit."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import pytest

from scenarios.crew import Crew, Database, until
from scenarios.proof import Proof
from scenarios.stories import kill_and_replace

APP, WORKERS = "orders", 2
BESIDES = 7  # steps that are no items: items, ship, join, bill, its two, close
KILLED = -signal.SIGKILL
STARTED = "select flow.start_task('order', jsonb_build_object('count', %s::int))"
# The claim that counted is the last; a step that planned steps itself was claimed before they were there.
TOO_EARLY = """
select c.step_id, p.step_id
  from holdfast.edges e
  join (select step_id, max(id) as id from holdfast.journal where event = 'claimed' group by step_id) c
    on c.step_id = e.next_id
  left join holdfast.journal p on p.step_id = e.step_id and p.event = 'succeeded'
 where p.id is null or p.id > c.id
"""
ITEMS = "select result from holdfast.steps where run_id = %s and kind = 'order.ship' order by id"
JOINED = "select result from holdfast.steps where run_id = %s and kind = 'order.join'"


@pytest.mark.parametrize(
    ("items", "kills", "sides"),
    [(60, 1, ()), pytest.param(400, 20, ("before", "after"), marks=[pytest.mark.long, pytest.mark.timeout(600)])],
)
def test_a_flow_plans_its_steps_once_and_joins_them_once_whoever_is_killed(
    crew: Crew, database: Database, folder: Path, proof: Proof, items: int, kills: int, sides: Sequence[str]
) -> None:
    """R23, T-15, T-22, T-49, T-53, T-132: killed right before and right after the commit of what a map plans, too; the
    long form does so with what a sub-flow plans
    """
    task_id = die_planning(crew, database, items, proof)
    alive = {member.name: member for member in (crew.hire("-c", "5", app=APP) for _ in range(WORKERS))}
    for number in range(kills):
        done = number * items // (kills + 2)
        until(lambda: database.count("succeeded") >= done, f"{done} were done")  # noqa: B023
        kill_and_replace(crew, database, alive, proof.chance, APP)
        proof.add(rounds=1, kills=1)
    until(lambda: joined(database, task_id) is not None, "the join was done")
    for side in sides:
        biller = crew.hire("--queue", "bills", app=APP, failpoint=f"{side}_commit:kill9")
        assert biller.exit_code() == KILLED
        proof.add(rounds=1, kills=1)

    crew.hire("--queue", "bills", app=APP)

    until(lambda: database.count("all_succeeded") == 1, "the task was complete")
    assert database.count("continued") == 2  # the map and the sub-flow, each once
    assert joined(database, task_id) == [result for (result,) in database.rows(ITEMS, task_id)]
    assert len(joined(database, task_id) or []) == items
    assert database.rows(TOO_EARLY) == []
    proof.check(database, folder, started=items + BESIDES)


def die_planning(crew: Crew, database: Database, items: int, proof: Proof) -> UUID:
    """Start a task by its definition, and kill who plans its map: right before the commit, then right after it."""
    first = crew.hire_ready(app=APP, failpoint="before_commit:kill9")
    task_id: UUID = database.value(STARTED, items)
    assert first.exit_code() == KILLED
    assert database.value("select count(*) from holdfast.steps where kind = 'order.ship'") == 0
    second = crew.hire(app=APP, failpoint="after_commit:kill9")
    assert second.exit_code() == KILLED
    assert database.value("select count(*) from holdfast.steps where kind = 'order.ship'") == items
    proof.add(rounds=2, kills=2)
    return task_id


def joined(database: Database, task_id: UUID) -> list[int] | None:
    """Give what the join was given, when it is done."""
    found: list[int] | None = database.value(JOINED, task_id)
    return found
