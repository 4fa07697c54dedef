"""Checks of what retention leaves: months that should be gone and who uses them, and dead rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import LiteralString

from holdfast.kernel import sources
from holdfast.reads.run_page import span_text
from holdfast.reads.schema_checks import Check, Connection

OVERDUE = timedelta(days=1)  # a month is dropped by the next sweep, unless somebody uses it
LATE_SWEEP = timedelta(days=1)
MANY_DEAD, MUCH_DEAD = 10_000, 0.3  # rows, and their share of the table
SHOWN = 3
STATE: LiteralString = """
select holdfast.old_months(holdfast.clock() - %s), holdfast.clock() - w.blocked_at,
       holdfast.clock() - greatest(w.begins_at, coalesce(w.next_at, w.began_at)),
       w.next_at is null and w.began_at is not null, w.steps, w.runs
  from holdfast.sweep_state() w
"""
# Whoever has any lock on the journal, the notes or a partition keeps a month from being dropped.
USERS: LiteralString = """
select distinct a.pid, coalesce(nullif(a.application_name, ''), a.usename::text, ''),
       greatest(now() - coalesce(a.xact_start, a.query_start, a.backend_start), '0')
  from pg_catalog.pg_locks l
  join pg_catalog.pg_stat_activity a on a.pid = l.pid
 where l.granted and l.pid <> pg_catalog.pg_backend_pid() and a.backend_type <> 'autovacuum worker'
   and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database())
   and (l.relation in (pg_catalog.to_regclass('holdfast.journal'), pg_catalog.to_regclass('holdfast.notes'))
        or l.relation in (select i.inhrelid from pg_catalog.pg_inherits i
                           where i.inhparent in (pg_catalog.to_regclass('holdfast.journal'),
                                                 pg_catalog.to_regclass('holdfast.notes'))))
 order by 3 desc
 limit 3
"""
DEAD: LiteralString = """
select s.schemaname || '.' || s.relname, s.n_live_tup, s.n_dead_tup,
       now() - greatest(s.last_vacuum, s.last_autovacuum)
  from pg_catalog.pg_stat_all_tables s
 where s.schemaname = any (%s) and s.n_dead_tup > %s and s.n_dead_tup > %s * (s.n_live_tup + s.n_dead_tup)
 order by s.n_dead_tup desc
"""


@dataclass(frozen=True)
class JournalUser:
    """A session that has a lock on the journal or the notes, and for how long."""

    pid: int
    name: str
    since: timedelta

    def __str__(self) -> str:
        """Return who it is, for how long."""
        return f"pid {self.pid}{f' ({self.name})' if self.name else ''} for {span_text(self.since)}"


def retention(connection: Connection) -> Check:
    """Check that months are dropped and sweeps are made when they are due."""
    row = connection.execute(STATE, [OVERDUE]).fetchone()
    if row is None:
        return Check("retention", "fail", "the sweep's row is missing", "select * from holdfast.violations()")
    overdue, blocked_for, late, is_under_way, steps, runs = row
    users = [JournalUser(*user) for user in connection.execute(USERS).fetchall()] if overdue or blocked_for else []
    if overdue:
        return judge_overdue(overdue, users)
    if late > LATE_SWEEP:
        ago = span_text(late)
        text = f"a sweep began {ago} ago and has not ended" if is_under_way else f"the next sweep is {ago} late"
        return Check("retention", "warn", text, "check that a worker runs")
    which = "the sweep under way has" if is_under_way else "the last sweep"
    return Check("retention", "ok", f"nothing is overdue; {which} removed {steps:,} steps and {runs:,} runs")


def judge_overdue(months: Sequence[str], users: Sequence[JournalUser]) -> Check:
    """Judge months that should have been dropped, by who uses the journal."""
    named = ", ".join(months[:SHOWN]) + (f" and {len(months) - SHOWN} more" if len(months) > SHOWN else "")
    if not users:
        return Check("retention", "warn", f"{named} should have been dropped", "check that a worker runs")
    who = "; ".join(map(str, users))
    return Check(
        "retention",
        "warn",
        f"{named} cannot be dropped while the journal is in use: {who}",
        f"end the transaction: select pg_terminate_backend({users[0].pid})",
    )


def bloat(connection: Connection) -> Check:
    """Check that dead rows are few."""
    return judge_bloat(connection.execute(DEAD, [sources.schemas(), MANY_DEAD, MUCH_DEAD]).fetchall())


def judge_bloat(tables: Sequence[tuple[str, int, int, timedelta | None]]) -> Check:
    """Judge tables whose rows are dead to a large part."""
    if not tables:
        return Check("bloat", "ok", "dead rows are few")
    text = "; ".join(
        f"{name}: {dead:,} of {live + dead:,} rows are dead, "
        + ("never vacuumed" if ago is None else f"vacuumed {span_text(ago)} ago")
        for name, live, dead, ago in tables[:SHOWN]
    )
    then = "; ".join(f"vacuum {name}" for name, *_ in tables[:SHOWN])
    return Check("bloat", "warn", text, f"{then}; see also `snapshots` and `vacuum`")


RETENTION_CHECKS: dict[str, Callable[[Connection], Check]] = {
    "retention": retention,
    "bloat": bloat,
}
