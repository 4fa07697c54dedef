"""One database per process and server, wiped after each test, which takes a fraction of what a clone takes.

Rows are put back as the migrations left them. Where a test leaves more behind (objects, settings, sessions, much data),
the database is dropped, and the next test gets a new clone.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg import Connection, sql
from psycopg.pq import TransactionStatus
from psycopg.rows import tuple_row

from holdfast.testing import Template

MOST_BYTES = 1 << 20  # of a table or an index; emptying a larger one takes longer than a clone
WATCH = """
create table holdfast_test.changes (tag text not null);
create function holdfast_test.remember_change() returns event_trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
begin
  if (case tg_event
       when 'sql_drop' then exists (select from pg_event_trigger_dropped_objects() o where not o.is_temporary)
       else exists (select from pg_event_trigger_ddl_commands() c where c.schema_name is distinct from 'pg_temp')
      end) then
    insert into holdfast_test.changes values (tg_tag);
  end if;
end
$$;
create event trigger hf_test_changed on ddl_command_end execute function holdfast_test.remember_change();
create event trigger hf_test_dropped on sql_drop execute function holdfast_test.remember_change();
alter event trigger hf_test_changed enable always;  -- also where a test has turned triggers off
alter event trigger hf_test_dropped enable always;
"""
TABLES = """
select n.nspname, c.relname
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
 where c.relkind in ('r', 'p') and not c.relispartition
   and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')
"""
SEQUENCES = """
select s.schemaname, s.sequencename, coalesce(s.last_value, s.start_value), s.last_value is not null
  from pg_catalog.pg_sequences s
"""
RESTORE = """
if exists ((table {table} except all table {copy}) union all (table {copy} except all table {table})) then
  delete from {table};
  insert into {table} overriding system value table {copy};
end if"""
IS_MERELY_ROWS = """
select not exists (select from holdfast_test.changes)
   and not exists (select from pg_catalog.pg_db_role_setting g  -- of ALTER DATABASE no event trigger hears
                     join pg_catalog.pg_database d on d.oid = g.setdatabase where d.datname = current_database())
   and not exists (select from pg_catalog.pg_class c
                    where c.relkind in ('r', 'i') and c.oid >= 16384 and pg_catalog.pg_relation_size(c.oid) > %s)
"""
OTHER_SESSIONS = """
select count(*) from pg_catalog.pg_stat_activity a
 where a.datname = current_database() and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
"""
RESET = "reset session authorization; reset all; unlisten *; discard temp; select pg_advisory_unlock_all()"


class WipedDatabase:
    """Lends its database to one test after the other, with a connection that stays open between them."""

    _on: ClassVar[WeakKeyDictionary[Template, WipedDatabase]] = WeakKeyDictionary()

    def __init__(self, template: Template) -> None:
        self._template = template
        self._stack = ExitStack()
        self._dsn: str | None = None
        self._own: Connection[Any] | None = None  # wipes
        self._lent: Connection[Any] | None = None  # is the tests' `db`

    @classmethod
    def on(cls, template: Template) -> WipedDatabase:
        """Give the one that is cloned from a template."""
        return cls._on.setdefault(template, cls(template))

    @contextmanager
    def lent(self) -> Iterator[str]:
        """Give the address of a database that is as the migrations left it."""
        if self._dsn is None:
            self._dsn = self._stack.enter_context(self._template.clone())
            self._own = self._stack.enter_context(psycopg.connect(self._dsn, autocommit=True))
            _prepare(self._own)
        yield self._dsn
        try:
            is_kept = self._wipe()
        except psycopg.Error:
            is_kept = False
        if not is_kept:
            self.drop()

    def connection(self, dsn: str) -> Connection[Any] | None:
        """Give the connection that stays open, where `dsn` is the address of this database."""
        if dsn != self._dsn:
            return None
        if self._lent is None:
            self._lent = self._stack.enter_context(psycopg.connect(dsn, autocommit=True))
        return self._lent

    def drop(self) -> None:
        """Give the database up; the next test gets another."""
        self._dsn = self._own = self._lent = None
        self._stack.close()

    def _wipe(self) -> bool:
        assert self._own is not None
        if self._lent is not None and not _renewed(self._lent):
            self._lent.close()
            self._lent = None
        if not self._is_alone(1 if self._lent is None else 2):
            return False
        row = self._own.execute(IS_MERELY_ROWS, [MOST_BYTES]).fetchone()
        if row != (True,):
            return False
        self._own.execute("select holdfast_test.wipe()")
        return True

    def _is_alone(self, own: int) -> bool:
        """Tell whether no other session is left; one that was closed just now may take a moment to end."""
        assert self._own is not None
        for _ in range(20):
            row = self._own.execute(OTHER_SESSIONS).fetchone()
            if row == (own - 1,):
                return True
            self._own.execute("select pg_sleep(0.002)")
        return False


def _renewed(connection: Connection[Any]) -> bool:
    """Make a session as new, or tell that it cannot be."""
    if (
        connection.closed
        or connection.info.transaction_status != TransactionStatus.IDLE
        or not connection.autocommit
        or connection.row_factory is not tuple_row
    ):
        return False
    connection.execute(RESET)
    return True


def _prepare(connection: Connection[Any]) -> None:
    """Install what wipes the database, and what notices changes that are not of rows."""
    statements: list[sql.Composable] = []
    for number, name in enumerate(connection.execute(TABLES).fetchall()):
        table, copy = sql.Identifier(*name), sql.Identifier("holdfast_test", f"copy_{number}")
        if connection.execute(sql.SQL("select exists (select from {})").format(table)).fetchone() == (True,):
            connection.execute(sql.SQL("create table {} as table {}").format(copy, table))
            statements.append(sql.SQL(RESTORE).format(table=table, copy=copy))
        else:
            statements.append(sql.SQL("delete from {}").format(table))
    for schema, sequence, value, is_called in connection.execute(SEQUENCES).fetchall():
        name = sql.Literal(sql.Identifier(schema, sequence).as_string(connection))
        statements.append(sql.SQL("perform setval({}, {}, {})").format(name, value, is_called))
    connection.execute(
        sql.SQL(
            "create function holdfast_test.wipe() returns void language plpgsql"
            " set session_replication_role = replica set lock_timeout = '2s' as $wipe$ begin {}; end $wipe$"
        ).format(sql.SQL(";\n").join(statements))
    )
    connection.execute(WATCH)
    connection.execute("delete from holdfast_test.changes")
