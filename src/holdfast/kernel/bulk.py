"""Bulk starts by COPY into a staging table, from which one function creates the steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection, Connection
from psycopg.pq import TransactionStatus

from holdfast.connections.deadline import within
from holdfast.failpoints import failpoint
from holdfast.kernel import calls, db
from holdfast.kernel.copy_text import AlikeStarts, Start, pieces

__all__ = ["AlikeStarts", "Start", "astart_tasks", "start_steps", "start_tasks"]

PATIENCE = timedelta(minutes=10)  # for one answer: a million rows take a minute
STAGED = "pg_temp.staged_steps"
COLUMNS = ("kind", "input", "queue", "priority", "due_at", "limits", "weight", "batch_key")  # the fields of Start
_COPY = "copy pg_temp.staged_steps (kind, input, queue, priority, due_at, limits, weight, batch_key) from stdin"


def start_steps(
    connection: Connection[Any],
    steps: Iterable[Start],
    *,
    machine: str,
    name: str,
    step_machine: str,
    tenant: str = "default",
) -> UUID:
    """Start one run with many steps, in the transaction of the connection."""
    with within(connection, PATIENCE), _in_transaction(connection):
        (run_id,) = db.run(connection, calls.start_run(machine, name, step_machine, tenant=tenant))
        _stage(connection, steps)
        db.run(connection, calls.take_staged(step_machine, run_id=run_id, tenant=tenant))
    return run_id


def start_tasks(connection: Connection[Any], tasks: Iterable[Start], *, tenant: str = "default") -> int:
    """Start many tasks, and return their number."""
    with within(connection, PATIENCE), _in_transaction(connection):
        _stage(connection, tasks)
        (taken,) = db.run(connection, calls.take_staged("work.task", tenant=tenant))
    return taken


async def astart_tasks(connection: AsyncConnection[Any], tasks: Iterable[Start], *, tenant: str = "default") -> int:
    """Start many tasks, as `start_tasks` does."""
    with within(connection, PATIENCE):
        async with _in_async_transaction(connection):
            await _astage(connection, tasks)
            (taken,) = await db.arun(connection, calls.take_staged("work.task", tenant=tenant))
    return taken


@contextmanager
def _in_transaction(connection: Connection[Any]) -> Iterator[None]:
    """Run all or nothing, in the caller's transaction if one is open, which the caller then commits."""
    if not connection.autocommit:
        connection.execute("select")  # begins the transaction, or else the block below would begin and commit one
    is_ours = connection.pgconn.transaction_status == TransactionStatus.IDLE
    with _told_when_lost(connection, is_ours=is_ours) as sending, connection.transaction():
        yield
        sending()


@asynccontextmanager
async def _in_async_transaction(connection: AsyncConnection[Any]) -> AsyncIterator[None]:
    """Run all or nothing, as `_in_transaction` does."""
    if not connection.autocommit:
        await connection.execute("select")
    is_ours = connection.pgconn.transaction_status == TransactionStatus.IDLE
    with _told_when_lost(connection, is_ours=is_ours) as sending:
        async with connection.transaction():
            yield
            sending()


@contextmanager
def _told_when_lost(
    connection: Connection[Any] | AsyncConnection[Any], *, is_ours: bool
) -> Iterator[Callable[[], None]]:
    """Raise our error when the connection is lost; yield the function to call before the commit."""
    is_sent = False

    def sending() -> None:
        nonlocal is_sent
        failpoint("before_bulk_commit")
        is_sent = True

    try:
        yield sending
        failpoint("after_bulk_commit")
    except db.BREAKS as error:
        if not is_ours or not db.is_lost(connection, error):
            raise
        if not is_sent:
            raise db.gone(error, "nothing was started, because the connection to the database was lost") from error
        raise db.unknown(
            error,
            "the commit of a bulk start",
            "check whether the tasks exist before you start them again; either all do or none",
        ) from error


def _stage(connection: Connection[Any], steps: Iterable[Start]) -> None:
    db.run(connection, calls.stage_steps())
    failpoint("before_copy")
    with db.translated(), connection.cursor() as cursor, cursor.copy(_COPY) as copy:
        if isinstance(steps, AlikeStarts):
            for piece in pieces(steps):
                copy.write(piece)
        else:
            for step in steps:
                copy.write_row(step)
        failpoint("inside_copy")
    failpoint("after_copy")


async def _astage(connection: AsyncConnection[Any], steps: Iterable[Start]) -> None:
    await db.arun(connection, calls.stage_steps())
    with db.translated():
        async with connection.cursor() as cursor, cursor.copy(_COPY) as copy:
            if isinstance(steps, AlikeStarts):
                for piece in pieces(steps):
                    await copy.write(piece)
            else:
                for step in steps:
                    await copy.write_row(step)
