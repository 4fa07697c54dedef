"""The toy of tests/toy plugs its events, its pages, its way to retry and its violations into generic code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from psycopg import Connection

from cli import in_process
from docs.test_generated import generator
from holdfast import Fail, Holdfast, faces
from holdfast.connections.deadline import connect
from holdfast.errors import BadDefinition
from holdfast.faces import Face
from holdfast.kernel import calls, migrate, self_test_place, self_test_schema
from holdfast.kernel.db import run
from holdfast.reads import dead_letter
from holdfast.testing import Clock
from kernel.schedules import at, define, fire, ticks
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


def pony(asker: str) -> None:
    """Grant a pony to all who do not ask for two."""
    if asker == "greedy":
        raise Fail({"type": "Greedy", "message": "one pony each"})


def denied(hf: Holdfast, db: Connection[Any]) -> int:
    """Start a wish that fails for good; return its step."""
    hf.face("toy").wish(pony)
    run_id = hf.face("toy").start("greedy", ["pony"])
    burst(hf)
    row = db.execute("select s.id from holdfast.steps s where s.run_id = %s", [run_id]).fetchone()
    assert row is not None
    return int(row[0])


def reasons(db: Connection[Any], step_id: int) -> list[str]:
    query = "select reason from holdfast.journal where step_id = %s and reason is not null order by id"
    return [reason for (reason,) in db.execute(query, [step_id])]


def test_its_events_are_subscribed_to_as_those_of_any_face(hf: Holdfast) -> None:
    events: list[tuple[str, Any]] = []
    hf.on("toy.*")(lambda event: events.append((event.name, event.payload["kind"])))
    hf.face("toy").wish(pony)
    hf.face("toy").start("ann", ["pony"])

    burst(hf).hooks.flush(5)
    hf._engine.subscribers.flush(5)

    assert events == [("toy.wish.granted", "pony")]
    with pytest.raises(BadDefinition, match=r"toy\.wish\.granted"):
        hf.on("toy.wish.grantd")


def test_its_events_machines_and_pages_are_in_the_reference(hf: Holdfast, db: Connection[Any]) -> None:
    module = generator()
    pages = module.pages(db)

    assert "## `toy`" in pages["events.md"]
    assert "| `toy.wish.granted` |" in pages["events.md"]
    assert "The states of a wish. `toy`: wishes that are granted." in pages["machines.md"]
    assert pages["toy.md"] == "# Wishes\n"
    assert "## toy: wishes that are granted" in module.function_map.function_map(db)


def test_its_own_way_to_retry_is_taken_by_the_command_line_and_the_dead_letter(
    hf: Holdfast, db: Connection[Any], dsn: str
) -> None:
    step_id = denied(hf, db)
    environment = {**os.environ, "HOLDFAST_DSN": dsn}

    for command in (["runs", "retry", str(step_id), "--reason", "first"], ["dlq", "retry", str(step_id)]):
        assert in_process.run(command, environment, None).returncode == 0
        burst(hf)
    task = hf.task(name="plain")(lambda: 1 / 0).start()
    burst(hf)
    moved = dead_letter.deal_with(db, "retry", [step_id, task.id], "many")

    assert {each.id for each in moved} == {str(step_id), str(task.id)}
    assert reasons(db, step_id) == ["please: first", "please: no reason", "please: many"]
    assert reasons(db, task.id) == ["many"]


def test_its_violations_are_found_in_the_schema_of_a_self_test(hf: Holdfast, dsn: str) -> None:
    """A self-test judges its own rows by the copy of the face's function, not by the original's."""
    name = "holdfast_selftest_0123abcd"
    with connect(dsn) as connection:
        self_test_place.make(connection, name)
        try:
            with self_test_schema.renamed(name):
                migrate.run(dsn)
                with connect(dsn) as copy:
                    call = calls.start_run("toy.list", "wishes", "toy.wish", steps=[{"kind": "pony"}], input={})
                    (run_id,) = run(copy, call)
                    violations = run(copy, calls.violations())
        finally:
            self_test_place.sweep(connection)

    assert [(v.invariant, v.subject) for v in violations] == [("toy_has_an_asker", f"run {run_id}")]
    assert hf._engine.make(calls.violations()) == []


def test_a_schedule_starts_its_work_and_asks_it_what_is_open(hf: Holdfast, db: Connection[Any], clock: Clock) -> None:
    """The kernel knows none of its functions but by its entry."""
    clock.set(at("03-01 00:00"))
    hf.face("toy").wish(pony)
    define(db, "wishes", face="toy", target="pony", every=timedelta(hours=1), overlap="skip")
    define(db, "alone", face="toy", target="pony", options={"alone": True}, every=timedelta(hours=1), overlap="cancel")
    for hour in (1, 2):
        clock.set(at(f"03-01 0{hour}:00"))
        fire(db)

    assert [outcome for _, outcome in ticks(db, "wishes")] == ["started", "skipped"]
    assert [outcome for _, outcome in ticks(db, "alone")] == ["started", "started"]
    assert db.execute("select state from holdfast.steps where run_id is null order by id").fetchall() == [
        ("dropped",),
        ("hoped",),
    ]
    assert hf._engine.make(calls.violations()) == []
