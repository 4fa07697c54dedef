"""Writes the page of all documented defaults: each with its source, and with the value that code and database have."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from psycopg import Connection

from holdfast.config import Config
from holdfast.flow.backoff import Backoff
from holdfast.ingest.settings import Settings
from holdfast.models import DEFAULT_LEASE
from holdfast.rules.api import BREAKER_AFTER, BREAKER_FOR

OPENING = """\
# Defaults

{note}

Every default that one of the source documents states, with the document and its line, and the value
that Holdfast uses. The last column is read from the code and from an installed database when this
page is written, and a test compares both columns.

| id | document | line | default | documented | here | set by |
| --- | --- | --- | --- | --- | --- | --- |
"""
LAWS = """
## Retry laws

"Three retries" means something else in each document. `tries` counts executions, the first one
included. The waits are those before jitter, as `holdfast.backoff` computes them.

| document | policy | tries | waits (s) | jitter | cap | what the document counts |
| --- | --- | --- | --- | --- | --- | --- |
"""
LAWS_END = """
Document 003 also delays the next look at a run: by 0, 45 or 10 s, or by the time of the earliest
retry, plus 5 s, and by 30 s for an unknown status; see `Backoff` above. The pause of document 000
after more than five answers 429 in a row is a circuit breaker:
`hf.limit(…, breaker_after=6, breaker_for=60)`.
"""
RETENTION = """
## Retention

What is over is kept this long by default. `holdfast retention set` changes it; see
[the guide](../guides/retention.md).

| what | outcome | kept for |
| --- | --- | --- |
"""
RETENTION_END = """| keys | | forever, unless the start says `key_for` |

The first sweep begins a day after the migration.
"""
# As they are written, and as the server shows them in a function whose body is parsed already. A function without any
# gives null.
INTERVALS = """
select coalesce(m.found[1], m.found[2])::interval
  from unnest(%s::regproc[]) f(oid)
  left join lateral regexp_matches(pg_catalog.pg_get_functiondef(f.oid),
                                   $$interval '([^']+)'|'([^']+)'::interval$$, 'g') m(found) on true
"""
Read = Callable[[Connection[Any]], Any]


@dataclass(frozen=True)
class Documented:
    """A default as its document states it; `read` gives ours."""

    id: str
    document: str
    line: str
    name: str
    value: str
    set_by: str
    read: Read

    def ours(self, connection: Connection[Any]) -> str:
        """Return our value in the document's words."""
        return shown(self.read(connection))


def shown(value: Any) -> str:
    """Format a value for the table; durations are seconds."""
    match value:
        case bool():
            return "yes" if value else "no"
        case timedelta():
            return f"{value.total_seconds():g} s"
        case list() | tuple():
            return ", ".join(shown(each) for each in value)
        case float() | int():
            return f"{value:g}"
        case _:
            return str(value)


def policy(name: str, column: str) -> Read:
    """Read a column of a retry policy."""
    statement = f"select {column} from holdfast.policies where policy = %s"  # noqa: S608 - our own names

    def read(connection: Connection[Any]) -> Any:
        row = connection.execute(statement, [name]).fetchone()  # type: ignore[arg-type]
        return None if row is None else row[0]

    return read


def setting(name: str) -> Read:
    """Read the default of a setting."""
    return lambda _: Config.model_fields[name].default


def feed(name: str) -> Read:
    """Read the default of a setting of a feed."""
    return lambda _: Settings.__dataclass_fields__[name].default


def backoff(name: str) -> Read:
    """Read a field of `Backoff()`."""
    return lambda _: getattr(Backoff(), name)


def interval(function: str, pattern: str) -> Read:
    """Read an interval that is written in a function of `rules`."""
    statement = "select (regexp_match(p.prosrc, %s))[1]::interval from pg_catalog.pg_proc p where p.oid = %s::regproc"

    def read(connection: Connection[Any]) -> Any:
        row = connection.execute(statement, [pattern, f"rules.{function}"]).fetchone()
        return None if row is None else row[0]

    return read


def only_interval(*functions: str) -> Read:
    """Read the interval that these functions of `ops` are written with; list all of them if they differ."""

    def read(connection: Connection[Any]) -> Any:
        rows = connection.execute(INTERVALS, [[f"ops.{function}" for function in functions]]).fetchall()
        values = sorted({value for (value,) in rows}, key=str)
        return values[0] if len(values) == 1 else values

    return read


def delay(name: str) -> Read:
    """Read one of its delays."""
    return lambda _: getattr(Backoff().reenqueue_delays, name)


# fmt: off
DOCUMENTED = (
    Documented("A-38", "000", "114", "MAX_RETRIES per target", "3 retries", "policy `rules.target`",
               lambda db: f"{policy('rules.target', 'tries')(db) - 1} retries"),
    Documented("A-39", "000", "115", "BASE_DELAY", "2 s", "policy `rules.target`", policy("rules.target", "base")),
    Documented("A-40", "000", "116", "MAX_DELAY", "64 s", "policy `rules.target`", policy("rules.target", "longest")),
    Documented("A-41", "000", "117", "MULTIPLIER", "2", "policy `rules.target`",
               policy("rules.target", "growth::float8")),
    Documented("A-42", "000", "118", "JITTER", "0.2", "policy `rules.target`",
               policy("rules.target", "jitter::float8")),
    Documented("A-43", "000", "113", "all five retry parameters", "configurable", "`holdfast.define_policy`",
               lambda _: "configurable"),
    Documented("A-56", "000", "203", "first and longest wait after a rate limit", "16 s, 64 s", "policy `rules.429`",
               lambda db: (policy("rules.429", "base")(db), policy("rules.429", "longest")(db))),
    Documented("A-59", "000", "397", "rate limits in a row that open the breaker, and its pause", "more than 5, 60 s",
               "`hf.rules.channel(breaker_after=…)`", lambda _: (f"more than {BREAKER_AFTER - 1}", f"{BREAKER_FOR} s")),
    Documented("A-79", "000", "304", "delayed pass, after the end of a run", "3600 s", "fixed",
               interval("plan_passes", "'delayed', run.finished_at \\+ interval '([^']+)'")),
    Documented("A-80", "000", "305", "daily passes, days after the end of a run", "30", "fixed",
               lambda db: interval("record_passes", "run.finished_at \\+ interval '([^']+)'")(db).days),
    Documented("A-64", "000", "222", "timeout of a channel", "a parameter", "`hf.rules.channel`",
               lambda _: "a parameter"),
    Documented("P-23", "001", "34, 82", "raw records per batch", "2000", "`hf.ingest(batch=…)`", feed("batch")),
    Documented("P-31", "001", "83", "records per upsert", "100", "`hf.ingest(upsert=…)`", feed("upsert")),
    Documented("P-32", "001", "84", "batches at once", "5", "`hf.ingest(parallel=…)`", feed("parallel")),
    Documented("P-34", "001", "82-84", "these three numbers", "configurable", "`hf.ingest`",
               lambda _: "configurable"),
    Documented("P-66", "001", "150", "records per page", "30", "`hf.ingest(page_size=…)`", feed("page_size")),
    Documented("P-143", "001", "429", "deliveries of a message", "3", "policy `ingest.queue`",
               policy("ingest.queue", "tries")),
    Documented("O-32", "002", "117", "stale without an event", "300 s", "fixed",
               only_interval("sweep_runs", "cancel_if_stale", "stale_reason")),
    Documented("O-50", "002", "510-516", "window of duplicate events", "10 s", "fixed",
               only_interval("repeated_event")),
    Documented("O-83", "002", "550", "MAX_RETRIES", "3", "policy `ops.in_place`", policy("ops.in_place", "tries")),
    Documented("O-84", "002", "552, 582", "first backoff, and its growth", "5 s, 2", "policy `ops.in_place`",
               lambda db: [policy("ops.in_place", "base")(db), policy("ops.in_place", "growth::float8")(db)]),
    Documented("T-43", "003", "124", "retry limit", "3", "`@flow.step(retry=…)`, policy `flow.step`",
               policy("flow.step", "tries")),
    Documented("T-76", "003", "267", "retry limit per step template", "3", "`retry_limit` of a step",
               policy("flow.step", "tries")),
    Documented("T-94", "003", "315-316", "default_backoff_seconds", "1, 2, 4, 8, 16, 32", "`Backoff`",
               backoff("default_backoff_seconds")),
    Documented("T-95", "003", "319", "max_backoff_seconds", "300", "`Backoff`", backoff("max_backoff_seconds")),
    Documented("T-96", "003", "322", "backoff_multiplier", "2", "`Backoff`", backoff("backoff_multiplier")),
    Documented("T-97", "003", "325", "jitter_enabled", "yes", "`Backoff`", backoff("jitter_enabled")),
    Documented("T-98", "003", "326", "jitter_max_percentage", "0.1", "`Backoff`", backoff("jitter_max_percentage")),
    Documented("T-99", "003", "330", "has_ready_steps", "0", "`ReenqueueDelays`", delay("has_ready_steps")),
    Documented("T-100", "003", "331", "waiting_for_dependencies", "45", "`ReenqueueDelays`",
               delay("waiting_for_dependencies")),
    Documented("T-101", "003", "332", "processing", "10", "`ReenqueueDelays`", delay("processing")),
    Documented("T-102", "003", "336", "default_reenqueue_delay", "30", "`Backoff`", backoff("default_reenqueue_delay")),
    Documented("T-103", "003", "337", "buffer_seconds", "5", "`Backoff`", backoff("buffer_seconds")),
    Documented("W-45", "004", "14", "recovery interval", "30 s", "`HOLDFAST_RECOVERY_INTERVAL`",
               setting("recovery_interval")),
    Documented("W-46", "004", "22, 103", "lease", "300 s", "`HOLDFAST_LEASE`, `@hf.task(lease=…)`",
               lambda _: DEFAULT_LEASE),
    Documented("W-47", "004", "18, 79", "poll interval: first, growth, longest", "0.2 s, 2, 10 s",
               "`HOLDFAST_POLL_MIN`, `_FACTOR`, `_MAX`",
               lambda _: [Config.model_fields[name].default for name in ("poll_min", "poll_factor", "poll_max")]),
    Documented("W-48", "004", "30, 67", "ErrorWait", "5 s", "`HOLDFAST_ERROR_WAIT`", setting("error_wait")),
    Documented("W-49", "004", "98", "max_tries", "3", "`@hf.task(retry=…)`, policy `work.task`",
               policy("work.task", "tries")),
)
# fmt: on
# The retry laws of C-30: document, policy, and what its number counts.
LAWS_OF = (
    ("000, a target", "rules.target", "retries: 3 after the first execution"),
    ("000, a rate limit without Retry-After", "rules.429", "retries, with the same counter"),
    ("001, a message", "ingest.queue", "deliveries"),
    ("002, a worker, in place", "ops.in_place", "executions"),
    ("003, a step", "flow.step", "executions"),
    ("003, in plain SQL", "flow.sql", "executions"),
    ("004, a task", "work.task", "claims; a failed one waits for its lease, or not at all"),
    ("004, an idle poll", "idle_poll", "-"),
    ("004, ErrorWait", "error_wait", "-"),
)
LAW = """
select p.tries, p.jitter::float8, p.longest,
       array(select holdfast.backoff(p.policy, n, 0.5) from generate_series(1, least(coalesce(p.tries - 1, 6), 6)) n)
  from holdfast.policies p where p.policy = %s
"""
KEPT = """
select r.what, coalesce(r.outcome, r.machine, ''), r.keep from (
  select r.what, r.outcome, r.machine, split_part(r.rule, ': ', 2) as keep from holdfast.retention_list r
   where r.is_default) r
 order by r.what = 'ticks', r.what = 'journal', r.outcome
"""
WORDS = {"runs": "tasks and runs", "journal": "journal and notes, by whole months", "ticks": "ticks of schedules"}


def page(connection: Connection[Any], note: str) -> str:
    """Write the page."""
    rows = [(d.id, d.document, d.line, d.name, d.value, d.ours(connection), d.set_by) for d in DOCUMENTED]
    laws = [_law(connection, *law) for law in LAWS_OF]
    kept = [(WORDS[what], outcome, keep) for what, outcome, keep in connection.execute(KEPT).fetchall()]
    return "".join(
        [OPENING.format(note=note), _rows(rows), LAWS, _rows(laws), LAWS_END, RETENTION, _rows(kept), RETENTION_END]
    )


def _law(connection: Connection[Any], document: str, name: str, counts: str) -> tuple[str, ...]:
    row = connection.execute(LAW, [name]).fetchone()
    if row is None:
        raise LookupError(f"there is no policy {name}")
    tries, jitter, longest, waits = row
    seconds = ", ".join(f"{each.total_seconds():g}" for each in waits)
    spread = f"±{jitter:.0%}" if jitter else "none"
    return (
        document,
        f"`{name}`",
        "unlimited" if tries is None else str(tries),
        seconds or "-",
        spread,
        shown(longest if longest is not None else "none"),
        counts,
    )


def _rows(rows: list[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)
