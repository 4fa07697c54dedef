"""A connection breaks while something is asked: the error says whether it may have been done, and how to go on."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from holdfast import Holdfast
from holdfast.errors import CommitUnknown, Unreachable
from holdfast.flow.define import Flow
from holdfast.kernel import calls
from holdfast.work.define import Task
from scenarios.crew import Crew, Database, Server, until, waiting_for_a_lock
from scenarios.network.test_lost_starts import doze
from scenarios.proxy import FaultProxy

Way = Callable[[Holdfast], Any]


@pytest.fixture
def hf(proxy: FaultProxy) -> Iterator[Holdfast]:
    hf = Holdfast(proxy.dsn)
    doze(hf)
    order_of(hf)
    yield hf
    hf.close()


def task_of(hf: Holdfast) -> Task[..., None]:
    handler = hf._engine.registry.find("doze")
    assert handler is not None
    return Task(handler, hf._engine)


def order_of(hf: Holdfast) -> Flow:
    order = hf.flow("order")

    @order.step
    def only() -> None: ...

    return order


def flow_start(hf: Holdfast) -> Any:
    return hf.flows.find("order").options(key="the key").start()


def flow_astart(hf: Holdfast) -> Any:
    async def start() -> None:
        try:
            await hf.flows.find("order").options(key="the key").astart()
        finally:
            await hf._engine.amake(calls.clock())  # on the connection that takes the place of the lost one
            await hf.aclose()

    asyncio.run(start())


def start_many(hf: Holdfast) -> Any:
    return task_of(hf).start_many([{}] * 3)


WAYS: list[tuple[Way, str, str]] = [
    (flow_start, "initialize_task", "'the key'"),
    (flow_astart, "initialize_task", "'the key'"),
    (start_many, "^commit", "bulk start"),
    (
        lambda hf: hf._engine.make(calls.start_step("work.task", "doze", key="its key")),
        "start_step",
        "'its key'",
    ),
    (lambda hf: hf.handle(1).cancel(), "cancel", "holdfast.cancel"),
    (lambda hf: hf.flows.find("order").start().resolve(step="only"), "resolve", "holdfast.resolve"),
]


@pytest.mark.parametrize(("way", "statement", "named"), WAYS, ids=[named for _, _, named in WAYS])
def test_a_write_whose_answer_is_lost_may_have_been_done(
    hf: Holdfast, proxy: FaultProxy, way: Way, statement: str, named: str
) -> None:
    """R11: starts and acts by hand; the key is named where there is one."""
    task_of(hf).start()
    proxy.cut(statement)

    with pytest.raises(CommitUnknown) as raised:
        way(hf)

    assert named in str(raised.value)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)


def test_what_was_certainly_not_done_is_not_in_doubt(hf: Holdfast, proxy: FaultProxy, database: Database) -> None:
    """R11: a read, a bulk start before its commit, and a connection that was closed before anything was sent."""
    handle = task_of(hf).start()
    proxy.cut("step_status")
    with pytest.raises(Unreachable):
        handle.status()
    proxy.cut("take_staged")
    with pytest.raises(Unreachable):
        start_many(hf)
    with hf._engine.connection() as connection:
        connection.close()
        with pytest.raises(Unreachable):
            task_of(hf).options(conn=connection).start()

    assert database.value("select count(*) from holdfast.steps") == 1


def test_what_breaks_in_a_transaction_of_the_callers_is_the_callers(hf: Holdfast, proxy: FaultProxy) -> None:
    """R11: only they know what else was in it."""
    for kind in ("start", "start_many"):
        with psycopg.connect(proxy.dsn) as conn:
            task = task_of(hf).options(conn=conn)
            proxy.cut("start_task|take_staged")
            with pytest.raises(psycopg.OperationalError):
                task.start() if kind == "start" else task.start_many([{}])


@pytest.mark.both_servers
def test_a_start_in_a_server_that_crashes_may_have_been_done(database: Database, server: Server) -> None:
    """R9: every process of the server ends at once, the one that carries out the start with them."""
    hf = Holdfast(database.dsn)
    task = doze(hf)
    task.options(key="one").start()
    with ThreadPoolExecutor(1) as apart, closing(psycopg.connect(database.dsn)) as lock:
        lock.execute("lock table holdfast.steps in access exclusive mode")
        starting = apart.submit(task.options(key="two").start)
        until(lambda: waiting_for_a_lock(database), "the start was under way")

        server.restart()

        with pytest.raises(CommitUnknown, match="two"):
            starting.result()
    assert task.options(key="two").start().status().state == "pending"
    hf.close()


@pytest.mark.parametrize("statement", ["pg_tables", "holdfast.migrations"])
def test_a_worker_whose_first_questions_are_not_answered_waits(
    far_crew: Crew, proxy: FaultProxy, database: Database, statement: str
) -> None:
    """W-27, W-34, R13: the server went down between its handshake and the check of the schema."""
    step = database.start("doze")
    proxy.lose(statement)

    worker = far_crew.hire("--burst")

    assert worker.exit_code() == 0, worker.text()
    assert not proxy.is_armed
    assert database.is_over(step)


def test_a_worker_that_starts_when_there_is_no_connection_left_waits(crew: Crew, database: Database) -> None:
    """W-34, R13: a full server is an outage, and ends."""
    name = f"hf_full_{os.getpid()}"
    with database.connection() as admin:
        admin.execute(f"create role {name} login in role hf_worker connection limit 0")  # type: ignore[arg-type]
    step = database.start("doze")
    worker = crew.hire("--burst", dsn=make_conninfo(database.dsn, user=name))
    (line, *_) = worker.await_said("worker.error_wait")

    with database.connection() as admin:
        admin.execute(f"alter role {name} connection limit -1")  # type: ignore[arg-type]

    assert worker.exit_code() == 0, worker.text()
    assert line["kind"] == "TooManyConnections"
    assert database.is_over(step)
    with database.connection() as admin:
        admin.execute(f"drop role {name}")  # type: ignore[arg-type]
