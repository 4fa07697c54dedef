"""What tests of the face's SQL ask (steps by name, readiness, context), and how they bring tasks to where they want."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from itertools import count
from typing import Any
from uuid import UUID

from psycopg import Connection, sql
from psycopg.rows import dict_row

from holdfast import Holdfast
from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Fail, Outcome, Retry
from kernel.steps import LEASE, ids_by_name, settle
from worker.running import until

DB = Connection[Any]
Row = dict[str, Any]
NUMBERS = count(1)  # of workers: under a clock that stands, one does not look again at what it has passed


def rows(db: DB, query: str, *arguments: Any) -> list[Row]:
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(sql.SQL(query), arguments).fetchall()


def readiness(db: DB, task_id: UUID, step_ids: list[int] | None = None) -> dict[str, Row]:
    """Ask for the readiness of a task's steps, by name."""
    answer = rows(db, "select * from flow.get_step_readiness_status(%s, %s)", task_id, step_ids)
    return {row["name"]: row for row in answer}


def ready(db: DB, task_id: UUID) -> set[str]:
    return {name for name, row in readiness(db, task_id).items() if row["ready_for_execution"]}


def context(db: DB, task_id: UUID) -> Row:
    (row,) = rows(db, "select * from flow.get_task_execution_context(%s)", task_id)
    return row


def step(db: DB, task_id: UUID, name: str) -> Row:
    (row,) = rows(db, "select * from flow.steps where task_id = %s and name = %s", task_id, name)
    return row


def adjust(db: DB, step_id: int, **columns: Any) -> None:
    """Update a step of the view, as SQL does."""
    assigned = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in columns)
    update = sql.SQL("update flow.steps set {} where step_id = %s").format(assigned)
    db.execute(update, [*columns.values(), step_id])


def hold(db: DB, name: str) -> ClaimedStep:
    """Claim the step of that kind; another worker serves all the others, so that none is parked."""
    run(db, calls.enlist_worker("serves all", ["default"]))
    (step,) = run(db, calls.claim_steps(f"w{next(NUMBERS)}", kinds=[name], lease=LEASE))
    return step


def give(db: DB, name: str, outcome: Outcome) -> ClaimedStep:
    """Claim the step of that kind and settle it."""
    step = hold(db, name)
    assert len(settle(db, step, outcome)) == 1
    return step


def done(db: DB, *names: str) -> None:
    for name in names:
        give(db, name, Done())


def retried(db: DB, name: str) -> ClaimedStep:
    return give(db, name, Retry({"type": "Busy", "message": "again"}))


def failed(db: DB, name: str) -> ClaimedStep:
    return give(db, name, Fail({"type": "Bad", "message": "no"}))


def exhausted(db: DB, name: str) -> None:
    """Let a step fail until its tries are used up."""
    while True:
        step_id = retried(db, name).step_id
        (found,) = rows(db, "select next_retry_at from flow.steps where step_id = %s", step_id)
        if found["next_retry_at"] is None:
            return
        adjust(db, step_id, backoff_request_seconds=0)


def set_due(db: DB, step_id: int, moment: datetime) -> None:
    """Set a due time by SQL, as an operator of the database may."""
    db.execute("update holdfast.steps set due_at = %s where id = %s", [moment, step_id])


def names_of(db: DB, task_id: UUID, step_ids: Iterable[int]) -> set[str]:
    wanted = set(step_ids)
    return {name for name, step_id in ids_by_name(db, task_id).items() if step_id in wanted}


def count_calls(db: DB) -> None:
    """Let the server count the calls of functions, in the sessions that begin after this."""
    db.execute(sql.SQL("alter database {} set track_functions = 'all'").format(sql.Identifier(db.info.dbname)))


def counted_calls(hf: Holdfast, db: DB) -> Counter[str]:
    """Read how often each function of the face was called; a session's counts are there when it has ended."""
    hf.close()
    others = """select count(*) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'"""
    until(lambda: db.execute(others).fetchone() == (0,), "the end of other sessions")
    query = "select funcname, calls from pg_stat_user_functions where schemaname = 'flow'"
    return Counter(dict(db.execute(query).fetchall()))
