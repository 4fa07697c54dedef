"""The kill matrix: a process dies at each failpoint, another goes on, and nothing is lost or there twice."""

from __future__ import annotations

import signal
import sys
from datetime import timedelta
from pathlib import Path

import psutil
import pytest

from scenarios.cells import APART, DRAINING, IDLE, MANY, STARTING, SUPERVISING, WORKING, Cell
from scenarios.crew import HERE, LONG, Crew, Database, Member, until, until_done
from scenarios.history import lines
from scenarios.limits import check_limits, define, record
from scenarios.proof import Proof

STEPS = [pytest.param(step, marks=[] if step == "settle" else pytest.mark.long) for step in WORKING]
# For each queue, and so for each cell: as many slots as most cells have tasks, and tokens that come one by one.
RULE = {"concurrency": 4, "rate": 40, "per": timedelta(seconds=1), "burst": 4}
KILLED = -signal.SIGKILL
PAGES_UNTURNED = """
select s.id from holdfast.steps s
 where s.kind = 'turn_pages'
   and (select count(*) from public.effects e where e.step_id = s.id) <> (s.input ->> 'pages')::int
"""


@pytest.fixture(params=[False, True], ids=["free", "limited"])
def is_limited(request: pytest.FixtureRequest, database: Database) -> bool:
    """Whether each cell's queue is under a limit, of which nothing may be exceeded or leaked."""
    if request.param:
        record(database)
        define(database, "queue:*", **RULE)
    return bool(request.param)


def start(database: Database, cells: list[Cell]) -> int:
    """Start the tasks of each cell in its queue, and tell how many."""
    return sum(database.start_many(cell.kind, cell.tasks, queue=cell.name, **cell.arguments) for cell in cells)


def hire_armed(crew: Crew, cell: Cell, *options: str, **settings: str) -> Member:
    """Hire a worker that dies at the cell's failpoint, for its queue alone."""
    own = {"failpoint": cell.arms, **cell.settings, **settings}
    return crew.hire("--name", cell.name, "--queue", cell.name, *options, **own)


def finish(crew: Crew, database: Database, cells: list[Cell], *, started: int) -> None:
    """Let one that does not die do what is left in all queues."""
    queues = [option for cell in cells for option in ("--queue", cell.name)]
    crew.hire("--name", "finisher", *queues)
    until_done(database, started)


def check(database: Database, folder: Path, proof: Proof, *, started: int, kills: int, is_limited: bool) -> None:
    """Judge the history, and the limits if there are any."""
    proof.add(rounds=kills, kills=kills)
    proof.check(database, folder, started=started)
    if is_limited:
        assert check_limits(database) >= started


def ends(members: list[Member]) -> dict[str, int]:
    """Tell how each of them ended."""
    return {member.name: member.exit_code() for member in members}


@pytest.mark.parametrize("step", STEPS)
def test_a_worker_killed_at_any_place_of_a_step_loses_nothing(
    crew: Crew, database: Database, folder: Path, proof: Proof, step: str, *, is_limited: bool
) -> None:
    """R2, W-33: before it is sent, before its transaction is committed, and after its answer."""
    cells = WORKING[step]
    started = start(database, cells)

    armed = [hire_armed(crew, cell, "-c", "2") for cell in cells]

    assert ends(armed) == {cell.name: KILLED for cell in cells}
    finish(crew, database, cells, started=started)
    check(database, folder, proof, started=started, kills=len(cells), is_limited=is_limited)
    assert database.rows(PAGES_UNTURNED) == []


@pytest.mark.long
def test_a_worker_killed_as_it_goes_to_sleep_or_is_woken_loses_nothing(
    crew: Crew, database: Database, folder: Path, proof: Proof, *, is_limited: bool
) -> None:
    """R2: a hint that nobody heard is found by polling."""
    armed = [hire_armed(crew, cell) for cell in IDLE]
    asleep = "select coalesce(bool_or(is_asleep), false) from holdfast.worker_list where queues = array[%s]"
    until(lambda: database.value(asleep, IDLE[-1].name), "one slept, and waited for a hint")

    started = start(database, IDLE)

    assert ends(armed) == {cell.name: KILLED for cell in IDLE}
    finish(crew, database, IDLE, started=started)
    check(database, folder, proof, started=started, kills=len(IDLE), is_limited=is_limited)


@pytest.mark.long
def test_a_worker_killed_while_it_stops_loses_nothing(
    crew: Crew, database: Database, folder: Path, proof: Proof, *, is_limited: bool
) -> None:
    """R2, R31: what it had not handed back comes back when the lease has run out."""
    started = start(database, DRAINING)
    armed = [hire_armed(crew, cell, grace="100ms") for cell in DRAINING]
    until(lambda: len(lines(folder, "begin")) == started, "all were at work")

    for member in armed:
        member.send(signal.SIGTERM)

    assert ends(armed) == {cell.name: KILLED for cell in DRAINING}
    crew.open("go")
    finish(crew, database, DRAINING, started=started)
    check(database, folder, proof, started=started, kills=len(DRAINING), is_limited=is_limited)


@pytest.mark.long
@pytest.mark.timeout(300)  # about 15 processes are started, each of which loads the app
def test_a_process_of_cpu_tasks_killed_at_any_place_costs_its_worker_nothing(
    crew: Crew, database: Database, folder: Path, proof: Proof, *, is_limited: bool
) -> None:
    """R2: each does one task and dies in its second; its worker tries again with the next."""
    started = start(database, APART)

    armed = [hire_armed(crew, cell, "-c", "1", lease="30s") for cell in APART]  # no lease has to run out here

    until_done(database, started)
    assert [member.name for member in armed if member.has_ended] == []
    used = {cell.name: pids(folder, cell.name) for cell in APART}
    assert {name: len(found) > 1 for name, found in used.items()} == {cell.name: True for cell in APART}
    kills = sum(len(found) - 1 for found in used.values())
    check(database, folder, proof, started=started, kills=kills, is_limited=is_limited)


def pids(folder: Path, worker: str) -> set[int]:
    """Tell which processes the handlers of a worker were in."""
    return {line.pid for line in lines(folder) if line.worker.startswith(f"{worker}/")}


@pytest.mark.long
def test_a_supervisor_killed_at_any_place_leaves_no_workers_behind(
    crew: Crew, database: Database, folder: Path, proof: Proof, *, is_limited: bool
) -> None:
    """R2, R31: they end what they do, and end."""
    started = start(database, SUPERVISING)
    armed = [hire_armed(crew, cell, "--processes", "2") for cell in SUPERVISING]
    for cell, supervisor in zip(SUPERVISING, armed, strict=True):
        if cell.failpoint.endswith("revive"):
            supervisor.await_said("worker.connected", times=2)
            supervisor.children()[0].kill()

    assert ends(armed) == {cell.name: KILLED for cell in SUPERVISING}

    _, alive = psutil.wait_procs(crew.processes(), timeout=LONG.seconds)
    assert alive == []
    finish(crew, database, SUPERVISING, started=started)
    check(database, folder, proof, started=started, kills=len(SUPERVISING), is_limited=is_limited)


@pytest.mark.long
def test_a_starter_killed_at_any_place_has_started_all_or_none_and_a_key_starts_once(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R2: who does not know whether it was acknowledged starts again."""
    cells = [cell for way in STARTING.values() for cell in way]
    asked = {cell.name: f"{way}:{cell.name}" for way, some in STARTING.items() for cell in some}
    script = str(HERE / "starter.py")
    armed = [crew.run(cell.name, sys.executable, script, asked[cell.name], failpoint=cell.arms) for cell in cells]
    assert ends(armed) == {cell.name: KILLED for cell in cells}
    left = dict(database.rows("select queue, count(*)::int from holdfast.steps group by queue"))

    again = crew.run("again", sys.executable, script, *asked.values())

    assert again.exit_code() == 0, again.text()
    by_key = [cell for way in ("start", "astart") for cell in STARTING[way]]
    assert left == {cell.name: 1 for cell in by_key if cell.failpoint == "after_start_task"} | {
        cell.name: MANY for cell in cells if cell.failpoint == "after_bulk_commit"
    }
    started = len(by_key) + MANY * (len(cells) - len(by_key)) + left[Cell("after_bulk_commit").name]
    finish(crew, database, cells, started=started)
    proof.add(rounds=len(cells), kills=len(cells))
    proof.check(database, folder, started=started)
