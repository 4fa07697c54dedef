"""Millions of finished tasks, cloned by SQL from some that the engine finished itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import psycopg

SAMPLES = 1000


@dataclass(frozen=True)
class Part:
    """A table with data about finished tasks; `key` is the column that names the task."""

    table: str
    key: str
    left_out: tuple[str, ...] = ()  # the table's default fills them
    set_to: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class History:
    """The tables in which an engine keeps finished tasks; the first one is counted."""

    new_key: str
    is_finished: str
    parts: tuple[Part, ...]


HISTORIES = {
    "holdfast": History(
        "nextval('holdfast.step_ids')",
        "finished_at is not null",
        (Part("holdfast.steps", "id"), Part("holdfast.journal", "step_id", ("id",))),
    ),
    "baseline": History(
        "nextval(pg_get_serial_sequence('baseline.steps', 'id'))",
        "finished_at is not null",
        (Part("baseline.steps", "id"), Part("baseline.journal", "step_id", ("id",))),
    ),
    # A job's rows in the log: queued, picked, successful. The job's own row is gone, and its worker has counted it.
    "pgqueuer": History(
        "nextval(pg_get_serial_sequence('public.pgqueuer', 'id'))",
        "status = 'successful'",
        (Part("public.pgqueuer_log", "job_id", ("id",), set_to={"aggregated": "true"}),),
    ),
}


def grow(admin: str, engine: str, size: int) -> None:
    """Clone finished tasks until there are `size` of them, with an administrator's DSN."""
    history = HISTORIES[engine]
    with psycopg.connect(admin) as connection:
        counted = f"select count(*) from {history.parts[0].table} where {history.is_finished}"
        missing = size - int(str(connection.execute(counted).fetchone()[0]))  # type: ignore[index]
        if missing <= 0:
            return
        connection.execute("set session_replication_role = replica")  # no triggers: the rows are history, no moves
        connection.execute(_clones(history, missing))
        connection.execute("analyze clones")
        for part in history.parts:
            connection.execute(_insert(part, _columns(connection, part)))


def _clones(history: History, count: int) -> str:
    first = history.parts[0]
    return f"""create temporary table clones on commit drop as
      with sample as materialized (
        select array_agg(f.key) as keys
          from (select distinct {first.key} as key from {first.table} where {history.is_finished} limit {SAMPLES}) f)
      select {history.new_key} as new, s.keys[1 + g % cardinality(s.keys)] as old
        from generate_series(1, {count}) g, sample s"""


def _insert(part: Part, columns: list[str]) -> str:
    given = {part.key: "c.new", **part.set_to}
    values = [given.get(column, f'x."{column}"') for column in columns]
    names = [f'"{column}"' for column in columns]
    return f"""insert into {part.table} ({", ".join(names)}) overriding system value
      select {", ".join(values)} from clones c join {part.table} x on x.{part.key} = c.old"""


def _columns(connection: psycopg.Connection[tuple[object, ...]], part: Part) -> list[str]:
    rows = connection.execute(
        """select a.attname from pg_attribute a
            where a.attrelid = %s::regclass and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
            order by a.attnum""",
        [part.table],
    )
    return [str(name) for (name,) in rows if name not in part.left_out]
