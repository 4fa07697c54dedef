"""An orderly stop: no new claims, a grace for handlers, the rest handed back uncharged, and an exit code that tells."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil
import pytest

from scenarios.crew import Crew, Database, Member, until
from scenarios.history import lines
from scenarios.proof import Proof

WAITING = ["wait", "await_gate", "wait_apart"]  # in a thread, on the loop, in a process
LEASE = "60s"  # no lease runs out here, however busy the machine is


def busy(crew: Crew, folder: Path, count: int, *options: str, **settings: str) -> Member:
    """Start a worker, and wait until as many handlers have begun."""
    worker = crew.hire(*options, lease=LEASE, **settings)
    until(lambda: len(lines(folder, "begin")) == count, f"{count} handlers began")
    return worker


def is_untouched(database: Database, step: int) -> bool:
    row = database.step(step)
    return (row["state"], row["attempt"], row["standing"]) == ("pending", 0, "due")


def is_handed_back(database: Database, step: int) -> bool:
    row = database.step(step)
    story = database.story(step)
    return (row["state"], row["failures"], row["standing"], story[-1]) == ("pending", 0, "due", "released")


def finish_the_rest(crew: Crew) -> None:
    """Let another worker do what is due."""
    assert crew.hire("--burst", lease=LEASE).exit_code() == 0


def test_sigterm_lets_handlers_end_and_claims_nothing_more(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31, W-62"""
    steps = [database.start(kind, gate="go") for kind in WAITING]
    worker = busy(crew, folder, len(steps))

    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    late = database.start("doze")
    crew.open("go")

    assert worker.exit_code() == 0
    assert [database.story(step) for step in steps] == [["claimed", "succeeded"]] * len(steps)
    assert is_untouched(database, late)
    assert database.value("select count(*) from holdfast.worker_list") == 0
    finish_the_rest(crew)
    proof.check(database, folder, started=len(steps) + 1)


def test_what_does_not_end_within_the_grace_is_handed_back_at_no_cost(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31, W-62: the handler is told, and the next worker has the whole of the policy's tries."""
    steps = [database.start(kind, gate="go") for kind in WAITING]
    worker = busy(crew, folder, len(steps), grace="300ms")

    worker.send(signal.SIGTERM)

    assert worker.exit_code() == 0
    assert [database.story(step) for step in steps] == [["claimed", "released"]] * len(steps)
    assert all(is_handed_back(database, step) for step in steps)
    crew.open("go")
    finish_the_rest(crew)
    proof.check(database, folder, started=len(steps))


def test_handlers_that_burn_cpu_are_handed_back_too(crew: Crew, database: Database, folder: Path) -> None:
    """R31: threads that fight for the interpreter do not hold up the stop."""
    steps = [database.start("burn", seconds=600) for _ in range(4)]
    worker = busy(crew, folder, len(steps), grace="300ms")

    worker.send(signal.SIGTERM)

    assert worker.exit_code() == 0
    assert all(is_handed_back(database, step) for step in steps)


def test_a_second_sigterm_does_not_wait_and_hands_back_as_well(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: told twice, 130."""
    steps = [database.start("wait", gate="go") for _ in range(3)]
    worker = busy(crew, folder, len(steps))

    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    worker.send(signal.SIGTERM)

    assert worker.exit_code() == 130
    assert all(is_handed_back(database, step) for step in steps)
    crew.open("go")
    finish_the_rest(crew)
    proof.check(database, folder, started=len(steps))


def test_what_was_claimed_and_not_begun_is_handed_back_at_once(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: only what runs gets a grace."""
    quick = database.start_many("doze", 400)
    worker = crew.hire("-c", "1", lease=LEASE)
    until(lambda: database.count("succeeded") == quick, "it had reason to take many at a time")
    waiting = database.start_many("wait", 50, gate="go")
    until(lambda: any(line.kind == "wait" for line in lines(folder, "begin")), "one began")

    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    until(lambda: sum(database.held_by().values()) == 1, "all but the one were handed back")
    crew.open("go")

    assert worker.exit_code() == 0
    assert database.value("select max(failures) from holdfast.steps") == 0
    finish_the_rest(crew)
    proof.check(database, folder, started=quick + waiting)


def test_a_signal_to_all_its_processes_ends_no_cpu_handler_early(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31: Ctrl-C and some init systems tell the processes of cpu tasks as well; they leave it to the worker."""
    step = database.start("wait_apart", gate="go")
    worker = busy(crew, folder, 1)
    assert lines(folder)[0].pid != worker.pid

    for number in (signal.SIGINT, signal.SIGTERM):
        os.kill(lines(folder)[0].pid, number)
    worker.send(signal.SIGTERM)
    worker.await_said("worker.draining")
    crew.open("go")

    assert worker.exit_code() == 0
    assert database.story(step) == ["claimed", "succeeded"]
    proof.check(database, folder, started=1)


def test_a_worker_whose_processes_wait_for_work_ends(crew: Crew, database: Database, folder: Path) -> None:
    """W-62: they leave SIGTERM to the worker, which at its end asked them by it, and waited without end."""
    step = database.start("burn_apart", seconds=0)

    worker = crew.hire("--burst", lease=LEASE)

    assert worker.exit_code() == 0
    assert database.story(step) == ["claimed", "succeeded"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_worker_stops_at_once(crew: Crew, database: Database, number: signal.Signals) -> None:
    """W-62: however long it would have slept."""
    worker = crew.hire_ready(poll_min="1h", poll_max="1h")
    until(lambda: database.value("select bool_or(is_asleep) from holdfast.worker_list"), "it fell asleep")

    worker.send(number)

    assert worker.exit_code() == 0
    assert database.value("select count(*) from holdfast.worker_list") == 0


def test_a_burst_works_until_nothing_is_due_and_ends_by_itself(crew: Crew, database: Database, folder: Path) -> None:
    database.start_many("doze", 300)
    later = database.start("doze", due_in=3600)

    assert crew.hire("--burst").exit_code() == 0

    assert database.count("succeeded") == 300
    assert database.step(later)["standing"] == "later"


def test_a_burst_over_several_processes_ends_when_all_have(crew: Crew, database: Database) -> None:
    database.start_many("doze", 300)

    assert crew.hire("--burst", "--processes", "2").exit_code() == 0

    assert database.count("succeeded") == 300


def test_two_workers_of_one_name_are_two(crew: Crew, database: Database) -> None:
    """W-39: a name is for people; leases go by what is unique to each start."""
    for _ in range(2):
        crew.hire_ready("--name", "twin")

    names = [name for (name,) in database.rows("select worker from holdfast.worker_list")]

    assert len(set(names)) == 2
    assert {name.partition("/")[0] for name in names} == {"twin"}


def test_processes_of_one_supervisor_are_no_namesakes_but_another_worker_is(crew: Crew, database: Database) -> None:
    """W-39: also one that is started again; only what somebody else started may be a mistake."""
    supervisor = crew.hire("--name", "twin", "--processes", "2")
    supervisor.await_said("worker.connected", times=2)
    supervisor.children()[0].kill()
    supervisor.await_said("worker.connected", times=3)
    names = {name for (name,) in database.rows("select worker from holdfast.worker_list")}

    stranger = crew.hire_ready("--name", "twin")

    assert not supervisor.said("worker.name_taken")
    (line,) = stranger.said("worker.name_taken")
    assert set(line["others"]) == names
    assert {name.partition("/")[0] for name in names} == {"twin"}


def supervised(crew: Crew, database: Database, folder: Path) -> tuple[Member, list[int]]:
    """Two processes under a supervisor, each with a handler that waits."""
    steps = [database.start("wait", gate="go") for _ in range(2)]
    supervisor = busy(crew, folder, 2, "-p2", "-c", "1")
    assert {line.pid for line in lines(folder)} == {child.pid for child in supervisor.children()}
    return supervisor, steps


@pytest.mark.parametrize("is_told_as_a_group", [False, True], ids=["alone", "with its whole group, as Ctrl-C is"])
def test_a_supervisor_passes_signals_on(
    crew: Crew, database: Database, folder: Path, is_told_as_a_group: bool, proof: Proof
) -> None:
    """R31, W-62: Ctrl-C reaches all processes of a terminal at once, and is one signal nonetheless."""
    supervisor, steps = supervised(crew, database, folder)

    if is_told_as_a_group:
        os.killpg(supervisor.pid, signal.SIGINT)
    else:
        supervisor.send(signal.SIGTERM)
    supervisor.await_said("worker.draining", times=2)
    crew.open("go")

    assert supervisor.exit_code() == 0
    assert [database.story(step) for step in steps] == [["claimed", "succeeded"]] * 2
    proof.check(database, folder, started=len(steps))


def test_a_supervisor_passes_the_second_signal_on_too(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31"""
    supervisor, steps = supervised(crew, database, folder)

    supervisor.send(signal.SIGTERM)
    supervisor.await_said("worker.draining", times=2)
    supervisor.send(signal.SIGTERM)

    assert supervisor.exit_code() == 130
    assert all(is_handed_back(database, step) for step in steps)
    crew.open("go")
    finish_the_rest(crew)
    proof.check(database, folder, started=len(steps))


def test_a_worker_that_is_stopped_alone_is_started_again(crew: Crew, database: Database, folder: Path) -> None:
    """W-33: its supervisor was asked for two."""
    supervisor = crew.hire("--processes", "2")
    supervisor.await_said("worker.connected", times=2)
    first = supervisor.children()[0]

    first.terminate()

    supervisor.await_said("worker.connected", times=3)
    assert len(supervisor.children()) == 2
    assert first not in supervisor.children()


def test_workers_whose_supervisor_is_killed_drain(crew: Crew, database: Database, folder: Path, proof: Proof) -> None:
    """R31: nobody would revive them or pass a signal on."""
    supervisor, steps = supervised(crew, database, folder)
    children = supervisor.children()

    supervisor.kill()
    until(lambda: len(supervisor.said("worker.draining")) == 2, "both drained")
    late = database.start("doze")
    crew.open("go")

    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []
    assert is_untouched(database, late)
    assert [database.story(step) for step in steps] == [["claimed", "succeeded"]] * 2
    finish_the_rest(crew)
    proof.add(kills=1)
    proof.check(database, folder, started=len(steps) + 1)
