"""What the kernel's tests arrange and read: start, claim, settle, race."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import psycopg
from psycopg import Connection, sql
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from holdfast.kernel import calls
from holdfast.kernel.db import run
from holdfast.models import ClaimedStep, Done, Outcome, Settlement

DB = Connection[Any]
T = TypeVar("T")
LEASE = timedelta(seconds=30)
PATIENCE = 60.0  # of a thread at a barrier; only a broken test waits that long


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def start(db: DB, name: str = "mail", given: Any = None, **options: Any) -> int:
    """Start a task."""
    return run(db, calls.start_task(name, {"to": "a"} if given is None else given, **options))[0]


def start_flow(db: DB, *steps: dict[str, Any], **options: Any) -> UUID:
    """Start a workflow from its plan."""
    return run(db, calls.start_run("flow.task", "order", "flow.step", steps=steps, **options))[0]


def stage(db: DB, steps: Iterable[tuple[str, str]], *, run_id: UUID | None = None, machine: str = "work.task") -> int:
    """Start many steps by COPY, each a kind and its input as JSON text; how many."""
    with db.transaction():
        run(db, calls.stage_steps())
        with db.cursor() as cursor, cursor.copy("copy pg_temp.staged_steps (kind, input) from stdin") as copy:
            for step in steps:
                copy.write_row(step)
        return run(db, calls.take_staged(machine, run_id=run_id))[0]


def add_steps(db: DB, run_id: UUID, *steps: dict[str, Any], machine: str = "flow.step") -> list[int]:
    """Add steps to a run, as a face does."""
    with db.transaction():
        db.execute("select holdfast.set_actor('system', 'test')")
        ids: list[int] = value(db, "select holdfast.add_steps(%s, %s, %s)", run_id, machine, Jsonb(steps))
        db.execute("select holdfast.set_actor()")
    return ids


def wide_run(db: DB, steps: int) -> UUID:
    """A run of many steps."""
    return start_flow(db, *(node(f"s{n}") for n in range(steps)))


def wish_in_chunks(db: DB, run_id: UUID, event: str, chunk: int) -> None:
    """Wish for a run as act_on_run does, but move only a small chunk of its steps at once."""
    with db.transaction():
        db.execute("select holdfast.set_actor('user', 'test')")
        db.execute("select holdfast.move_runs(array[%s]::uuid[], %s, holdfast.clock())", [run_id, event])
        db.execute("update holdfast.runs set moving = %s where id = %s", [event, run_id])
        db.execute("select holdfast.move_run_steps(%s, %s)", [run_id, chunk])
        db.execute("select holdfast.set_actor()")


def node(name: str, *after: str, **options: Any) -> dict[str, Any]:
    """Plan a step that is called as its kind and waits for others."""
    return {"kind": name, "name": name, **({"after": list(after)} if after else {}), **options}


def claim(db: DB, worker: str = "a", **options: Any) -> list[ClaimedStep]:
    return run(db, calls.claim_steps(worker, **{"lease": LEASE, **options}))


def claim_one(db: DB, worker: str = "a", **options: Any) -> ClaimedStep:
    (step,) = claim(db, worker, **options)
    return step


def settlement(step: ClaimedStep, outcome: Outcome) -> Settlement:
    return Settlement(step.step_id, step.lease_id, outcome)


def settle(db: DB, step: ClaimedStep, outcome: Outcome) -> list[str]:
    """Settle one step; the events that the database accepted, so none when the lease is lost."""
    return [s.event for s in run(db, calls.settle_steps([settlement(step, outcome)]))]


def finish(db: DB, steps: Iterable[ClaimedStep]) -> list[int]:
    """Settle steps as done; the ids that the database accepted."""
    return [s.step_id for s in run(db, calls.settle_steps([settlement(s, Done()) for s in steps]))]


def rescue(db: DB, batch: int = 100) -> list[tuple[int, str]]:
    return [(s.step_id, s.event) for s in run(db, calls.rescue_steps(batch=batch))]


def value(db: DB, query: str, *arguments: Any) -> Any:
    """Give the one value that a query answers with."""
    row = db.execute(sql.SQL(query), arguments).fetchone()
    assert row is not None
    return row[0]


def column(db: DB, step_id: int, name: str) -> Any:
    return value(db, f"select {name} from holdfast.steps where id = %s", step_id)


def step_row(db: DB, step_id: int) -> dict[str, Any]:
    return _row(db, "select * from holdfast.steps where id = %s", step_id)


def run_row(db: DB, run_id: UUID) -> dict[str, Any]:
    return _row(db, "select * from holdfast.runs where id = %s", run_id)


def counts(db: DB, run_id: UUID) -> dict[str, int]:
    """Read a run's counters, those that are zero left out."""
    row = run_row(db, run_id)
    names = ("total", "live", "succeeded", "failed", "cancelled")
    return {name: row[name] for name in names if row[name]}


def ids_by_name(db: DB, run_id: UUID) -> dict[str, int]:
    rows = db.execute("select name, step_id from holdfast.run_steps where run_id = %s order by step_id", [run_id])
    return dict(rows.fetchall())


def states(db: DB, run_id: UUID) -> dict[str, str]:
    """Read the states of a run's steps by name."""
    return {name: column(db, step_id, "state") for name, step_id in ids_by_name(db, run_id).items()}


def notes(db: DB, step_id: int) -> list[tuple[str, str]]:
    rows = db.execute("select level, message from holdfast.notes where step_id = %s order by id", [step_id])
    return rows.fetchall()


def violations(db: DB) -> list[tuple[str, str]]:
    return [(v.invariant, v.subject) for v in run(db, calls.violations())]


def clock_of(db: DB) -> datetime:
    moment: datetime = value(db, "select holdfast.clock()")
    return moment


def fingerprint(db: DB) -> list[Any]:
    """Read all that a refused call must leave as it was."""
    tables = ("steps", "runs", "run_steps", "edges", "keys", "queues", "journal", "notes")
    return [
        value(db, f"select md5(coalesce(string_agg(t::text, ';' order by t::text), '')) from holdfast.{t} t")
        for t in tables
    ]


def at_once(dsn: str, *jobs: Callable[[DB], T]) -> list[T]:
    """Run each job in a thread with a connection of its own, all let go together; their answers, in order."""
    answers: list[T | BaseException] = [RuntimeError("not run")] * len(jobs)
    gate = threading.Barrier(len(jobs))

    def work(number: int, job: Callable[[DB], T]) -> None:
        try:
            with psycopg.connect(dsn, autocommit=True) as connection:
                gate.wait(PATIENCE)
                answers[number] = job(connection)
        except BaseException as error:  # noqa: BLE001 - raised again below, in the test's own thread
            gate.abort()
            answers[number] = error

    threads = [threading.Thread(target=work, args=pair) for pair in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures = [a for a in answers if isinstance(a, BaseException)]
    for failure in sorted(failures, key=lambda f: isinstance(f, threading.BrokenBarrierError)):
        raise failure
    return [a for a in answers if not isinstance(a, BaseException)]


def until_blocked(db: DB, pid: int) -> None:
    """Wait until the backend `pid` waits for a lock: then it is where the test wants it."""
    give_up_at = time.monotonic() + PATIENCE
    while not value(db, "select cardinality(pg_blocking_pids(%s)) > 0", pid):
        assert time.monotonic() < give_up_at, "it never waited for a lock"


def add_machine(
    db: DB, machine: str, rows: str, *, initial: str, subject: str = "step", closing: str | None = None
) -> None:
    """Make a machine from lines of `state event state`, for all actors; what a line leads to but leaves is over.

    A state is written with its phase: `here:open`, `there:held`, `end:over=succeeded`.
    """
    moves = [line.split() for line in rows.strip().splitlines()]
    named = {s for move in moves for s in (move[0], move[2])} | {initial}
    policy = "work.task" if subject == "step" else None
    db.execute(
        "insert into holdfast.machines (machine, subject, policy, closing, label) values (%s, %s, %s, %s, %s)",
        [machine, subject, policy, closing, subject],
    )
    for text in sorted(named):
        state, _, phase = text.partition(":")
        phase, _, outcome = phase.partition("=")
        db.execute(
            "insert into holdfast.machine_states values (%s, %s, %s, %s, %s)",
            [machine, state, phase, outcome or None, text == initial],
        )
    for before, event, after in moves:
        db.execute(
            "insert into holdfast.machine_moves values (%s, %s, %s, %s, '{worker,api,user,scheduler,system}')",
            [machine, before.partition(":")[0], event, after.partition(":")[0]],
        )


def insert_step(db: DB, machine: str, state: str, kind: str = "mail", **columns: Any) -> int:
    """Insert a due step of any machine directly, as the owner may."""
    given = {
        "machine": machine,
        "state": state,
        "kind": kind,
        "due_at": clock_of(db),
        "created_at": clock_of(db),
        **columns,
    }
    statement = sql.SQL("insert into holdfast.steps ({}) values ({}) returning id").format(
        sql.SQL(", ").join(map(sql.Identifier, given)), sql.SQL(", ").join(sql.Placeholder() * len(given))
    )
    row = db.execute(statement, list(given.values())).fetchone()
    assert row is not None
    step_id: int = row[0]
    return step_id


def _row(db: DB, query: str, *arguments: Any) -> dict[str, Any]:
    with db.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(sql.SQL(query), arguments).fetchone()
    assert row is not None
    return row


def repeated(job: Callable[[], Sequence[T]]) -> list[T]:
    """Call until it gives nothing more; all that it gave."""
    found: list[T] = []
    while batch := job():
        found += batch
    return found
