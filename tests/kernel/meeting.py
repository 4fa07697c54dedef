"""Two sessions that meet at a place of the test's choice, to see whether they wait for each other."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import Connection, sql

from kernel.steps import PATIENCE, until_blocked, value

DB = Connection[Any]
Job = Callable[[DB], Any]
GATE = 4711


def shut_gate(db: DB, place: str) -> None:
    """Let the session named `first` wait at each of its statements such as `after update on holdfast.runs`."""
    when, table = place.split(" on ")
    db.execute(
        f"""create or replace function public.wait_at_gate() returns trigger language plpgsql as
           $$ begin perform pg_advisory_xact_lock_shared({GATE}); return null; end $$"""
    )
    db.execute(
        sql.SQL(
            """create trigger a_gate {} on {} for each statement
               when (current_setting('application_name') = 'first') execute function public.wait_at_gate()"""
        ).format(sql.SQL(when), sql.Identifier(*table.split(".")))
    )
    db.execute("select pg_advisory_lock(%s)", [GATE])


def meet(db: DB, dsn: str, place: str, first: Job, second: Job) -> list[Any]:
    """Let `first` wait at a place, let `second` go as far as the locks of `first` let it, then let both go on.

    Returns what each gave, or the error that it raised, such as a deadlock.
    """
    answers: list[Any] = [None, None]

    def work(number: int, connection: DB, job: Job) -> None:
        try:
            answers[number] = job(connection)
        except psycopg.Error as error:
            answers[number] = error

    shut_gate(db, place)
    with (
        psycopg.connect(dsn, autocommit=True, application_name="first") as early,
        psycopg.connect(dsn, autocommit=True) as late,
    ):
        one = threading.Thread(target=work, args=(0, early, first))
        two = threading.Thread(target=work, args=(1, late, second))
        try:
            one.start()
            until_blocked(db, early.info.backend_pid)
            two.start()
            _until_stuck(db, late.info.backend_pid, two)
        finally:
            db.execute("select pg_advisory_unlock(%s)", [GATE])
            for thread in (one, two):
                if thread.ident is not None:
                    thread.join(PATIENCE)
    return answers


def failures(answers: list[Any]) -> list[str | None]:
    """Return the SQLSTATEs of the errors among the answers."""
    return [answer.sqlstate for answer in answers if isinstance(answer, psycopg.Error)]


def _until_stuck(db: DB, pid: int, thread: threading.Thread) -> None:
    """Wait until a session waits for a lock, or has come to its end."""
    while thread.is_alive() and not value(db, "select cardinality(pg_blocking_pids(%s)) > 0", pid):
        thread.join(0.001)
