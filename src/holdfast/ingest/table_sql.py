"""The queries of `Table` on the source's catalog, and a row as the source renders it."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

COLUMNS = """
select a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod)
  from pg_catalog.pg_attribute a
 where a.attrelid = pg_catalog.to_regclass(%(table)s) and a.attnum > 0 and not a.attisdropped
"""
UNIQUE = """
select exists (select from pg_catalog.pg_index i join pg_catalog.pg_attribute a
                  on a.attrelid = i.indrelid and a.attname = %(key)s
                where i.indrelid = pg_catalog.to_regclass(%(table)s) and i.indisunique and i.indpred is null
                  and i.indnkeyatts = 1 and i.indkey[0] = a.attnum)
"""
INDEXED = """
select exists (select from pg_catalog.pg_index i
                 join pg_catalog.pg_attribute u on u.attrelid = i.indrelid and u.attname = %(updated_at)s
                 join pg_catalog.pg_attribute k on k.attrelid = i.indrelid and k.attname = %(key)s
                where i.indrelid = pg_catalog.to_regclass(%(table)s) and i.indpred is null
                  and i.indkey[0] = u.attnum and i.indkey[1] = k.attnum)
"""
# Read the clock first: a transaction that begins after it is newer than the bound anyway. A transaction counts from its
# begin, also if it has not written yet: its now() is fixed. Autovacuum changes no row, and may take hours.
BOUND = """
with clock as materialized (select pg_catalog.clock_timestamp() as at)
select least(c.at, (select min(a.xact_start) - interval '1 microsecond' from pg_catalog.pg_stat_activity a
                     where a.xact_start is not null and a.pid <> pg_catalog.pg_backend_pid()
                       and a.backend_type is distinct from 'autovacuum worker'
                       and (a.datname = pg_catalog.current_database() or a.datname is null)),
             (select min(p.prepared) - interval '1 day' from pg_catalog.pg_prepared_xacts p
               where p.database = pg_catalog.current_database()))
  from clock c
"""
MAY_READ = "select pg_catalog.has_table_privilege(%(table)s, 'SELECT'), pg_catalog.quote_ident(current_user)"
SEES_OTHERS = "select pg_catalog.pg_has_role(current_user, 'pg_read_all_stats', 'usage')"
SIZE = "select c.reltuples from pg_catalog.pg_class c where c.oid = pg_catalog.to_regclass(%(table)s)"


class TableRow(NamedTuple):
    """A row as the source renders it."""

    key: str | None
    text: str
    updated_at: datetime | None
    is_deleted: bool
    position: str | None  # its time, as the source shows it
