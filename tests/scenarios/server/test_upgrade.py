"""The next release migrates the database while workers of this one are at work: they go on, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.kernel import migrate
from scenarios.crew import SOURCES, Crew, Database, until
from scenarios.producing import acknowledged, producing
from scenarios.proof import Proof
from scenarios.server.test_outages import backends, cut

RELEASES = 2
TROUBLE = ("retried", "failed", "expired", "released")


def next_release(place: Path, number: int) -> Path:
    """Make a release with one migration more, and functions that are not the same."""
    shutil.copytree(SOURCES / "holdfast", place / "holdfast", ignore=shutil.ignore_patterns("__pycache__"))
    migrations = place / "holdfast/sql/kernel/migrations"
    for more in range(migrate.code_version() + 1, number + 1):
        (migrations / f"{more:04}_next.sql").write_text(f"alter table holdfast.steps add column next_{more} text;\n")
    with (place / "holdfast/sql/kernel/functions/claim/claim_steps.sql").open("a") as function:
        function.write(f"-- {number}\n")
    return place


def migrate_twice_at_once(release: Path, database: Database) -> list[str]:
    """Run `holdfast db migrate` of a release in two processes, and give what either of them applied."""
    settings = {"PYTHONPATH": str(release), "HOLDFAST_DSN": database.dsn}
    command = [sys.executable, "-m", "holdfast", "db", "migrate", "--json"]
    both = [
        subprocess.Popen(command, env=os.environ | settings, cwd=release, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    answers = [process.communicate()[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    return sorted(part for answer in answers for part in json.loads(answer)["applied"])


@pytest.mark.long
@pytest.mark.timeout(300)
def test_workers_of_this_release_go_on_while_the_next_migrates(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R32: twice at once, release after release; no call of theirs fails, and they come back after a cut."""
    workers = [crew.hire_ready(lease="60s") for _ in range(2)]
    with producing(database.dsn, producers=1) as told:
        for number in range(migrate.code_version() + 1, migrate.code_version() + 1 + RELEASES):
            done = database.count("succeeded")
            until(lambda: database.count("succeeded") > done + 50, "work went on")  # noqa: B023
            release = next_release(folder / f"release-{number}", number)

            applied = migrate_twice_at_once(release, database)

            assert applied == [f"{number:04}_next", "functions, views and machines"]
            proof.add(rounds=1)
        assert [error for one in told for error in one.refusals] == []
        assert [worker.said("worker.error_wait") for worker in workers] == [[], []]
        assert {event: database.count(event) for event in TROUBLE} == dict.fromkeys(TROUBLE, 0)
        cut(database, *backends(database))
        done = database.count("succeeded")
        until(lambda: database.count("succeeded") > done + 50, "they were back")
    started = acknowledged(told)

    until(lambda: database.count("succeeded") >= started, "all were done")

    proof.check(database, folder, started=started)
