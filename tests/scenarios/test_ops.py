"""Ops runs whose workers are killed, frozen or stopped: each run ends once, and no program of theirs goes on."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from programs.shells import is_alive
from scenarios.crew import Crew, Database, Member, until
from scenarios.deploys_places import CELLS, SHORT, Cell
from scenarios.proof import Proof

KILLED, NOW = -signal.SIGKILL, 130


def queue(database: Database, kind: str) -> str:
    """Queue a run of a kind that has a queue of its own."""
    database.rows("select holdfast.define_kind(%s, queue => %s)", f"ops:{kind}", kind)
    run_id: str = database.value(
        "select run_id from ops.queue_run('shop', 'staging', 'sha', 'main', p_kind => %s)", kind
    )
    return run_id


def hire(crew: Crew, *kinds: str, **settings: str) -> Member:
    queues = [option for kind in kinds for option in ("--queue", kind)]
    return crew.hire("--name", kinds[0], *queues, "-c", "1", app="deploys", **settings)


def statuses(database: Database) -> dict[str, str]:
    return dict(database.rows("select kind, status from ops.runs"))


def ended(database: Database, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = database.value("select metadata from ops.runs where kind = %s", kind)
    return found


def written(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().split("\n")[:-1] if path.exists() else []


def until_begun(folder: Path, count: int) -> None:
    until(lambda: len(written(folder, "pids")) == count, f"{count} programs had begun")


@pytest.mark.parametrize(
    "cells", [pytest.param(SHORT, id="some"), pytest.param(CELLS, id="all", marks=pytest.mark.long)]
)
def test_a_worker_killed_at_any_place_of_a_run_leaves_one_end_and_no_program(
    crew: Crew, database: Database, folder: Path, proof: Proof, cells: tuple[Cell, ...]
) -> None:
    """R2, O-73, O-91, O-98: of its claim, its events, its program, its artifact and its end."""
    runs = {cell.kind: queue(database, cell.kind) for cell in cells}
    waiting = [cell.kind for cell in cells if cell.waits]
    armed = [hire(crew, cell.kind, failpoint=cell.arms) for cell in cells]
    if not all(cell.waits for cell in cells):
        until(lambda: all(m.has_ended for m, cell in zip(armed, cells, strict=True) if cell.waits), "some were killed")
        crew.open("go")

    assert {member.name: member.exit_code() for member in armed} == dict.fromkeys(runs, KILLED), waiting
    until(lambda: not any(is_alive(int(pid)) for pid in written(folder, "pids")), "all programs were dead")
    crew.open("go")
    hire(crew, "finisher", *runs)
    until(
        lambda: statuses(database) == {cell.kind: cell.ends for cell in cells}, f"all had ended: {statuses(database)}"
    )

    stale = [ended(database, cell.kind) for cell in cells if cell.ends == "cancelled"]
    assert all(metadata["reason"].startswith("Stale run (") for metadata in stale)
    assert all(metadata["original_worker"].partition("/")[0] in runs for metadata in stale)
    finished = dict(
        database.rows("select run_id, count(*) from ops.run_events where message like 'Run finished%%' group by 1")
    )
    deployed = written(folder, "deployed")
    proof.add(
        rounds=len(cells), kills=len(cells), lost=len(runs) - len(finished), twice=len(deployed) - len(set(deployed))
    )
    assert set(finished.values()) == {1}
    assert len(deployed) == len(set(deployed))
    assert database.rows("select * from holdfast.violations()") == []


def test_a_frozen_worker_loses_its_run_and_its_program_ends_when_it_wakes(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R3: its run is cancelled as stale; what it sends afterwards is refused, and its handler is told to stop."""
    run_id = queue(database, "frozen")
    frozen = hire(crew, "frozen")
    until_begun(folder, 1)
    until(lambda: statuses(database) == {"frozen": "running"}, "it ran")
    frozen.send(signal.SIGSTOP)
    other = hire(crew, "first")
    until(lambda: statuses(database) == {"frozen": "cancelled"}, "it was stale")
    events = database.value("select count(*) from ops.run_events where run_id = %s", run_id)

    frozen.send(signal.SIGCONT)

    until(lambda: written(folder, "stopped"), "the handler was stopped")
    until(lambda: not any(is_alive(int(pid)) for pid in written(folder, "pids")), "the program was dead")
    frozen.await_said("lease.lost")
    assert database.value("select count(*) from ops.run_events where run_id = %s", run_id) == events
    assert ended(database, "frozen")["reason"] == "Stale run (running without heartbeat)"
    assert written(folder, "deployed") == []
    assert not other.has_ended
    proof.add(rounds=1)


def test_a_stopped_worker_takes_no_run_more_and_cancels_what_outlives_its_grace(
    crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R31, C-40: once it waits for its runs; told twice it ends at once. Nothing is handed back."""
    for kind in ("first", "second"):
        queue(database, kind)
    patient, hasty = hire(crew, "first", grace="300ms"), hire(crew, "second")
    until_begun(folder, 2)
    queue(database, "first")

    patient.send(signal.SIGTERM)
    hasty.send(signal.SIGTERM)
    hasty.await_said("worker.draining")
    hasty.send(signal.SIGTERM)

    assert (patient.exit_code(), hasty.exit_code()) == (0, NOW)
    until(lambda: not any(is_alive(int(pid)) for pid in written(folder, "pids")), "the programs were dead")
    found = database.rows("select kind, status, metadata ->> 'reason' from ops.runs order by step_id")
    reason = "Worker shutdown (the run outlived the grace period)"
    assert found == [("first", "cancelled", reason), ("second", "cancelled", reason), ("first", "queued", None)]
    proof.add(rounds=2)


def test_one_key_from_fifty_threads_is_one_run_whatever_else_they_say(database: Database, proof: Proof) -> None:
    """R22, O-79, C-93: `ops.queue_run` returns the existing run where the kernel would refuse another input."""
    hf = Holdfast(database.dsn)
    start = threading.Barrier(50)
    runs: list[str] = []

    def race(number: int) -> None:
        start.wait()
        runs.append(hf.ops.queue("shop", env="staging", git_sha=f"sha-{number % 2}", key="deploy-1").id)

    threads = [threading.Thread(target=race, args=[number]) for number in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hf.close()

    assert len(runs) == 50
    assert len(set(runs)) == 1
    assert database.value("select count(*) from ops.runs") == 1
    proof.add(rounds=50, lost=0, twice=0)
