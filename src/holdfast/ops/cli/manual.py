"""`holdfast ops cancel`, `retry`, `rollback`, `approve` and `reject`: manual actions, journaled with who and why."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import Reason
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.table import data_table
from holdfast.kernel import db
from holdfast.kernel.call import Call
from holdfast.ops import calls, reads
from holdfast.ops.calls import QueuedRun
from holdfast.ops.cli.parts import Actor, RunId, RunIds

Why = Annotated[str, typer.Option("--reason", help="Why; stored with the decision.")]


def cancel(run: RunIds, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """Cancel runs, queued or running; the worker ends their programs."""
    rows = []
    with opened() as connection:
        for each in run:
            row = reads.run_of(connection, each)
            db.run(connection, calls.cancel_run(row.run_id, reason, actor))
            rows.append((row.run_id, reads.run_of(connection, row.run_id).status))
    if as_json:
        data_json([{"run_id": run_id, "status": status} for run_id, status in rows])
    else:
        data_table(("id", "status"), rows)


def retry(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """Queue a new run with the input of a finished one."""
    _queue_again(run, "retry_of", lambda run_id: calls.retry_run(run_id, reason, actor), as_json=as_json)


def rollback(run: RunId, *, reason: Reason = None, actor: Actor = None, as_json: AsJson = False) -> None:
    """Queue a run with the last sha that succeeded in the same environment before a run."""
    _queue_again(run, "rollback_of", lambda run_id: calls.rollback_run(run_id, reason, actor), as_json=as_json)


def approve(run: RunId, *, reason: Why, actor: Actor = None, as_json: AsJson = False) -> None:
    """Approve a run that waits for it. The person who queued it cannot."""
    _decide(run, "approved", reason, actor, as_json=as_json)


def reject(run: RunId, *, reason: Why, actor: Actor = None, as_json: AsJson = False) -> None:
    """Reject a run that waits for an approval, which cancels it."""
    _decide(run, "rejected", reason, actor, as_json=as_json)


def _queue_again(run: str, link: str, action: object, *, as_json: bool) -> None:
    assert callable(action)  # noqa: S101 - for the type checker
    with opened() as connection:
        row = reads.run_of(connection, run)
        call: Call[QueuedRun] = action(row.run_id)
        (new,) = db.run(connection, call)
    if as_json:
        data_json({"run_id": new.run_id, "status": new.status, "queued_at": new.queued_at, link: row.run_id})
    else:
        data_table(("id", "status"), [(new.run_id, new.status)])
    say(f"to follow it: holdfast ops logs -f {new.run_id}")


def _decide(run: str, decision: str, reason: str, actor: str | None, *, as_json: bool) -> None:
    with opened() as connection:
        row = reads.run_of(connection, run)
        db.run(connection, calls.decide_approval(row.run_id, decision, reason, actor))
        status = reads.run_of(connection, row.run_id).status
    if as_json:
        data_json({"run_id": row.run_id, "decision": decision, "status": status})
    else:
        data_table(("id", "decision", "status"), [(row.run_id, decision, status)])
