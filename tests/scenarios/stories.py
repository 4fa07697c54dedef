"""Stories of workers in trouble, told of the engine as it is and of engines that lack a guard.

Each ends when it is decided whether the guard held, and gives how many tasks it started; what came of them is for the
checker to say.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path
from typing import Any, NamedTuple

import psycopg

from scenarios.crew import Crew, Database, Member, until, waiting_for_a_lock
from scenarios.history import Line, lines

PAYING = ("deposit", "adeposit")  # they write down that they are inside their transaction
CUT = """select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and wait_event_type = 'Lock'"""


class Stage(NamedTuple):
    """What a story is told with. `without` names guards of the worker's own that are taken out: see mutant_chores."""

    crew: Crew
    database: Database
    folder: Path
    without: str = ""

    def hire(self, *options: str, **settings: str) -> Member:
        """Start a worker that lacks those guards."""
        lacking: dict[str, Any] = {"app": "mutant_chores", "test_without": self.without} if self.without else {}
        return self.crew.hire_ready(*options, **lacking, **settings)

    def hire_deaf(self) -> Member:
        """Start a worker that never learns that its lease is lost: only the database is left to refuse it."""
        return self.crew.hire_ready(app="mutant_chores", test_without=f"ears {self.without}")

    def await_begun_by(self, worker: Member, what: str = "begin") -> Line:
        """Wait until a handler in the worker's own process has begun, and give what it wrote."""
        found: list[Line] = []

        def look() -> list[Line]:
            found[:] = [line for line in lines(self.folder, what) if line.pid == worker.pid]
            return found

        until(look, f"a handler of {worker.name} began")
        return found[-1]


def kill_and_replace(
    crew: Crew, database: Database, alive: dict[str, Member], chance: random.Random, app: str = "chores"
) -> Member:
    """Kill one with -9 that holds steps right now, hire another, and give the dead one."""
    victim = holder(database, alive, chance)
    alive.pop(victim.name).kill()
    successor = crew.hire("-c", "5", app=app)
    alive[successor.name] = successor
    return victim


def holder(database: Database, alive: dict[str, Member], chance: random.Random) -> Member:
    """Choose one that holds steps right now."""
    found: list[str] = []

    def look() -> list[str]:
        found[:] = sorted(database.held_by().keys() & alive.keys())
        return found

    until(look, "a worker held steps")
    return alive[chance.choice(found)]


def freeze_until_taken_over(stage: Stage, zombie: Member, *options: str, **settings: str) -> Member:
    """Stop a worker inside a handler for longer than its lease, until another has its task; give the other."""
    stage.await_begun_by(zombie)
    zombie.send(signal.SIGSTOP)
    other = stage.crew.hire_ready(*options, **settings)
    stage.await_begun_by(other)
    return other


def a_zombie_reports_first(stage: Stage, kind: str) -> int:
    """It wakes, its handler ends, and it says so while the one that took over is still at it."""
    step = stage.database.start(kind, gate="go")
    zombie = stage.hire_deaf()
    if kind in PAYING:  # one that is frozen while it connects would wake to a connection that is too late
        stage.await_begun_by(zombie, "inside")
    other = freeze_until_taken_over(stage, zombie, lease="60s")
    other.send(signal.SIGSTOP)
    stage.crew.open("go")

    zombie.send(signal.SIGCONT)

    until(lambda: zombie.said("step.outcome_not_accepted") or stage.database.is_over(step), "it had reported")
    other.send(signal.SIGCONT)
    until(lambda: stage.database.is_over(step), "it was over")
    return 1


def a_zombie_renews(stage: Stage) -> int:
    """It wakes when the one that took over is dead; what that one held must come back nonetheless."""
    step = stage.database.start("wait", gate="go")
    zombie = stage.hire_deaf()
    other = freeze_until_taken_over(stage, zombie)
    other.kill()
    lease = stage.await_begun_by(other).lease
    ends_at = stage.database.value("select lease_until from holdfast.steps where id = %s", step)
    kept = "select exists (select from holdfast.steps where lease_id = %s and lease_until > %s + interval '3 s')"

    zombie.send(signal.SIGCONT)

    stage.crew.hire_ready()
    until(lambda: came_back(stage, lease) or stage.database.value(kept, lease, ends_at), "it came back, or was kept")
    if came_back(stage, lease):
        stage.crew.open("go")
        until(lambda: stage.database.is_over(step), "it was over")
    return 1


def came_back(stage: Stage, lease: int) -> bool:
    """Whether somebody has begun under a later lease."""
    return any(line.lease > lease for line in lines(stage.folder, "begin"))


def a_long_handler_keeps_its_lease(stage: Stage) -> int:
    """It takes several leases and many sweeps, and has but the usual tries."""
    step = stage.database.start("stay", gate="go")
    for _ in range(2):
        stage.hire()
    kept = "select exists (select from holdfast.steps where lease_until > claimed_at + interval '4 s')"

    until(lambda: stage.database.value(kept) or stage.database.is_over(step), "it was held for long, or given up")

    stage.crew.open("go")
    until(lambda: stage.database.is_over(step), "it was over")
    return 1


def two_claim_at_the_same_moment(stage: Stage) -> int:
    """Whoever does not pass over what is locked waits, with the same rows in hand, until they are free."""
    started = stage.database.start_many("doze", 5)
    with psycopg.connect(stage.database.dsn) as lock:
        lock.execute("select from holdfast.steps for update")
        for _ in range(2):
            stage.hire()
        asleep = "select count(*) from holdfast.worker_list where is_asleep"
        until(lambda: waiting_for_a_lock(stage.database) == 2 or stage.database.value(asleep) == 2, "both had looked")
    until(lambda: stage.database.count("succeeded") >= started, "all were done")
    return started


def a_report_is_cut_off(stage: Stage) -> int:
    """The connection breaks while the server has the report in hand. What ends later is reported later."""
    stage.database.start("wait", gate="go")
    worker = stage.hire(lease="60s")
    stage.await_begun_by(worker)
    with psycopg.connect(stage.database.dsn) as lock:
        lock.execute("select from holdfast.steps for update")
        stage.crew.open("go")
        until(lambda: waiting_for_a_lock(stage.database), "the report was under way")
        stage.database.do(CUT)
        worker.await_said("worker.error_wait")
    later = stage.database.start("doze")
    until(lambda: stage.database.is_over(later), "the worker worked again")
    return 2
