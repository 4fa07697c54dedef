"""A primary and its synchronous standby: the one is killed, the other promoted. And servers that only can be read."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from cluster import Cluster
from holdfast import embedded
from holdfast.kernel import migrate
from scenarios.crew import Crew, Database, until
from scenarios.history import judge, lines
from scenarios.producing import acknowledged, producing
from scenarios.proof import Proof

NAME = "standby"
PORTS = (5432, 5433)
PROMOTIONS = 2
NONE_OPEN = "select not exists (select from holdfast.steps where finished_at is null)"

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]


class Pair:
    """Two servers, one of them at a time the primary; what is committed is on both."""

    def __init__(self, folder: Path) -> None:
        programs = embedded.binary("postgres").parent
        self.primary, self.standby = (Cluster(programs, folder, port=port) for port in PORTS)
        self.primary.make()
        self.primary.start()
        with psycopg.connect(self.primary.admin, autocommit=True) as admin:
            admin.execute("create database chores")

    def follow(self) -> None:
        """Let the standby follow the primary anew, and each commit wait for it."""
        self.standby.remove()
        self.standby.copy(self.primary, NAME)
        self.standby.start()
        self.primary.set("synchronous_standby_names", NAME)
        until(self._is_synchronous, "the standby kept up")

    def fail_over(self) -> None:
        """Kill the primary, and let the two change places."""
        self.primary.halt()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary

    def dsn(self, *ports: int, **settings: str) -> str:
        """Give the address of a database by several servers."""
        hosts = ",".join([str(self.primary.folder)] * len(ports))
        return make_conninfo(
            "", host=hosts, port=",".join(map(str, ports)), user="postgres", dbname="chores", **settings
        )

    def receiver(self) -> int:
        """Give the process of the standby that takes in what the primary sends."""
        with psycopg.connect(self.standby.admin) as admin:
            (pid,) = admin.execute("select pid from pg_stat_wal_receiver").fetchone() or (0,)
        return int(pid)

    def close(self) -> None:
        for server in (self.primary, self.standby):
            server.halt()

    def _is_synchronous(self) -> bool:
        with psycopg.connect(self.primary.admin) as admin:
            found = admin.execute("select sync_state from pg_stat_replication").fetchall()
        return found == [("sync",)]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """A migrated database on both; its folder has a short name, for the sockets' sake."""
    with tempfile.TemporaryDirectory(prefix="hf-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        pair = Pair(Path(name, "pair"))
        try:
            migrate.run(pair.dsn(PORTS[0]))
            pair.follow()
            yield pair
        finally:
            pair.close()


@pytest.fixture
def database(pair: Pair) -> Database:
    database = Database(pair.dsn(*PORTS, target_session_attrs="read-write"))
    database.do("create table public.effects (step_id bigint, lease_id bigint)")
    return database


def test_a_promoted_standby_has_all_that_was_acknowledged_and_workers_find_it(
    pair: Pair, crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R14: under load, there and back again; nobody is told where the writer is but by the two hosts of the DSN."""
    workers = [crew.hire_ready() for _ in range(2)]
    with producing(database.dsn) as told:
        for _ in range(PROMOTIONS):
            done = database.count("succeeded")
            until(lambda: database.held_by() and database.count("succeeded") > done + 50, "work went on")  # noqa: B023
            pair.fail_over()
            proof.add(rounds=1, kills=1)
            until(lambda: database.count("succeeded") > done + 100, "work went on at the new primary")  # noqa: B023
            pair.follow()
    started = acknowledged(told)

    until(lambda: database.count("succeeded") >= started, "all were done")

    proof.check(database, folder, started=started)
    assert [worker.process.poll() for worker in workers] == [None, None]


def test_a_server_that_turns_read_only_fails_no_task_and_is_waited_for(
    pair: Pair, crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R14, W-63: SQLSTATE 25006 is about the server, not about an outcome; said again later, each is accepted."""
    plain, paid = database.start("wait", gate="go"), database.start("deposit", gate="go")
    worker = crew.hire(lease="60s")
    until(lambda: len(lines(folder, "begin")) == 2, "both handlers began")
    pair.primary.set("default_transaction_read_only", "on")
    crew.open("go")
    worker.await_said("worker.error_wait", times=2)
    assert {line["kind"] for line in worker.said("worker.error_wait")} == {"ReadOnly"}

    pair.primary.set("default_transaction_read_only", "off")

    until(lambda: database.is_over(plain, paid), "both were reported")
    assert database.story(plain) == ["claimed", "succeeded"]
    assert database.story(paid) == ["claimed", "succeeded"]  # its transaction had begun, and so may write
    proof.check(database, folder, started=2)


def test_two_hosts_are_enough_to_find_the_writer(
    pair: Pair, crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R14: the standby stands first, and nothing says which of the two is meant."""
    step = database.start("deposit")

    crew.hire(dsn=pair.dsn(*reversed(PORTS)))

    until(lambda: database.is_over(step), "it was done")
    proof.check(database, folder, started=1)


def test_a_worker_on_a_standby_waits_and_works_when_that_is_promoted(
    pair: Pair, crew: Crew, database: Database, folder: Path, proof: Proof
) -> None:
    """R14: nothing is claimed and nothing fails before."""
    step = database.start("deposit")
    worker = crew.hire(dsn=pair.dsn(pair.standby.port))
    worker.await_said("worker.error_wait", times=2)
    assert database.story(step) == []

    pair.fail_over()

    until(lambda: database.is_over(step), "it was done")
    proof.add(kills=1)
    proof.check(database, folder, started=1)


def test_without_a_synchronous_standby_the_checker_finds_what_is_lost(
    pair: Pair, crew: Crew, database: Database, folder: Path
) -> None:
    """R14: the standby lags, and the primary dies; so the tests above could fail."""
    crew.hire_ready()
    pair.primary.set("synchronous_standby_names", "")
    with producing(database.dsn) as told:
        until(lambda: database.count("succeeded") > 50, "work went on")
        receiver = psutil.Process(pair.receiver())
        receiver.suspend()
        before = acknowledged(told)
        until(lambda: acknowledged(told) > before + 100, "more was acknowledged")
        pair.primary.halt()
        receiver.resume()
        pair.standby.promote()
    started = acknowledged(told)

    until(lambda: database.value(NONE_OPEN), "what was left was done")

    verdict = judge(database, folder, started=started)
    assert verdict.lost > 0
    assert verdict.twice == 0
