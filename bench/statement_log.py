"""How many statements reach the server, by database: counted in the server's own log, the same way for every engine."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from psycopg import Connection
from psycopg.sql import SQL, Composed, Identifier

PREFIX = "<%d> "
# A prepared statement is logged once, when it is executed; what a function does inside is none of the client's.
STATEMENT = re.compile(rb"^<(\w+)> LOG:  (?:statement: |execute )", re.MULTILINE)


@dataclass(frozen=True)
class Position:
    """A place in the log."""

    file: str
    offset: int


@contextmanager
def logged(admin: str, databases: list[str]) -> Iterator[Connection[tuple[object, ...]]]:
    """Log the statements of new connections to these databases while the block runs."""
    with psycopg.connect(admin, autocommit=True) as connection:
        _configure(connection, SQL("alter system set log_line_prefix = {}").format(PREFIX))
        for database in databases:
            connection.execute(SQL("alter database {} set log_statement = 'all'").format(Identifier(database)))
        try:
            yield connection
        finally:
            _configure(connection, SQL("alter system reset log_line_prefix"))


def position(connection: Connection[tuple[object, ...]]) -> Position:
    """Return where the log ends now."""
    row = connection.execute("select f, (pg_stat_file(f)).size from pg_current_logfile('stderr') f").fetchone()
    if row is None or row[0] is None:
        raise RuntimeError("the server keeps no log file of the kind stderr, so its statements cannot be counted")
    return Position(str(row[0]), int(str(row[1])))


def counts(connection: Connection[tuple[object, ...]], since: Position) -> Counter[str]:
    """Count the statements that were logged since then, by database."""
    row = connection.execute(
        "select pg_read_binary_file(%s, %s, (pg_stat_file(%s)).size - %s)",
        [since.file, since.offset, since.file, since.offset],
    ).fetchone()
    if row is None or position(connection).file != since.file:
        raise RuntimeError("the server began a new log file in the middle of the count")
    return Counter(name.decode() for name in STATEMENT.findall(bytes(row[0])))  # type: ignore[call-overload]


def _configure(connection: Connection[tuple[object, ...]], statement: SQL | Composed) -> None:
    connection.execute(statement)
    connection.execute("select pg_reload_conf()")
