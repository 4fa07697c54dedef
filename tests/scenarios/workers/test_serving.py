"""Who serves what, by whose clock, and what a worker costs that has nothing to do."""

from __future__ import annotations

import re
import shutil
import urllib.request
from datetime import timedelta
from pathlib import Path

import pytest

from holdfast.worker.listener import PROBE_EACH
from holdfast.worker.options import Options
from kernel.schedules import define
from scenarios.crew import Crew, Database, Server, until
from scenarios.history import lines
from scenarios.proof import Proof
from scenarios.server.test_outages import probe

MOST_A_MINUTE = 12
LEASE = "6s"  # long enough that a busy machine renews it in time
LOG_ALL = "do $$ begin execute format('alter database %I set log_statement to %L', current_database(), 'all'); end $$"


def test_a_worker_without_the_handler_leaves_a_step_to_one_that_has_it(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R25, W-05: it is shown as what it is, and taken when somebody who can comes."""
    step = database.start("doze")
    crew.hire_ready(app="few_chores")
    until(lambda: database.step(step)["standing"] == "no handler", "it was shown so")
    assert (database.step(step)["state"], database.step(step)["attempt"]) == ("pending", 0)
    assert database.story(step) == []
    other = database.start("smile")
    until(lambda: database.is_over(other), "the worker did what it can")

    crew.hire_ready()

    until(lambda: database.is_over(step), "the step was done")
    assert database.story(step) == ["claimed", "succeeded"]
    assert len(lines(folder, "end")) == 1
    proof.check(database, folder, started=2)


@pytest.mark.skipif(not shutil.which("faketime"), reason="faketime is not installed: `apt-get install faketime`")
def test_workers_whose_clocks_are_an_hour_off_claim_nothing_early_and_steal_no_lease(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R16: only the database's clock counts, and time spent is measured by no wall clock."""
    early, late = (
        crew.hire_ready("--name", name, prefix=("faketime", "-f", name), lease=LEASE) for name in ("+1h", "-1h")
    )
    later = database.start("doze", due_in=1800)
    held = [database.start("wait", gate="go") for _ in range(16)]
    until(lambda: len(database.held_by()) == 2, "both worked")
    until(lambda: len(renewed(database)) == len(held), "all leases were renewed")
    crew.open("go")
    until(lambda: database.is_over(*held), "all were over")

    assert [database.story(step) for step in held] == [["claimed", "succeeded"]] * len(held)
    assert database.step(later)["standing"] == "later"
    assert not early.said("lease.lost") + late.said("lease.lost")
    assert len(lines(folder, "begin")) == len(held)
    proof.check(database, folder, started=len(held) + 1, failed=1)  # the one that is due later has not begun


def renewed(database: Database) -> list[int]:
    """List steps whose lease is longer than the claim gave it."""
    wanted = "select id from holdfast.steps where lease_until > claimed_at + %s::interval + interval '100 ms'"
    return [step for (step,) in database.rows(wanted, LEASE)]


def test_a_settled_idle_worker_says_at_most_twelve_statements_a_minute(
    crew: Crew, database: Database, server: Server
) -> None:
    """W-06, W-07: one a poll, one a sweep, one a probe; counted here over quick rounds, reckoned for the usual ones.

    A step that is due in an hour must not make it busy, nor a schedule with a tick then.
    """
    database.start("doze", due_in=3600)
    with database.connection() as connection:
        define(connection, "hourly", every=timedelta(hours=1))
        define(connection, "yearly", cron="0 0 1 1 *")
    database.do(LOG_ALL)
    worker = crew.hire_ready("--probe-port", "0", poll_min="20ms", poll_max="20ms", recovery_interval="200ms")
    address = probe(worker)
    # Its only sweep comes by a timer of its own, in the first rounds or, on a busy machine, after many.
    until(lambda: rounds(address) > 20 and "sweep" in statements(server, database), "it settled down")
    rounds_before, before = rounds(address), statements(server, database)
    until(lambda: rounds(address) >= rounds_before + 100, "it went round a hundred times")
    said = statements(server, database)
    rounds_made = rounds(address) - rounds_before + 1  # read last, so that it covers every statement counted

    polls = said.count("claim_steps") - before.count("claim_steps")
    sweeps = said.count("measured_upkeep") - before.count("measured_upkeep")
    assert 0 < polls <= rounds_made
    assert 0 < sweeps <= rounds_made
    assert len(said) - len(before) == polls + sweeps, "nothing else is said"
    assert said.count("pg_notify") == 1
    usual = Options()
    a_minute = 60 / usual.poll_max.total_seconds() + 60 / usual.recovery_interval.total_seconds() + 60 / PROBE_EACH
    assert a_minute <= MOST_A_MINUTE


def rounds(address: str) -> float:
    """Read from its metrics how often the worker woke from a sleep."""
    with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answer:
        text = answer.read().decode()
    found = re.search(r'transitions_total\{from_state="idle",to_state="connecting"\} (\S+)', text)
    return float(found[1]) if found else 0.0


def statements(server: Server, database: Database) -> list[str]:
    """Read from the server's log what workers said to this database; what we ask is written otherwise."""
    name = database.value("select current_database()")
    text = server.log()
    said = re.findall(rf"@{name} LOG:  (?:statement|execute [^:]*): (.*)", text)
    named = (re.search(r"from holdfast\.(\w+)\(|(pg_notify)|(listen)", line) for line in said)
    return [found[1] or found[2] or found[3] for found in named if found]
