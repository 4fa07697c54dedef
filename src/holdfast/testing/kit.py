"""A database cloned for each test, a clock to set, tasks run inline, and the journal read."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row

from holdfast import embedded, log
from holdfast.app import Holdfast
from holdfast.durations import Duration, duration
from holdfast.embedded.owned import owned_server
from holdfast.handlers.registry import Handler, Registry
from holdfast.kernel import migrate
from holdfast.models import JournalEntry
from holdfast.worker.lanes.loop import new_loop
from holdfast.worker.loop import Worker
from holdfast.worker.options import Options, new_identity

# Only here are clock and chance replaced: in production no setting and no session can move them.
TEST_CLOCK = """
create schema holdfast_test;
create table holdfast_test.dials (
  stands_at timestamptz,                    -- null: the clock runs
  ahead interval not null default '0',
  chance double precision not null default 0.5
);
insert into holdfast_test.dials default values;
grant usage on schema holdfast_test to public;
grant select on holdfast_test.dials to public;
create or replace function holdfast.clock() returns timestamptz language sql volatile begin atomic
  select coalesce(d.stands_at, pg_catalog.clock_timestamp()) + d.ahead from holdfast_test.dials d;
end;
create or replace function holdfast.chance() returns double precision language sql volatile begin atomic
  select d.chance from holdfast_test.dials d;
end;
"""
UNSAFE = ("fsync", "full_page_writes", "synchronous_commit")  # a test's database may be lost with the machine
SETTLED = """
select count(*) from holdfast.journal j
 where j.actor_kind = 'worker' and j.actor = %s and j.step_id is not null
   and j.event not in ('claimed', 'released', 'reopened')
"""


class Template:
    """A migrated database with the test clock, to be cloned; one for each process and server."""

    def __init__(self, admin_dsn: str) -> None:
        self._admin_dsn = admin_dsn
        self._name = f"holdfast_template_{os.getpid()}"
        self._numbers = count(1)
        self._make()

    @contextmanager
    def clone(self) -> Iterator[str]:
        """Give the DSN of a database of its own, and drop it at the end."""
        name = f"holdfast_test_{os.getpid()}_{next(self._numbers)}"
        # By files: a template is small and at rest, and its blocks need not go through the log.
        self._admin("create database {} template {} strategy file_copy", name, self._name)
        try:
            yield make_conninfo(self._admin_dsn, dbname=name)
        finally:
            self._admin("drop database {} with (force)", name)

    def drop(self) -> None:
        """Drop the template itself."""
        self._admin("drop database if exists {} with (force)", self._name)

    def _make(self) -> None:
        self.drop()
        self._admin("create database {}", self._name)
        dsn = make_conninfo(self._admin_dsn, dbname=self._name)
        migrate.run(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            connection.execute(TEST_CLOCK)

    def _admin(self, statement: str, *names: str) -> None:
        with psycopg.connect(self._admin_dsn, autocommit=True) as connection:
            connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))


@contextmanager
def embedded_template() -> Iterator[Template]:
    """Give a template on an embedded server in a folder of its own; both are gone afterwards, also after a kill -9."""
    embedded.check("HOLDFAST_TEST_DSN")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-"))
    folder.chmod(0o755)  # where root starts it, the server runs as another user
    with owned_server(folder / "home", remove=folder):
        admin = embedded.admin_dsn(folder / "home")
        with psycopg.connect(admin, autocommit=True) as connection:
            for setting in UNSAFE:
                connection.execute(sql.SQL("alter system set {} = off").format(sql.Identifier(setting)))
            connection.execute("select pg_reload_conf()")
        yield Template(admin)


@contextmanager
def on_database(hf: Holdfast, dsn: str) -> Iterator[None]:
    """Let an app work on a database for as long as the block lasts, and on that of its settings afterwards."""
    hf.use(dsn)
    try:
        yield
    finally:
        hf.use(None)


def drain(
    hf: Holdfast,
    *,
    queues: Sequence[str] | None = None,
    concurrency: int = 4,
    bypass_backoff: bool = False,
    log_level: log.Level | None = None,
) -> int:
    """Run what is due in the app's queues, here and now, until nothing is; tell how many outcomes were accepted.

    What is due later stays (a retry that waits, a snooze): advance the clock and drain again, or let retries wait for
    nothing with `bypass_backoff`. Handlers run in threads of this process and on a loop of their own, as they do in any
    worker. What a worker logs is left out unless you give a `log_level`.
    """
    registry = hf._engine.registry.changed(_without_waits) if bypass_backoff else hf._engine.registry
    served = queues or sorted({handler.queue for handler in hf._engine.registry})
    options = Options(
        identity=new_identity("drain"),
        queues=tuple(served),
        concurrency=concurrency,
        burst=True,
        listens=False,
        poll_min=timedelta(milliseconds=10),
        error_wait=timedelta(milliseconds=100),
    )
    if not served:
        return 0
    with log.only(log_level), ThreadPoolExecutor(1) as apart:  # the caller may have a loop that runs
        apart.submit(_work, hf, registry, options).result()
    with hf._engine.connection() as connection:
        row = connection.execute(SETTLED, [options.identity]).fetchone()
    return 0 if row is None else int(row[0])


def _without_waits(handler: Handler) -> Handler:
    return handler if handler.retry is None else replace(handler, retry=handler.retry.without_waits())


def _work(hf: Holdfast, registry: Registry, options: Options) -> None:
    loop = new_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(Worker(hf.dsn, registry, options, hf._engine.hooks).run())
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


class Clock:
    """The clock of a cloned database. It runs until it is frozen or set."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection

    def now(self) -> datetime:
        """Read it, as the kernel does."""
        row = self._connection.execute("select holdfast.clock()").fetchone()
        assert row is not None
        moment: datetime = row[0]
        return moment

    def freeze(self) -> datetime:
        """Stop it where it is."""
        return self.set(self.now())

    def set(self, moment: datetime) -> datetime:
        """Stop it at a moment."""
        self._connection.execute("update holdfast_test.dials set stands_at = %s, ahead = '0'", [moment])
        return moment

    def advance(self, by: Duration) -> None:
        """Move it forward, running or not."""
        self._connection.execute("update holdfast_test.dials set ahead = ahead + %s", [duration(by, "by")])

    def fix_chance(self, chance: float) -> None:
        """Let every jitter draw this number, from 0 up to 1."""
        self._connection.execute("update holdfast_test.dials set chance = %s", [chance])


def journal(connection: Connection[Any], *, step: int | None = None, run: UUID | None = None) -> list[JournalEntry]:
    """Read the moves of a step, or of a run itself, or all, in order."""
    with connection.cursor(row_factory=class_row(JournalEntry)) as cursor:
        return cursor.execute(
            """select * from holdfast.journal j
                where (%(step)s::bigint is null or j.step_id = %(step)s)
                  and (%(run)s::uuid is null or (j.run_id = %(run)s and j.step_id is null))
                order by j.id""",
            {"step": step, "run": run},
        ).fetchall()


def events(connection: Connection[Any], *, step: int | None = None, run: UUID | None = None) -> list[str]:
    """Read the names of the events that moved a step, or a run."""
    return [entry.event for entry in journal(connection, step=step, run=run)]
