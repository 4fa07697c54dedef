"""A server that takes no writes, or whose functions are not installed yet: no task pays for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from holdfast import Ctx, Holdfast
from holdfast.testing import events
from kernel.steps import DB
from worker.running import burst, read, running, until, worker_of

pytestmark = pytest.mark.one_server
SET = (
    "do $$ begin execute format('alter database %I set default_transaction_read_only = on', current_database()); end $$"
)
RESET = "do $$ begin execute format('alter database %I reset all', current_database()); end $$"
OTHERS = "pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"


@pytest.fixture
def refusing(db: DB) -> Iterator[DB]:
    """A connection that may write, to a database where others may not from then on."""
    yield db
    db.execute(RESET)


def test_an_outcome_that_cannot_be_written_is_kept_and_said_again(hf: Holdfast, refusing: DB) -> None:
    """R14, W-63: it was taken for one that cannot be stored, and the task for a failed one."""
    began, may_end = threading.Event(), threading.Event()

    @hf.task
    def hold() -> None:
        began.set()
        read(may_end)

    handle = hold.start()
    with running(worker_of(hf)) as worker:
        assert read(began)
        refusing.execute(SET)
        refusing.execute(f"select pg_terminate_backend(pid) from {OTHERS}")
        may_end.set()
        until(lambda: worker.states.moves["error_wait", "connecting"] >= 3, "a third try")
        refusing.execute(RESET)
        until(lambda: worker.in_flight == 0, "the settling")

    assert events(refusing, step=handle.id) == ["claimed", "succeeded"]


def test_a_transaction_that_cannot_write_is_tried_again(hf: Holdfast, db: DB) -> None:
    """R14, W-63: it is no fault of the handler's, which without a policy has none to spare."""
    db.execute("create table effects (what text)")

    @hf.task
    def pay(ctx: Ctx) -> None:
        with ctx.transaction() as tx:
            if ctx.attempt == 1:
                tx.execute("set transaction read only")
            tx.execute("insert into effects values ('paid')")

    handle = pay.start()
    burst(hf)

    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]
    assert db.execute("select what from effects").fetchall() == [("paid",)]


def test_a_worker_that_is_ahead_of_its_database_tries_a_transaction_again(hf: Holdfast, db: DB) -> None:
    """R32: a migration commits before its functions are installed, and a new worker may connect in between."""
    db.execute("create table effects (what text)")
    db.execute("alter function holdfast.settle_whole rename to settle_whole_later")

    @hf.task
    def pay(ctx: Ctx) -> None:
        if ctx.attempt == 2:
            db.execute("alter function holdfast.settle_whole_later rename to settle_whole")
        with ctx.transaction() as tx:
            tx.execute("insert into effects values ('paid')")

    handle = pay.start()
    try:
        burst(hf)
    finally:
        if db.execute("select to_regproc('holdfast.settle_whole_later')").fetchone() != (None,):
            db.execute("alter function holdfast.settle_whole_later rename to settle_whole")

    assert events(db, step=handle.id) == ["claimed", "retried", "claimed", "succeeded"]
    assert db.execute("select what from effects").fetchall() == [("paid",)]
