"""Checks of the schema, its roles, settings and invariants: each is one query and a judgement of the answer."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, LiteralString

import psycopg

from holdfast.kernel import sources
from holdfast.kernel.migrate import SchemaStatus
from holdfast.kernel.self_test_place import left_schemas

CheckStatus = Literal["ok", "warn", "fail", "new"]  # new: a database that was never migrated
Connection = psycopg.Connection[tuple[Any, ...]]
ROLES = frozenset({"hf_owner", "hf_migrator", "hf_producer", "hf_worker", "hf_reader", "hf_operator"})
SUPPORTED = range(15, 19)
ENOUGH_PARTITIONS = timedelta(days=30)
LONG_SNAPSHOT = timedelta(minutes=5)
SHOWN = 5
REINDEX = "reindex index concurrently "


@dataclass(frozen=True)
class Check:
    """One line of the report; `next` is what to do about it."""

    name: str
    verdict: CheckStatus
    detail: str
    next: str = ""


def server_version(status: SchemaStatus) -> Check:
    """Check that we support the server's version."""
    major = re.match(r"\d+", status.server_version)
    if major is not None and int(major[0]) in SUPPORTED:
        return Check("server", "ok", f"PostgreSQL {status.server_version} answers")
    return Check(
        "server",
        "warn",
        f"PostgreSQL {status.server_version} is newer than the versions we test on",
        "use PostgreSQL 15 to 18",
    )


def schema_version(status: SchemaStatus) -> Check:
    """Check that the schema is that of this release."""
    if not status.pending:
        return Check("schema", "ok", f"version {status.schema_version}, up to date")
    if status.schema_version is None:
        return Check("schema", "new", "nothing is installed yet", "holdfast db migrate")
    verdict: CheckStatus = "warn" if len(status.pending) == status.pending_indexes else "fail"
    pending = ", ".join(status.pending)
    return Check("schema", verdict, f"version {status.schema_version}; to apply: {pending}", "holdfast db migrate")


def violations(connection: Connection) -> Check:
    """Check that every invariant holds."""
    broken = connection.execute("select invariant, subject, detail from holdfast.violations()").fetchall()
    if not broken:
        return Check("invariants", "ok", "all hold")
    first = "; ".join(f"{invariant}: {subject} {detail}" for invariant, subject, detail in broken[:SHOWN])
    return Check("invariants", "fail", f"{len(broken)} broken: {first}", "select * from holdfast.violations()")


def roles(connection: Connection) -> Check:
    """Check that our roles exist, and that the schema's owner is not a superuser and cannot log in."""
    rows = connection.execute(
        "select rolname, rolsuper, rolcanlogin from pg_catalog.pg_roles where rolname = any(%s)", [sorted(ROLES)]
    ).fetchall()
    return judge_roles({name: (is_super, can_login) for name, is_super, can_login in rows})


def judge_roles(found: dict[str, tuple[bool, bool]]) -> Check:
    """Judge roles by whether each is a superuser and can log in."""
    if missing := ROLES - found.keys():
        return Check("roles", "fail", f"missing: {', '.join(sorted(missing))}", "holdfast db migrate")
    is_super, can_login = found["hf_owner"]
    if is_super:
        return Check("roles", "fail", "hf_owner is a superuser", "alter role hf_owner nosuperuser")
    if can_login:
        return Check("roles", "warn", "hf_owner can log in", "alter role hf_owner nologin")
    return Check("roles", "ok", f"{len(ROLES)} present; hf_owner is not a superuser and cannot log in")


def login(connection: Connection) -> Check:
    """Check that row-level security applies to our login."""
    [name, is_super] = one(
        connection, "select current_user::text, rolsuper from pg_catalog.pg_roles where rolname = current_user"
    )
    if not is_super:
        return Check("login", "ok", f"{name} is not a superuser")
    return Check(
        "login", "warn", f"{name} is a superuser, so row-level security does not apply", "log in as an ordinary role"
    )


def settings(connection: Connection) -> Check:
    """Check that commits are durable and that forgotten transactions end."""
    rows = connection.execute(
        "select name, setting from pg_catalog.pg_settings where name in ('client_connection_check_interval', "
        "'idle_in_transaction_session_timeout', 'synchronous_commit', 'fsync', 'full_page_writes')"
    ).fetchall()
    return judge_settings(dict(rows))


def judge_settings(found: dict[str, str]) -> Check:
    """Judge settings: one that can lose a commit is a failure, one that can block others a warning."""
    unsafe = [name for name in ("fsync", "full_page_writes", "synchronous_commit") if found[name] == "off"]
    if unsafe:
        then = "; ".join(f"alter system set {name} = on" for name in unsafe)
        return Check("settings", "fail", f"a crash can lose settled outcomes: {', '.join(unsafe)} off", then)
    zero = [n for n in ("client_connection_check_interval", "idle_in_transaction_session_timeout") if found[n] == "0"]
    if zero:
        then = (
            "alter system set client_connection_check_interval = '10s'; … idle_in_transaction_session_timeout = '15min'"
        )
        return Check("settings", "warn", f"a lost client can keep locks: {', '.join(zero)} is 0", then)
    return Check("settings", "ok", "commits are safe, forgotten transactions end")


def partitions(connection: Connection) -> Check:
    """Check that the journal has partitions for the days ahead."""
    [ahead] = one(connection, "select holdfast.partitions_ahead()")
    return judge_partitions(ahead)


def judge_partitions(ahead: timedelta | None) -> Check:
    """Judge how far ahead of the clock the partitions reach."""
    if ahead is not None and ahead >= ENOUGH_PARTITIONS:
        return Check("partitions", "ok", f"created {ahead.days} days ahead")
    days = 0 if ahead is None else ahead.days
    return Check(
        "partitions", "fail", f"created only {days} days ahead", "holdfast db migrate, and check that a worker runs"
    )


def snapshots(connection: Connection) -> Check:
    """Check that no old transaction keeps dead rows from being vacuumed."""
    rows = connection.execute(
        "select 'pid ' || pid || coalesce(' (' || nullif(application_name, '') || ')', ''), now() - xact_start"
        "  from pg_catalog.pg_stat_activity"
        " where (backend_xmin is not null or backend_xid is not null) and backend_type <> 'autovacuum worker'"
        "   and xact_start is not null"
        " union all select 'prepared transaction ' || gid, now() - prepared from pg_catalog.pg_prepared_xacts"
        " order by 2 desc limit 1"
    ).fetchall()
    return judge_snapshots(rows[0] if rows else None)


def judge_snapshots(oldest: tuple[str, timedelta] | None) -> Check:
    """Judge the holder of the oldest snapshot by its age."""
    if oldest is None or oldest[1] < LONG_SNAPSHOT:
        return Check("snapshots", "ok", "no snapshot is held for long")
    holder, age = oldest
    minutes = int(age.total_seconds() // 60)
    return Check(
        "snapshots", "warn", f"{holder} has held a snapshot for {minutes} minutes", "end it: pg_terminate_backend(pid)"
    )


def indexes(connection: Connection) -> Check:
    """Check that no killed build has left an invalid index, which costs writes and helps no read."""
    rows = connection.execute(
        "select n.nspname || '.' || c.relname,"
        "       exists (select from pg_catalog.pg_stat_progress_create_index p where p.index_relid = i.indexrelid)"
        "  from pg_catalog.pg_index i"
        "  join pg_catalog.pg_class c on c.oid = i.indexrelid"
        "  join pg_catalog.pg_namespace n on n.oid = c.relnamespace"
        " where not i.indisvalid and n.nspname = any (%s)"
        " order by 1",
        [sources.schemas()],
    ).fetchall()
    return judge_indexes(dict(rows))


def judge_indexes(invalid: dict[str, bool]) -> Check:
    """Judge invalid indexes by whether somebody is building them now."""
    left = [name for name, is_built in invalid.items() if not is_built]
    if left:
        then = (
            "holdfast db migrate, which builds it again" if all(map(_is_built_by_migrate, left)) else REINDEX + left[0]
        )
        return Check("indexes", "warn", f"invalid: {', '.join(left)}", then)
    return Check("indexes", "ok", f"being built: {', '.join(invalid)}" if invalid else "all are valid")


def _is_built_by_migrate(name: str) -> bool:
    return name.removeprefix("holdfast.") in {index.name for index in sources.indexes()}


def self_tests(connection: Connection) -> Check:
    """Check that no killed self-test has left its schema."""
    schemas = left_schemas(connection)
    if not schemas:
        return Check("self-tests", "ok", "no schema was left behind")
    return Check("self-tests", "warn", f"{', '.join(schemas)} left behind", "holdfast doctor --self-test removes it")


def schedules(connection: Connection) -> Check:
    """Check that every schedule has ticks, and that they are fired."""
    rows = connection.execute(
        "select l.name, coalesce('is broken: ' || l.broken, 'failed: ' || l.last_error,"
        "       'was due at ' || to_char(l.next_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS'))"
        "  from holdfast.schedule_list l"
        " where l.broken is not null or l.last_outcome = 'failed'"
        "    or l.next_at < holdfast.clock() - interval '1 minute'"
        " order by l.name"
    ).fetchall()
    return judge_schedules(rows)


def judge_schedules(found: list[tuple[str, str]]) -> Check:
    """Judge schedules that have no ticks, whose last tick could not start its work, or that nobody fires."""
    if not found:
        return Check("schedules", "ok", "every schedule fires")
    problems = "; ".join(f"{name} {problem}" for name, problem in found[:SHOWN])
    then = "start a worker" if found[0][1].startswith("was due") else f"holdfast schedules show {found[0][0]}"
    return Check("schedules", "warn", f"{len(found)} do not: {problems}", then)


CHECKS: dict[str, Callable[[Connection], Check]] = {
    "login": login,
    "roles": roles,
    "settings": settings,
    "snapshots": snapshots,
    "partitions": partitions,
    "indexes": indexes,
    "invariants": violations,
    "schedules": schedules,
    "self-tests": self_tests,
}
NEEDS_SCHEMA = frozenset({"partitions", "invariants", "roles", "schedules", "retention", "bloat", "indexes"})


def one(connection: Connection, statement: LiteralString) -> tuple[Any, ...]:
    """Return exactly one row."""
    row = connection.execute(statement).fetchone()
    if row is None:
        raise LookupError(f"no row: {statement}")
    return row
