"""Flows on a server with the usual settings, which compiles what looks expensive (JIT): nothing of ours may look so."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cluster import FAST, Cluster
from holdfast import Fail, Holdfast, Retry, RetryPolicy
from holdfast.flow import reads, run_list
from holdfast.flow.define import Flow
from holdfast.flow.run_list import TasksWanted
from holdfast.kernel import calls, migrate
from holdfast.kernel.db import run
from holdfast.kernel.query import query
from holdfast.reads import dead_letter, queues_workers
from holdfast.testing import drain
from scenarios.crew import Server, until
from scenarios.home import HomeServer
from servers import EMBEDDED, owned_server

# Debian's, or those of another place that is laid out as Debian's: PLACE/17/bin/postgres.
PLACE = Path(os.environ.get("HOLDFAST_TEST_SERVERS", "/usr/lib/postgresql"))
DEBIAN = ["15", "16", "17", "18"]
# A session says once that it looks for the compiler, when it first meets a plan that is to be compiled.
STOCK = ("jit=on", "log_min_messages=debug1", "log_min_error_statement=debug1", "log_error_verbosity=default")
COMPILES = "probing availability of JIT provider"
EXPENSIVE = "set jit_above_cost = 0; select sum(g) from generate_series(1, 10) g"
FLOWS, STEPS = 20, 13


@pytest.fixture(scope="module", params=[EMBEDDED, *DEBIAN])
def stock(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param != EMBEDDED and not (PLACE / request.param / "bin" / "postgres").exists():
        pytest.skip(f"no PostgreSQL {request.param} in {PLACE}")
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        make = home if request.param == EMBEDDED else cluster
        with make(Path(name) / "server", request.param) as server:
            yield server


@contextmanager
def home(folder: Path, _: str) -> Iterator[Server]:
    with owned_server(folder):
        server = HomeServer(folder)
        with psycopg.connect(server.admin, autocommit=True) as admin:
            for setting in STOCK:
                name, value = setting.split("=")
                admin.execute(f"alter system set {name} = '{value}'")
            admin.execute("select pg_reload_conf()")
        until(lambda: is_on(server.admin), "the settings were read")
        yield server


def is_on(admin: str) -> bool:
    with psycopg.connect(admin) as connection:
        return connection.execute("show jit").fetchone() == ("on",)


@contextmanager
def cluster(folder: Path, major: str) -> Iterator[Server]:
    server = Cluster(PLACE / major / "bin", folder, settings=(*FAST, *STOCK))
    server.make()
    try:
        server.start()
        yield server
    finally:
        server.halt()


@pytest.fixture
def dsn(stock: Server) -> str:
    """Without the test clock: its table would be read by a plan type that is switched off."""
    with psycopg.connect(stock.admin, autocommit=True) as admin:
        admin.execute("create database flows")
    dsn = make_conninfo(stock.admin, dbname="flows")
    migrate.run(dsn)
    return dsn


def test_flows_are_worked_off_without_compiling_a_plan(stock: Server, dsn: str) -> None:
    hf = Holdfast(dsn)
    flow = chain(hf)

    @hf.task(retry=RetryPolicy(limit=2, base=timedelta(0), jitter=0))
    def mail(number: int) -> None:
        raise Retry("busy") if number % 2 else Fail("no such user")

    tasks = [flow.start() for _ in range(FLOWS)]
    mail.start_many([{"number": number} for number in range(20)])
    settled = drain(hf, bypass_backoff=True)
    with psycopg.connect(dsn, autocommit=True) as db:
        read_all(db, tasks[0].id)
        run(db, calls.upkeep())
        before = compiled(stock.log())
        db.execute(EXPENSIVE)

    assert settled == FLOWS * STEPS + 10 + 20  # the tasks fail, half of them at the second try
    assert before == []
    assert len(compiled(stock.log())) == 1, "the log does not tell what is compiled"


def compiled(log: str) -> list[str]:
    """Give what the log says about each session that met a plan to compile: the message, its context and statement."""
    entries = re.split(r"\n(?=\d{4}-\d\d-\d\d )", log)
    return ["\n".join(entries[at : at + 3]) for at, entry in enumerate(entries) if COMPILES in entry]


def chain(hf: Holdfast) -> Flow:
    flow = hf.flow("dozen")

    def later(first: int) -> int:
        return first + 1

    flow.step(name="first")(lambda: 1)
    before = "first"
    for number in range(1, STEPS):
        flow.step(name=f"step{number}", after=("first", before))(later)
        before = f"step{number}"
    return flow


def read_all(db: psycopg.Connection[Any], task_id: Any) -> None:
    """Look at what people look at."""
    assert len(run_list.newest_tasks(db, TasksWanted(), limit=50).rows) == FLOWS
    reads.steps(db, task_id)
    reads.history(db, task_id, limit=50)
    dead_letter.report(db, dead_letter.Scope())
    query(db, queues_workers.queues())
    db.execute("select * from flow.get_task_execution_context(%s)", [task_id])
    db.execute("select * from flow.get_system_health_counts()")
    db.execute("select * from flow.states_from_history(%s)", [task_id])
    db.execute("select * from holdfast.violations()")
