"""Builds the indexes of `indexes.sql`: concurrently and one by one, so that nobody who reads or writes waits for them.

A build waits for every snapshot that is older than itself. So whoever waits for a build must not hold one: a statement
that waits for an advisory lock does, but LOCK TABLE and an idle transaction do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any, LiteralString

import psycopg
from psycopg import Connection, IsolationLevel

from holdfast.connections.deadline import connect
from holdfast.kernel import sources
from holdfast.kernel.sources import Index

BUILDERS_LOCK: LiteralString = "pg_catalog.hashtextextended('holdfast.indexes', 0)"
POLL = 0.2  # seconds
TRIES = 5
# An index is invalid while it is built, and stays so if the build was killed.
VALID: LiteralString = """
select c.relname
  from pg_catalog.pg_index i
  join pg_catalog.pg_class c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'holdfast' and i.indisvalid
"""
WITHOUT_END: LiteralString = """
select set_config(s.name, '0', true)
  from pg_catalog.pg_settings s
 where s.name in ('idle_in_transaction_session_timeout', 'transaction_timeout')
"""
# A build cannot be part of a transaction, so these settings cannot be local. Where they are off nothing is set.
WITHOUT_TIMEOUTS: LiteralString = """
select set_config(s.name, '0', false)
  from pg_catalog.pg_settings s
 where s.name in ('statement_timeout', 'lock_timeout', 'transaction_timeout') and s.setting <> '0'
"""
AS_BEFORE: LiteralString = """
select set_config(s.name, s.reset_val, false)
  from pg_catalog.pg_settings s
 where s.name in ('statement_timeout', 'lock_timeout', 'transaction_timeout') and s.setting <> s.reset_val
"""
# psql has no loops, and the commit gives up the snapshot that a running build may wait for. The script takes this lock
# before its transaction: a build would wait for that transaction, which waits for the table that is being indexed.
LOCK_SCRIPT = f"""do $$
begin
  while not pg_catalog.pg_try_advisory_lock({BUILDERS_LOCK}) loop
    commit;
    perform pg_catalog.pg_sleep({POLL});
  end loop;
end
$$;"""
BEGIN_SCRIPT = """set role hf_owner;
set statement_timeout = 0;
set lock_timeout = 0;"""
DROP_IN_SCRIPT = """select pg_catalog.format('drop index concurrently holdfast.%I', c.relname)
  from pg_catalog.pg_index i
  join pg_catalog.pg_class c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where n.nspname = 'holdfast' and c.relname = '{name}' and not i.indisvalid
\\gexec"""
END_SCRIPT = f"""reset lock_timeout;
reset statement_timeout;
reset role;
do $$ begin perform pg_catalog.pg_advisory_unlock({BUILDERS_LOCK}); end $$;"""

Progress = Callable[[str], None]


def pending(connection: Connection[Any]) -> list[str]:
    """List the indexes that are missing or invalid, as `db status` shows them."""
    valid = {name for (name,) in connection.execute(VALID)}
    return [shown(index) for index in sources.indexes() if index.name not in valid]


def shown(index: Index) -> str:
    """Return how lists of parts name an index."""
    return f"index {index.name}"


def build(connection: Connection[Any], dsn: str, say: Progress) -> list[str]:
    """Build the pending indexes and return them; of several callers at once, one builds and the others wait."""
    if not pending(connection):
        return []
    with _only_builder(dsn, say), _without_timeouts(connection):
        return [shown(index) for index in sources.indexes() if _build(connection, index, say)]


def script() -> list[str]:
    """Return the builds for psql, to run after the transaction of the migrations, and LOCK_SCRIPT before it."""
    indexes = sources.indexes()
    return [BEGIN_SCRIPT, *(line for index in indexes for line in _script(index)), END_SCRIPT] if indexes else []


def _script(index: Index) -> list[str]:
    wait = f"begin;\n{_wait_for_builds(index)};\ncommit;"
    return [wait, DROP_IN_SCRIPT.format(name=index.name), f"{index.text};"]


def _build(connection: Connection[Any], index: Index, say: Progress) -> bool:
    """Build an index unless it is there, and drop first what a killed build left."""
    for left in reversed(range(TRIES)):
        try:
            with connection.transaction():
                connection.execute(_wait_for_builds(index))
            if shown(index) not in pending(connection):
                return False
            say(f"building {shown(index)}; it waits for transactions that are open now")
            connection.execute(f"drop index concurrently if exists holdfast.{index.name}")
            if not _build_on_empty_table(connection, index):
                connection.execute(index.text)
        except (psycopg.errors.DeadlockDetected, psycopg.errors.InternalError_):
            # Another build on this table, or one that gave up its lock and has not yet committed: then the drop
            # ends with "tuple concurrently updated".
            if left == 0:
                raise
            time.sleep(POLL)
        else:
            return True
    raise AssertionError("not reached")


def _build_on_empty_table(connection: Connection[Any], index: Index) -> bool:
    """Build the index at once if the table has no pages, so that a first migration waits for no transaction."""
    try:
        with connection.transaction():
            connection.execute(f"lock table holdfast.{index.table} in share mode nowait")
            size = connection.execute(f"select pg_catalog.pg_relation_size('holdfast.{index.table}')").fetchone()
            if size != (0,):
                return False
            connection.execute(index.text.replace("concurrently ", "", 1))
            return True
    except psycopg.errors.LockNotAvailable:
        return False


def _wait_for_builds(index: Index) -> str:
    """Return the statement that waits for builds on the table, such as one whose client was killed."""
    return f"lock table holdfast.{index.table} in share update exclusive mode"


@contextmanager
def _only_builder(dsn: str, say: Progress) -> Iterator[None]:
    """Hold the builders' lock, in an idle transaction rather than a session, so that it works through a pooler."""
    with connect(dsn) as connection:
        connection.isolation_level = IsolationLevel.READ_COMMITTED  # a stricter level would keep its snapshot
        for turn in count():
            with connection.transaction():
                connection.execute(WITHOUT_END)
                if connection.execute(f"select pg_try_advisory_xact_lock({BUILDERS_LOCK})").fetchone() == (True,):
                    yield
                    return
            if turn == 0:
                say("waiting for another migration, which builds indexes")
            time.sleep(POLL)


@contextmanager
def _without_timeouts(connection: Connection[Any]) -> Iterator[None]:
    """Let statements of the connection take as long as a build does."""
    connection.execute(WITHOUT_TIMEOUTS)
    try:
        yield
    finally:
        if not connection.closed:
            connection.execute(AS_BEFORE)
