"""Connections that swallow everything and stay open: each call ends by its own deadline, and others take over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.errors import CommitUnknown, DatabaseError, Unreachable
from holdfast.work.handle import TaskHandle
from scenarios.crew import Crew, Database, until
from scenarios.history import lines
from scenarios.network.test_lost_starts import doze
from scenarios.network.test_network import COMMITS
from scenarios.proof import Proof
from scenarios.proxy import FaultProxy


@pytest.fixture
def hf(proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch) -> Iterator[Holdfast]:
    monkeypatch.setenv("HOLDFAST_CALL_DEADLINE", "500ms")
    hf = Holdfast(proxy.dsn)
    yield hf
    hf.close()


def is_started(start: Callable[[], None]) -> bool:
    try:
        start()
    except DatabaseError:
        return False
    return True


@pytest.mark.timeout(300)
def test_a_worker_that_nobody_answers_loses_its_task_to_another_and_heals(
    crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R12: its handler is told when the lease has run out; when the network passes again it works."""
    step = database.start("wait", gate="go")
    cut_off = crew.hire_ready("--name", "far", dsn=proxy.dsn, call_deadline="1s")
    until(lambda: lines(folder, "begin"), "the handler began")
    proxy.swallow()
    proof.add(rounds=1)
    near = crew.hire_ready("--name", "near", lease="60s")
    until(lambda: len(lines(folder, "begin")) == 2, "the other took over")
    cut_off.await_said("lease.lost")
    cut_off.await_said("worker.error_wait")
    crew.open("go")
    until(lambda: database.is_over(step), "the step was over")
    assert database.story(step) == ["claimed", "expired", "claimed", "succeeded"]
    assert lines(folder, "stopped")[0].worker.startswith("far/")
    near.kill()

    proxy.let_pass()

    cut_off.await_said("worker.connected", times=2)
    last = database.start("doze")
    until(lambda: database.is_over(last), "it worked again")
    proof.check(database, folder, started=2)


@pytest.mark.timeout(300)
def test_a_handler_is_told_by_its_lease_and_not_by_the_deadline_of_a_renewal(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path
) -> None:
    """R12: a renewal that nobody answers may take longer than the lease has left."""
    database.start("wait", gate="go")
    worker = far_crew.hire_ready(lease="1s", call_deadline="1h")
    until(lambda: lines(folder, "begin"), "the handler began")

    proxy.swallow()

    worker.await_said("lease.lost")
    until(lambda: lines(folder, "stopped"), "the handler was told")
    assert not worker.said("lease.renewal_failed")


@pytest.mark.parametrize("half", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize(("kind", "commit"), COMMITS)
def test_a_commit_that_is_swallowed_does_not_keep_its_step_from_being_recovered(
    far_crew: Crew,
    proxy: FaultProxy,
    database: Database,
    folder: Path,
    proof: Proof,
    kind: str,
    commit: str,
    half: bool,
) -> None:
    """R12: a server that waits for the commit of a settle lets go of the step by the same deadline.

    One that gets both in one message has neither, also when half of that message came.
    """
    far_crew.hire_ready(call_deadline="1s", error_wait="50ms")
    proxy.swallow_at(commit, half=half)
    proof.add(rounds=1)

    step = database.start(kind)

    until(lambda: not proxy.is_armed, "a commit was swallowed")
    until(lambda: database.is_over(step), "it was done by another attempt")
    assert len(lines(folder, "end")) == 2
    proof.check(database, folder, started=1)


def test_a_start_that_nobody_answers_ends_by_its_deadline(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R12: on a connection that was good before, and when a new one is needed; it heals by itself."""
    task = doze(hf)
    handles: list[TaskHandle[None]] = []
    until(lambda: is_started(lambda: handles.append(task.options(key="first").start())), "the first was started")
    (first,) = handles
    proxy.swallow()
    for error in (CommitUnknown, Unreachable, Unreachable):  # sent on the old connection; then there is none
        proof.add(rounds=1)
        with pytest.raises(error):
            task.options(key="second").start()
    with pytest.raises(Unreachable):
        first.status()

    proxy.let_pass()

    second: list[int] = []
    until(lambda: is_started(lambda: second.append(task.options(key="second").start().id)), "it connected anew")
    crew.hire("--burst")
    until(lambda: database.is_over(first.id, *second), "both were done")
    proof.check(database, folder, started=2)


def test_an_async_start_that_nobody_answers_ends_by_its_deadline(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R12."""
    task = doze(hf)

    async def astarted(key: str) -> int:
        """Start by a key, again until it is answered: on a busy machine the deadline may be too short."""
        while True:
            with suppress(DatabaseError):
                return (await task.options(key=key).astart()).id

    async def start() -> list[int]:
        try:
            first = await astarted("first")
            proxy.swallow()
            for error in (CommitUnknown, Unreachable, Unreachable):
                proof.add(rounds=1)
                with pytest.raises(error):
                    await task.options(key="second").astart()
            proxy.let_pass()
            return [first, await astarted("second")]
        finally:
            await hf.aclose()

    started = asyncio.run(start())

    crew.hire("--burst")
    until(lambda: database.is_over(*started), "both were done")
    proof.check(database, folder, started=2)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_listening_connection_that_is_swallowed_is_found_out_and_made_anew(
    far_crew: Crew, proxy: FaultProxy, database: Database, folder: Path, proof: Proof
) -> None:
    """R12: it polls once an hour here, so that only a hint can have told it; its own ping comes each half minute."""
    worker = far_crew.hire_ready(poll_min="1h", poll_max="1h", call_deadline="1s", error_wait="500ms")
    until(lambda: database.value("select bool_or(is_asleep) from holdfast.worker_list"), "it fell asleep")
    proxy.swallow()
    proof.add(rounds=1)
    proxy.let_pass()
    worker.await_said("listener.lost")

    step = database.start("doze")

    until(lambda: database.is_over(step), "it heard of it")
    proof.check(database, folder, started=1)
