"""A face is one entry in one list: the toy of tests/toy plugs in without a change to any module."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from cli import in_process
from holdfast import Holdfast, faces
from holdfast.errors import Rejected, RunPartial
from holdfast.faces import Face
from holdfast.kernel import calls, migrate
from holdfast.kernel.db import run
from worker.running import burst

pytestmark = pytest.mark.one_server


@pytest.fixture
def toy() -> Iterator[Face]:
    with faces.plugged("toy", "toy.face") as face:
        yield face


@pytest.fixture
def hf(dsn: str, toy: Face) -> Iterator[Holdfast]:
    migrate.run(dsn)
    app = Holdfast(dsn)
    yield app
    app.close()


def test_it_is_installed_as_a_part_of_its_own(hf: Holdfast, dsn: str, toy: Face) -> None:
    with psycopg.connect(dsn) as connection:
        parts = connection.execute("select part from holdfast.installed order by 1").fetchall()
        machines = connection.execute(
            "select machine, label from holdfast.machines where machine like 'toy.%'"
        ).fetchall()

    assert ("toy",) in parts
    assert dict(machines) == toy.machines
    assert migrate.run(dsn) == []


def test_each_face_is_asked_about_its_own_steps_and_no_others(hf: Holdfast) -> None:
    """Steps of two faces and a plain task in one batch: inputs, questions and endings go to whom they belong."""
    toys, seen = hf.face("toy"), []
    toys.watch()
    order = hf.flow("order")
    finished: list[str] = []
    hf.on("flow.run.completed")(lambda event: finished.append(event.name))

    def pony(asker: str) -> None:
        seen.append(f"pony for {asker}")

    toys.wish(pony)
    order.step(name="pay")(lambda amount: seen.append(f"paid {amount}"))
    plain = hf.task(name="plain")(lambda: seen.append("plain"))
    toys.start("ann", ["pony", "pony"])
    order.start(amount=7)
    plain.start()
    worker = burst(hf)
    worker.hooks.flush(5)

    watcher = toys.watcher
    assert sorted(seen) == ["paid 7", "plain", "pony for ann", "pony for ann"]
    assert (watcher.claimed_kinds, watcher.begun_kinds) == (["pony"] * 2, ["pony"] * 2)
    assert watcher.endings == [("pony", "succeeded")] * 2
    assert sum(watcher.answers) == 2
    assert finished == ["flow.run.completed"]


def test_its_violations_are_listed_with_the_kernels(hf: Holdfast, db: Connection[Any]) -> None:
    assert run(db, calls.violations()) == []

    run_id = hf.face("toy").start("ann", ["pony"])
    db.execute("update holdfast.runs set input = '{}' where id = %s", [run_id])

    assert [(v.invariant, v.subject) for v in run(db, calls.violations())] == [("toy_has_an_asker", f"run {run_id}")]


def test_its_ids_lead_to_its_handles(hf: Holdfast) -> None:
    run_id = hf.face("toy").start("ann", ["pony"])
    task = hf.task(name="plain")(lambda: None).start()
    order = hf.flow("order")
    order.step(name="pay")(lambda: None)
    flow = order.start()

    assert [hf.handle(each).id for each in (f"list-{run_id}", task.id, str(task.id), flow.id, str(flow.id))] == [
        run_id, task.id, task.id, flow.id, flow.id,
    ]  # fmt: skip


def test_a_list_that_is_granted_in_part_says_how_many_and_its_retry_returns_another_handle(hf: Holdfast) -> None:
    """The protocol of handles, for a face whose runs end partly and are retried as new ones."""
    toys = hf.face("toy")
    toys.wish(grant)
    toys.wish(deny)
    toys.wish(pony)
    halved = hf.handle(f"list-{toys.start('ann', ['grant', 'deny', 'grant'])}")
    burst(hf)

    with pytest.raises(RunPartial) as raised:
        halved.result(timeout=1)
    again = halved.retry("eve")
    burst(hf)

    error = raised.value
    assert (error.run_id, error.total, error.succeeded, error.failed) == (halved.id, 3, 2, 1)
    assert error.exit_code == 3
    assert (again.id != halved.id, again.result(timeout=1)) == (True, "all granted")


def test_its_commands_are_commands(toy: Face) -> None:
    program = "import sys; sys.argv[0] = 'holdfast'; from holdfast.cli import main; main()"
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-c", program, "toy", "grant", "pony"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)

    assert (done.returncode, done.stdout) == (0, "granted: pony\n"), done.stderr


def test_its_states_are_coloured_by_what_they_mean(hf: Holdfast, dsn: str) -> None:
    """The words `granted`, `denied`, `halved` and `hoped` stand in no module of the command line."""
    toys = hf.face("toy")
    toys.wish(deny)
    toys.wish(grant)
    for kinds in (["grant"], ["deny"], ["grant", "deny"]):
        toys.start("ann", kinds)
    burst(hf)
    toys.start("ann", ["grant"])
    surroundings = {**os.environ, "HOLDFAST_DSN": dsn, "FORCE_COLOR": "1", "COLUMNS": "200", "TERM": "xterm-256color"}

    screen = in_process.run(["runs", "list"], surroundings, None).stdout

    for style, state in (("32", "✓ granted"), ("1;31", "✗ denied"), ("33", "◐ halved"), ("", "○ hoped")):
        assert f"\x1b[{style}m{state}" in screen if style else state in screen


def pony(asker: str) -> None:
    """Grant a pony."""


def grant(asker: str) -> None:
    """Do nothing: that is how wishes are granted."""


def deny(asker: str) -> None:
    raise Rejected(f"not for {asker}")
