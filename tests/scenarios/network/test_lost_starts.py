"""Answers to those who start tasks and act on them by hand are cut off: asked again, each learns what is true."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from holdfast import Holdfast
from holdfast.errors import CommitUnknown, WrongState
from holdfast.work.define import Task
from scenarios.crew import Crew, Database, until
from scenarios.proof import Proof
from scenarios.proxy import FaultProxy

ROUNDS = 20
MANY = 50


@pytest.fixture
def hf(proxy: FaultProxy) -> Iterator[Holdfast]:
    hf = Holdfast(proxy.dsn)
    yield hf
    hf.close()


def doze(hf: Holdfast) -> Task[..., None]:
    """Name the crew's task in an app that only starts it."""

    def doze(seconds: float = 0.0) -> None: ...

    return hf.task(doze)


def strike(proxy: FaultProxy, proof: Proof, statement: str) -> None:
    proof.chance.choice([proxy.cut, proxy.lose])(statement)
    proof.add(rounds=1)


def order(task: Task[..., None], proxy: FaultProxy, number: int) -> None:
    with psycopg.connect(proxy.dsn) as conn:
        conn.execute("insert into public.orders values (%s)", [number])
        task.options(conn=conn).start_many([{}] * MANY)


def drain(crew: Crew, database: Database, started: int) -> None:
    crew.hire("--burst")
    until(lambda: database.count("succeeded") >= started, "all were done")


def test_a_start_whose_answer_was_cut_off_is_the_same_task_when_started_again(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R11: by its key; there is one row, whether the first answer was a yes or the request never arrived."""
    task = doze(hf)
    started = []
    for number in range(ROUNDS):
        strike(proxy, proof, "start_task")
        with pytest.raises(CommitUnknown):
            task.options(key=str(number)).start()
        handle = task.options(key=str(number)).start()
        assert task.options(key=str(number)).start().id == handle.id
        started.append(handle.id)

    assert database.rows("select id from holdfast.steps order by id") == [(step,) for step in sorted(set(started))]
    assert len(set(started)) == ROUNDS
    drain(crew, database, ROUNDS)
    proof.check(database, folder, started=ROUNDS)


def test_an_async_start_whose_answer_was_cut_off_is_the_same_task_when_started_again(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R11."""
    task = doze(hf)

    async def start_all() -> set[int]:
        started = set()
        for number in range(ROUNDS):
            strike(proxy, proof, "start_task")
            with pytest.raises(CommitUnknown):
                await task.options(key=str(number)).astart()
            started.add((await task.options(key=str(number)).astart()).id)
        await hf.aclose()
        return started

    assert len(asyncio.run(start_all())) == ROUNDS
    drain(crew, database, ROUNDS)
    proof.check(database, folder, started=ROUNDS)


def test_a_bulk_start_whose_answer_was_cut_off_is_there_whole_or_not_at_all(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, folder: Path, proof: Proof
) -> None:
    """R11: it has no key, so its caller looks; in a transaction of the caller's own a row of theirs tells."""
    task = doze(hf)
    database.do("create table public.orders (number int primary key)")
    for number in range(ROUNDS):
        strike(proxy, proof, "^commit")
        with pytest.raises(psycopg.OperationalError):
            order(task, proxy, number)
    orders = database.value("select count(*) from public.orders")

    assert 0 < orders < ROUNDS
    assert database.value("select count(*) from holdfast.steps") == orders * MANY
    drain(crew, database, orders * MANY)
    proof.check(database, folder, started=orders * MANY)


def test_a_cancel_whose_answer_was_cut_off_was_granted_or_is_granted_now(
    hf: Holdfast, proxy: FaultProxy, database: Database, proof: Proof
) -> None:
    """R11: asked again it cancels, or says that it is cancelled; the journal has one."""
    task = doze(hf)
    for _ in range(ROUNDS):
        handle = task.start()
        strike(proxy, proof, "cancel")
        with pytest.raises(CommitUnknown):
            handle.cancel("by hand")
        with suppress(WrongState):
            handle.cancel("by hand")
        assert (handle.status().state, database.story(handle.id)) == ("cancelled", ["cancelled"])


def test_a_retry_whose_answer_was_cut_off_was_granted_or_is_granted_now(
    hf: Holdfast, proxy: FaultProxy, database: Database, crew: Crew, proof: Proof
) -> None:
    """R11: asked again it reopens the task, or says that it waits already; the journal has one."""
    failed = [database.start("deposit_once") for _ in range(ROUNDS)]
    database.do("alter table public.effects rename to gone")
    crew.hire("--burst")
    until(lambda: database.is_over(*failed), "all had failed")
    for step in failed:
        strike(proxy, proof, r"holdfast.\W*retry")
        with pytest.raises(CommitUnknown):
            hf.handle(step).retry("by hand")
        with suppress(WrongState):
            hf.handle(step).retry("by hand")
        assert database.story(step) == ["claimed", "failed", "reopened"]
