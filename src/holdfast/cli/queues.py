"""`holdfast queues`: what stands in them, and pausing and resuming."""

from __future__ import annotations

import shlex
from dataclasses import asdict

import typer

from holdfast.cli.common import Queue, Reason, common, opened
from holdfast.cli.render import AsJson, data_json, data_table, say
from holdfast.kernel import calls, db
from holdfast.kernel.query import query
from holdfast.reads import queues_workers

app = typer.Typer(help="Queues: what stands in them, and pausing them.", no_args_is_help=True)

COLUMNS = ("queue", "due", "later", "parked", "oldest due", "workers", "paused", "by", "reason")


@app.command("list", epilog="Example: holdfast queues list --json")
@common
def list_(*, as_json: AsJson = False) -> None:
    """List queues; a count stops at 10,000."""
    with opened() as connection:
        found = query(connection, queues_workers.queues())
    if as_json:
        data_json({"queues": [asdict(q) for q in found], "counts_stop_at": queues_workers.CAP})
        return
    rows = [
        (q.queue, capped(q.due), capped(q.later), capped(q.parked), q.oldest_due_at, q.live_workers, q.paused_at,
         q.paused_by, q.pause_reason)
        for q in found
    ]  # fmt: skip
    data_table(COLUMNS, rows)
    if not found:
        say("no queues yet: a queue is made on first use")


@app.command(epilog='Example: holdfast queues pause mail --reason "the server is away"')
@common
def pause(queue: Queue, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Stop claims from a queue; what is held goes on."""
    with opened() as connection:
        db.run(connection, calls.pause_queue(queue, reason))
    if as_json:
        data_json({"queue": queue, "paused": True})
    say(f"queue {queue} is paused; to let it go on: holdfast queues resume {shlex.quote(queue)}")


@app.command(epilog="Example: holdfast queues resume mail")
@common
def resume(queue: Queue, *, as_json: AsJson = False) -> None:
    """Let claims from a paused queue go on."""
    with opened() as connection:
        db.run(connection, calls.resume_queue(queue))
    if as_json:
        data_json({"queue": queue, "paused": False})
    say(f"queue {queue} goes on")


def capped(count: int) -> str:
    """Write a count that stops at the cap."""
    return f"{queues_workers.CAP:,}+" if count > queues_workers.CAP else f"{count:,}"
