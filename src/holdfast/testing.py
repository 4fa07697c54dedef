"""For tests, ours and users': a database cloned for each test, a clock to set, and readers of the journal.

    template = Template(admin_dsn)             # made once, by a login that may create databases
    with template.clone() as dsn: ...          # a migrated database of its own, dropped at the end
    clock = Clock(connection); clock.advance(timedelta(minutes=5))

There is no in-memory twin: what is tested is the real SQL on a real PostgreSQL.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo
from psycopg.rows import class_row

from holdfast.kernel import migrate
from holdfast.models import JournalEntry

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

    def advance(self, span: timedelta) -> None:
        """Move it forward, running or not."""
        self._connection.execute("update holdfast_test.dials set ahead = ahead + %s", [span])

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
