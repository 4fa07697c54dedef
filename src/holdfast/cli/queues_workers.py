"""`holdfast queues` and `holdfast workers`: what stands in queues, who serves them, and pausing."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import Queue, Reason, output_options
from holdfast.cli.render import AsJson, data_json, data_table, say
from holdfast.kernel import calls, db
from holdfast.kernel.query import as_mapping, query
from holdfast.reads import queues_workers

app = typer.Typer(help="Queues: what stands in them, and pausing them.", no_args_is_help=True)

QUEUE_COLUMNS = ("queue", "due", "later", "parked", "oldest due", "workers", "paused", "by", "reason")
WORKER_COLUMNS = (
    "worker",
    "standing",
    "state",
    "queues",
    "kinds",
    "held",
    "oldest claim",
    "seen",
    "host",
    "pid",
    "version",
)
STANDINGS = {"alive": "green", "late": "yellow", "gone": "dim"}


@app.command("list", epilog="Example: holdfast queues list --json")
@output_options
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
    data_table(QUEUE_COLUMNS, rows)
    if not found:
        say("no queues yet: a queue is made on first use")


@app.command(epilog='Example: holdfast queues pause mail --reason "the server is away"')
@output_options
def pause(queue: Queue, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Stop claims from a queue; what is held goes on."""
    with opened() as connection:
        db.run(connection, calls.pause_queue(queue, reason))
    if as_json:
        data_json({"queue": queue, "paused": True})
    say(f"queue {queue} is paused; to let it go on: holdfast queues resume {shlex.quote(queue)}")


@app.command(epilog="Example: holdfast queues resume mail")
@output_options
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


@output_options
def workers(
    *,
    is_all: Annotated[bool, typer.Option("--all", help="Also those that are gone.")] = False,
    as_json: AsJson = False,
) -> None:
    """List workers: what they serve and hold, and whether they are alive, late or gone."""
    with opened() as connection:
        found = query(connection, queues_workers.workers(is_all=is_all))
    if as_json:
        data_json({"workers": [as_mapping(worker) for worker in found]})
        return
    rows = [
        (w.worker, w.standing, "asleep" if w.is_asleep else w.state, w.queues, "any" if w.kinds is None else w.kinds,
         w.held, w.oldest_claimed_at, w.seen_at, w.host, w.pid, w.version)
        for w in found
    ]  # fmt: skip
    data_table(WORKER_COLUMNS, rows, styles=STANDINGS)
    if not found:
        say("no workers; `holdfast workers --all` shows those that are gone too")
