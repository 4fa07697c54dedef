"""Workers that are killed, frozen, or die of a task: what they held comes back, and counts once."""

from __future__ import annotations

import signal
from datetime import datetime, timedelta
from pathlib import Path

import psutil
import pytest

from holdfast.testing import Clock
from scenarios.crew import LONG, Crew, Database, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.stories import Stage, freeze_until_taken_over, kill_and_replace

WORKERS = 4
LASTING = "60s"  # a lease that does not run out, however busy the machine is
RESCUED_WITHIN = timedelta(seconds=15)  # lease and sweep are 1.3 s; the rest is for a machine that is busy


@pytest.mark.both_servers
@pytest.mark.parametrize(
    ("tasks", "kills"), [(800, 10), pytest.param(5_000, 40, marks=[pytest.mark.long, pytest.mark.timeout(300)])]
)
def test_kills_under_load_lose_nothing_and_count_nothing_twice(
    crew: Crew, database: Database, folder: Path, proof: Proof, tasks: int, kills: int
) -> None:
    """R1, W-35, W-39: four workers, one of them killed with -9 each time that a share of the tasks is done."""
    share = tasks // (kills + kills // 4)
    started = start_load(database, tasks // 2)
    alive = {member.name: member for member in (crew.hire("-c", "5") for _ in range(WORKERS))}
    killed: dict[str, datetime] = {}
    for number in range(kills):
        if number < kills // 2:
            started += start_load(database, tasks // kills)
        until(lambda: database.count("succeeded") >= number * share, f"{number * share} were done")  # noqa: B023
        victim = kill_and_replace(crew, database, alive, proof.chance)
        proof.add(rounds=1, kills=1)
        killed[victim.name] = database.value("select holdfast.clock()")

    until(lambda: database.count("succeeded") >= tasks, "all tasks were done")

    assert started == tasks
    proof.check(database, folder, started=tasks)
    assert len(killed) == kills
    assert late_rescues(database, killed) == []


def start_load(database: Database, count: int) -> int:
    """Start as many, half of them with an effect in the transaction that completes them."""
    effects = sum(database.start_many(kind, count // 4, seconds=0.03) for kind in ("deposit", "adeposit"))
    return effects + database.start_many("doze", count - effects, seconds=0.03)


def late_rescues(database: Database, killed: dict[str, datetime]) -> list[tuple[str, datetime]]:
    """Find what was taken back too long after its worker was killed, by the journal's own times."""
    rescues = database.rows(
        """select split_part(c.actor, '/', 1), e.at
             from holdfast.journal e join holdfast.journal c using (step_id, lease_id)
            where e.event = 'expired' and c.event = 'claimed'"""
    )
    assert {name for name, _ in rescues} & killed.keys()
    return [(name, at) for name, at in rescues if name in killed and at > killed[name] + RESCUED_WITHIN]


@pytest.mark.both_servers
def test_a_frozen_worker_that_wakes_is_refused_and_its_handler_told(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R3, R4, W-61: another of the same name took over; a stopped process cannot know, and a name proves nothing."""
    step = database.start("wait", gate="go")
    zombie = crew.hire_ready("--name", "twin")
    freeze_until_taken_over(Stage(crew, database, folder), zombie, "--name", "twin", lease=LASTING)

    zombie.send(signal.SIGCONT)

    (lost,) = zombie.await_said("lease.lost")
    assert lost["step_id"] == step
    until(lambda: lines(folder, "stopped"), "the handler was told")
    (told,) = lines(folder, "stopped")
    assert (told.pid, told.by, told.note) == (zombie.pid, "Interrupted", "LeaseLost")
    zombie.await_said("step.outcome_not_accepted")
    crew.open("go")
    until(lambda: database.is_over(step), "the step was over")
    assert database.story(step) == ["claimed", "expired", "claimed", "succeeded"]
    assert database.step(step)["result"] == lines(folder, "begin")[1].lease
    proof.check(database, folder, started=1)


@pytest.mark.both_servers
def test_the_result_of_a_frozen_worker_that_was_already_written_down_is_refused(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R3, W-61: its handler had ended while it could not speak, so only the database is left to refuse."""
    step = database.start("wait", gate="go")
    zombie = crew.hire_ready()
    other = freeze_until_taken_over(Stage(crew, database, folder), zombie, lease=LASTING)
    crew.open("go")
    until(lambda: database.is_over(step), "the step was over")

    zombie.send(signal.SIGCONT)

    zombie.await_said("step.outcome_not_accepted")
    assert not other.said("step.outcome_not_accepted")
    proof.check(database, folder, started=1)


def test_a_task_that_kills_its_worker_is_set_aside_and_the_queue_flows_on(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R24, W-36, W-37: three tries, no more; the supervisor revives, and the others are done."""
    poison = database.start("die")
    others = [database.start(kind) for kind in ("doze", "deposit") for _ in range(25)]

    supervisor = crew.hire("--processes", "2", "-c", "2")

    until(lambda: database.is_over(poison, *others), "all was over")
    assert [line.attempt for line in lines(folder, "begin") if line.step == poison] == [1, 2, 3]
    assert database.story(poison) == ["claimed", "expired", "claimed", "expired", "claimed", "failed"]
    assert "Maximum retry attempts exceeded" in database.step(poison)["error"]["message"]
    assert database.value("select count(*) from holdfast.dead_steps where id = %s", poison) == 1
    assert all(database.step(other)["state"] == "done" for other in others)
    assert not supervisor.has_ended
    until(lambda: len(supervisor.children()) == 2, "both processes lived again")
    proof.add(rounds=1, kills=3)
    proof.check(database, folder, started=1 + len(others), failed=1)


def test_a_task_that_kills_the_process_of_cpu_tasks_costs_no_worker(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R24: its own process is all that dies."""
    worker = crew.hire_ready(lease=LASTING)

    poison = database.start("die_apart")
    others = [database.start("burn_apart", seconds=0), database.start("doze")]

    until(lambda: database.is_over(poison, *others), "all was over")
    assert database.story(poison) == ["claimed", "retried", "claimed", "retried", "claimed", "failed"]
    assert database.step(poison)["error"]["type"] == "ProcessDied"
    assert [database.step(other)["state"] for other in others] == ["done", "done"]
    assert {line.worker for line in lines(folder)} == {lines(folder)[0].worker}
    assert not worker.has_ended
    proof.add(rounds=1, kills=3)
    proof.check(database, folder, started=3, failed=1)


def test_the_processes_of_cpu_tasks_end_with_a_worker_that_is_killed(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R1: also one that burns; else it would go on beside the one that does its task again."""
    steps = [database.start(kind, gate="go") for kind in ("wait_apart", "burn_apart")]
    worker = crew.hire("-c", "2", lease=LASTING)
    until(lambda: len(lines(folder, "begin")) == len(steps), "both had begun")

    worker.kill()

    _, alive = psutil.wait_procs(crew.processes(), timeout=LONG.seconds)
    assert alive == []
    assert lines(folder, "end") == []
    crew.open("go")
    with database.connection() as connection:
        Clock(connection).advance(LASTING)
    crew.hire(lease=LASTING)
    until(lambda: database.is_over(*steps), "another did them")
    proof.add(rounds=1, kills=1)
    proof.check(database, folder, started=len(steps))


def test_a_process_of_cpu_tasks_that_dies_at_rest_costs_nothing_but_a_new_one(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R24: killed for its memory, say, between two tasks."""
    crew.hire_ready(lease=LASTING)
    first = database.start("burn_apart", seconds=0)
    until(lambda: database.is_over(first), "the first was done")
    psutil.Process(lines(folder)[0].pid).kill()

    second = database.start("burn_apart", seconds=0)

    until(lambda: database.is_over(second), "the second was done")
    assert database.step(second)["state"] == "done"
    proof.add(rounds=1, kills=1)
    proof.check(database, folder, started=2)
