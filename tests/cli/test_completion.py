"""Completion by the shell: what is in the database where it answers, and otherwise nothing at all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cli.conftest import environment
from cli.flows import begin, define
from kernel.steps import node, start, start_flow


@pytest.fixture
def complete(tmp_path):
    """Ask as bash does, for the last word of a line; gives what it was offered, and what was said besides."""

    def ask(line, **settings):
        asked = {"_HOLDFAST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
        done = subprocess.run(
            [Path(sys.executable).with_name("holdfast")],
            env=environment(**({"home": tmp_path / "no home"} | settings)) | asked,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.split(), done.stderr

    return ask


def test_queues_and_ids_of_late_are_completed(complete, dsn, db):
    step_id, run_id = start(db, queue="mail"), start_flow(db, node("a", queue="printing"))

    assert complete("holdfast queues pause ", dsn=dsn) == (["mail", "printing"], "")
    assert complete("holdfast queues resume m", dsn=dsn) == (["mail"], "")
    assert complete("holdfast runs show ", dsn=dsn) == ([str(step_id), str(run_id)], "")
    assert complete(f"holdfast runs cancel {str(run_id)[:8]}", dsn=dsn) == ([str(run_id)], "")


def test_flows_and_their_tasks_are_completed(complete, dsn, db):
    define(db)
    define(db, "billing")
    task_id = begin(db)
    start(db)

    assert complete("holdfast flow start o", dsn=dsn) == (["order"], "")
    assert complete("holdfast flow show ", dsn=dsn) == ([task_id], "")
    assert complete("holdfast flow graph ", dsn=dsn) == (["billing", "order", task_id], "")


@pytest.mark.parametrize(
    "settings",
    [{"dsn": "postgresql://127.0.0.1:1/none"}, {"dsn": "postgresql://["}, {"dsn_file": "/nowhere"}, {"typo": "x"}, {}],
)
def test_without_an_answer_there_is_nothing_and_no_error(complete, tmp_path, settings):
    """And no server is started for it."""
    assert complete("holdfast queues pause ", **settings) == ([], "")
    assert not (tmp_path / "no home").exists()
