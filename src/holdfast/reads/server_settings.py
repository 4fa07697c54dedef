"""Checks for harmful server settings, wherever they are set: for the server, the database, a login or in the DSN."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from holdfast.models import DEFAULT_LEASE
from holdfast.reads.schema_checks import Check, Connection, one

ROOM = 10  # connections that should be free: a default worker uses up to that many
TIMEOUTS = ("statement_timeout", "lock_timeout", "transaction_timeout", "idle_session_timeout")
IN_TRANSACTION = "idle_in_transaction_session_timeout"
# What a session must begin with, and what happens if it does not.
NEEDED = {
    "default_transaction_isolation": ("read committed", "concurrent calls fail with serialization failures"),
    "default_transaction_read_only": ("off", "every start, claim and settle is rejected"),
    "session_replication_role": ("origin", "triggers do not fire, so nothing is checked or journaled"),
    "row_security": ("on", "reads fail for every login but a superuser"),
    "intervalstyle": ("postgres", "the driver cannot read intervals"),
    "datestyle": ("ISO", "the driver cannot read times"),
}
OF_LOGINS = """
select r.rolname, split_part(c.setting, '=', 1), substr(c.setting, strpos(c.setting, '=') + 1)
  from pg_catalog.pg_db_role_setting s
  join pg_catalog.pg_roles r on r.oid = s.setrole and not r.rolsuper and r.rolname <> current_user
 cross join lateral unnest(s.setconfig) c (setting)
 where s.setdatabase in (0, (select d.oid from pg_catalog.pg_database d where d.datname = current_database()))
   and exists (select from pg_catalog.pg_roles h
                where h.rolname in ('hf_worker', 'hf_producer', 'hf_operator')
                  and pg_catalog.pg_has_role(r.oid, h.oid, 'member'))
"""
VACUUM = """
select (select pg_catalog.array_agg(s.name) from pg_catalog.pg_settings s
         where s.name in ('autovacuum', 'track_counts') and s.setting = 'off'),
       (select pg_catalog.array_agg(c.relname::text order by c.relname) from pg_catalog.pg_class c
         where c.relnamespace = pg_catalog.to_regnamespace('holdfast')
           and c.reloptions::text ~ 'autovacuum_enabled=(false|off|0|no)')
"""
PLANNER = """
select s.name from pg_catalog.pg_settings s
 where s.name like 'enable\\_%' and s.setting <> s.boot_val and s.setting = 'off' order by 1
"""
# The limits for this login, with the use of each; only the first applies to a superuser.
CONNECTIONS = """
select 'max_connections',
       (select pg_catalog.sum(s.setting::int * case s.name when 'max_connections' then 1 else -1 end)::int
          from pg_catalog.pg_settings s
         where s.name in ('max_connections', 'superuser_reserved_connections', 'reserved_connections')),
       (select pg_catalog.sum(a.numbackends)::int from pg_catalog.pg_stat_database a)
union all
select 'the limit of database ' || d.datname, d.datconnlimit, a.numbackends
  from pg_catalog.pg_database d join pg_catalog.pg_stat_database a on a.datid = d.oid
 where d.datname = current_database() and d.datconnlimit >= 0
union all
select 'the limit of login ' || r.rolname, r.rolconnlimit,
       (select pg_catalog.count(*)::int from pg_catalog.pg_stat_activity a where a.usename = r.rolname)
  from pg_catalog.pg_roles r where r.rolname = session_user and r.rolconnlimit >= 0
"""


@dataclass(frozen=True)
class Setting:
    """A setting as sessions of this login get it, or those of another login that the engine serves."""

    name: str
    value: str
    login: str = ""

    def __str__(self) -> str:
        """Return the name, the value and, if it is not ours, the login."""
        return f"{self.name} = {self.value}{f' for login {self.login}' if self.login else ''}"


def session(connection: Connection) -> Check:
    """Check that sessions begin as our calls need them."""
    settings = [s for s in in_force(connection) if s.name in NEEDED]
    wrong = [s for s in settings if _plain(s.value) != _plain(NEEDED[s.name][0])]
    if not wrong:
        return Check("session", "ok", "sessions begin as our calls need them")
    detail = "; ".join(f"{setting}: {NEEDED[setting.name][1]}" for setting in wrong)
    return Check("session", "fail", detail, "; ".join(f"reset {s.name} to {NEEDED[s.name][0]}" for s in wrong))


def timeouts(connection: Connection, *, call_deadline: timedelta) -> Check:
    """Check that the server waits as long as we do."""
    least = dict.fromkeys((*TIMEOUTS, IN_TRANSACTION), call_deadline) | {"idle_session_timeout": DEFAULT_LEASE}
    with connection.transaction(force_rollback=True):
        found = [
            Setting(s.name, f"{span.total_seconds():g} s", s.login)
            for s in in_force(connection)
            if s.name in least and timedelta(0) < (span := _span(connection, s)) < least[s.name]
        ]
    if not found:
        return Check("timeouts", "ok", "no timeout ends a call that we still wait for")
    wanted = "; ".join(f"{s.name} = 0, or {least[s.name].total_seconds():g} s or more" for s in found)
    detail = "; ".join(map(str, found)) + ": the server ends calls or connections that workers and apps wait for"
    return Check("timeouts", "warn", detail, wanted)


def vacuum(connection: Connection) -> Check:
    """Check that autovacuum removes dead rows."""
    [settings, tables] = one(connection, VACUUM)
    if settings:
        then = "; ".join(f"alter system set {name} = on" for name in settings)
        return Check("vacuum", "warn", f"{', '.join(settings)} off: claims slow down as dead rows accumulate", then)
    if tables:
        then = "; ".join(f"alter table holdfast.{name} reset (autovacuum_enabled)" for name in tables)
        return Check("vacuum", "warn", f"autovacuum is off for {', '.join(tables)}: claims slow down", then)
    return Check("vacuum", "ok", "autovacuum removes dead rows")


def planner(connection: Connection) -> Check:
    """Check that no plan type is switched off that our functions rely on."""
    names = [name for (name,) in connection.execute(PLANNER).fetchall()]
    if not names:
        return Check("planner", "ok", "no plan type is switched off")
    then = "; ".join(f"reset {name} to on" for name in names)
    return Check("planner", "warn", f"{', '.join(names)} off: calls may read whole tables", then)


def connections(connection: Connection) -> Check:
    """Check that there is room for one more worker."""
    return judge_connections(connection.execute(CONNECTIONS).fetchall())


def judge_connections(limits: Iterable[tuple[str, int, int]]) -> Check:
    """Judge limits by how much of each is left."""
    name, most, used = min(limits, key=lambda limit: limit[1] - limit[2])
    detail = f"{used} of {most} in use ({name})"
    if most - used >= ROOM:
        return Check("connections", "ok", detail)
    return Check("connections", "warn", f"{detail}: a worker needs up to {ROOM}", f"raise {name}, or run fewer workers")


def in_force(connection: Connection) -> list[Setting]:
    """Return the settings of this login's sessions, and those set for other logins that the engine serves."""
    names = [*NEEDED, *TIMEOUTS, IN_TRANSACTION]
    own = connection.execute(
        "select lower(name), setting from pg_catalog.pg_settings where lower(name) = any(%s)", [names]
    ).fetchall()
    others = connection.execute(OF_LOGINS).fetchall()
    return [Setting(name, value) for name, value in own] + [
        Setting(name.lower(), value, login) for login, name, value in others if name.lower() in names
    ]


def _plain(value: str) -> str:
    """Normalise the spelling of a value: `no` to `off`, `ISO, MDY` to `iso`."""
    word = value.split(",", maxsplit=1)[0].strip().lower()
    return {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}.get(word, word)


def _span(connection: Connection, setting: Setting) -> timedelta:
    """Parse a timeout of any unit: the server parses it, and the caller rolls that back."""
    if not setting.login:
        return timedelta(milliseconds=int(setting.value))
    connection.execute("select pg_catalog.set_config(%s, %s, true)", [setting.name, setting.value])
    row = connection.execute("select setting from pg_catalog.pg_settings where name = %s", [setting.name]).fetchone()
    return timedelta(milliseconds=int(row[0])) if row else timedelta(0)


def server_checks(call_deadline: timedelta) -> dict[str, Callable[[Connection], Check]]:
    """List the checks of this module by name."""
    return {
        "session": session,
        "timeouts": partial(timeouts, call_deadline=call_deadline),
        "vacuum": vacuum,
        "planner": planner,
        "connections": connections,
    }
