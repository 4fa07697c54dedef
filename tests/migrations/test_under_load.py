"""Migrating while workers claim and settle: they go on, and nothing is lost or done twice."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

import pytest

from holdfast import errors
from holdfast.connections.deadline import connect
from holdfast.kernel import calls, db, migrate
from holdfast.models import Done, Settlement
from migrations.conftest import Server, as_admin
from scenarios.proof import Proof

TASKS = 3000
AGAIN = ["functions, views and machines"]


@pytest.fixture
def dsn(server: Server) -> str:
    """A migrated database, as its owner sees it."""
    made = server.database()
    migrate.run(made)
    return made


def outdate(dsn: str) -> None:
    """Let the code in the database look like an older release's."""
    with connect(dsn) as connection:
        connection.execute("set role hf_owner")
        connection.execute("update holdfast.installed set digest = 'of yesterday' where part = 'code'")


def work(dsn: str, worker: str, enough: Event) -> int:
    """Claim and settle until nothing is left and the migrations are through."""
    settled = 0
    with connect(dsn) as connection:
        while True:
            over = enough.is_set()
            steps = db.run(connection, calls.claim_steps(worker, batch=20))
            outcomes = [Settlement(s.step_id, s.lease_id, Done()) for s in steps]
            settled += len(db.run(connection, calls.settle_steps(outcomes)))
            if over and not steps:
                return settled


@contextmanager
def at_work(dsn: str, amount: int) -> Iterator[list[Future[int]]]:
    """Keep workers going for as long as the block lasts."""
    enough = Event()
    with ThreadPoolExecutor(amount) as pool:
        workers = [pool.submit(work, dsn, f"w{n}", enough) for n in range(amount)]
        try:
            yield workers
        finally:
            enough.set()


def test_workers_go_on_while_the_code_is_installed_anew(server: Server, dsn: str, proof: Proof) -> None:
    """R32: five times, with machines whose rows change; each task is done once and no call fails."""
    admin = as_admin(dsn, server.admin)
    with connect(admin) as connection:
        db.run(connection, calls.start_tasks([{"name": "noop"}] * TASKS))

        with at_work(admin, 3) as workers:
            for _ in range(5):
                outdate(admin)
                connection.execute("delete from holdfast.machine_moves where event = 'resolved'")
                assert migrate.run(dsn) == AGAIN
                db.run(connection, calls.start_tasks([{"name": "noop"}] * 100))

        settled = sum(worker.result() for worker in workers)
        (done,) = connection.execute("select count(*) from holdfast.steps where state = 'done'").fetchone() or (0,)
        proof.add(rounds=5, lost=TASKS + 500 - done, twice=settled - done)
        assert settled == TASKS + 500
        states = connection.execute("select state, attempt, count(*) from holdfast.steps group by 1, 2").fetchall()
        moves = connection.execute("select count(*) from holdfast.machine_moves where event = 'resolved'").fetchone()
        assert states == [("done", 1, TASKS + 500)]
        assert moves is not None
        assert moves[0] > 0
        assert db.run(connection, calls.violations()) == []


def test_a_migration_waits_briefly_for_a_long_transaction_and_then_lets_the_others_go_on(
    server: Server, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R32: it gives its place in the queue up after a second, again and again, and says so at the end."""
    monkeypatch.setattr(migrate, "TRIES", 2)
    admin = as_admin(dsn, server.admin)
    outdate(dsn)
    before = server.dump(dsn)
    with connect(admin) as holder, connect(admin) as other, at_work(admin, 1):
        db.run(other, calls.start_tasks([{"name": "noop"}] * 10))
        with holder.transaction():
            holder.execute("update holdfast.steps set priority = 1 where id = -1")  # holds the table's lock

            with pytest.raises(errors.DatabaseError, match="end long transactions"):
                migrate.run(dsn)

            db.run(other, calls.start_task("noop"))  # writers are let in again
        assert server.dump(dsn) == before
        assert migrate.run(dsn) == AGAIN
