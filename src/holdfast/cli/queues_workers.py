"""`holdfast queues` and `holdfast workers`: lists of queues and workers, and pausing queues."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import Queue, Reason, WideOption, output_options
from holdfast.cli.render import AsJson, Styled, data_json, say
from holdfast.cli.table import NEVER, Column, data_table
from holdfast.kernel import calls, db, limit_calls
from holdfast.kernel.query import as_mapping, clock, query
from holdfast.reads import queues_workers
from holdfast.reads.queues_workers import WorkerDetail

app = typer.Typer(help="Queues: list, pause and resume them.", no_args_is_help=True)

QUEUE_COLUMNS = (
    Column("queue"),
    Column("due", NEVER, rank=1),
    Column("later", "0", rank=4),
    Column("parked", "0", rank=3),
    Column("oldest due", rank=5),
    Column("workers", NEVER, rank=2),
    Column("paused", rank=2),
    Column("by", rank=7, least=8),
    Column("reason", rank=6, least=12),
)
WORKER_COLUMNS = (
    Column("worker"),
    Column("state", NEVER, rank=1),
    Column("last seen", NEVER, rank=1),
    Column("queues", NEVER, rank=2, least=10),
    Column("held", 0, rank=3),
    Column("oldest claim", rank=4),
    Column("kinds", is_extra=True),
    Column("host", is_extra=True),
    Column("pid", is_extra=True),
    Column("version", is_extra=True),
)
STANDING_STYLES = {"alive": "", "late": "yellow", "gone": "dim"}


@app.command("list", epilog="Example: holdfast queues list --json")
@output_options
def list_(*, wide: WideOption = False, as_json: AsJson = False) -> None:
    """List queues; a count stops at 10,000."""
    with opened() as connection:
        queues, now = query(connection, queues_workers.queues()), clock(connection)
    if as_json:
        data_json({"queues": [asdict(q) for q in queues], "counts_stop_at": queues_workers.CAP})
        return
    rows = [
        (q.queue, capped(q.due), capped(q.later), capped(q.parked), q.oldest_due_at, q.live_workers, q.paused_at,
         q.paused_by, q.pause_reason)
        for q in queues
    ]  # fmt: skip
    data_table(QUEUE_COLUMNS, rows, now=now, wide=wide)
    if not queues:
        say("no queues yet: a queue is created on first use")


@app.command(epilog='Example: holdfast queues pause mail --reason "the server is away"')
@output_options
def pause(queue: Queue, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Stop claims from a queue; steps that are already claimed continue."""
    with opened() as connection:
        db.run(connection, calls.pause_queue(queue, reason))
    if as_json:
        data_json({"queue": queue, "paused": True})
    say(f"queue {queue} is paused; to resume it: holdfast queues resume {shlex.quote(queue)}")


@app.command(epilog="Example: holdfast queues resume mail")
@output_options
def resume(queue: Queue, *, as_json: AsJson = False) -> None:
    """Resume claims from a paused queue."""
    with opened() as connection:
        db.run(connection, calls.resume_queue(queue))
    if as_json:
        data_json({"queue": queue, "paused": False})
    say(f"queue {queue} is resumed")


@app.command(epilog="Example: holdfast queues limit mail --concurrency 5")
@output_options
def limit(
    queue: Queue,
    *,
    concurrency: Annotated[int, typer.Option("--concurrency", help="Steps of the queue held at once.")],
    as_json: AsJson = False,
) -> None:
    """Limit how many steps of a queue are held at once, by all workers together."""
    with opened() as connection:
        db.run(connection, limit_calls.define_limit(f"queue:{queue}", concurrency=concurrency))
    if as_json:
        data_json({"limit": f"queue:{queue}", "concurrency": concurrency})
    say(
        f"queue {queue} is limited to {concurrency}; to lift it: holdfast limits remove {shlex.quote(f'queue:{queue}')}"
    )


def capped(count: int) -> str:
    """Format a count that stops at the cap."""
    return f"{queues_workers.CAP:,}+" if count > queues_workers.CAP else f"{count:,}"


@output_options
def workers(
    *,
    is_all: Annotated[bool, typer.Option("--all", help="Also workers that are gone.")] = False,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List workers: what each serves and holds, and when it was last seen."""
    with opened() as connection:
        workers, now = query(connection, queues_workers.workers(is_all=is_all)), clock(connection)
    if as_json:
        data_json({"workers": [as_mapping(worker) for worker in workers]})
        return
    rows = [
        (w.worker, _state(w), w.seen_at, w.queues, w.held, w.oldest_claimed_at,
         "any" if w.kinds is None else w.kinds, w.host, w.pid, w.version)
        for w in workers
    ]  # fmt: skip
    data_table(WORKER_COLUMNS, rows, now=now, wide=wide)
    if not workers:
        say("no live workers; `holdfast workers --all` also shows those that are gone")


def _state(worker: WorkerDetail) -> Styled:
    """Return its last reported state, or late or gone if it was not seen for long: it may have been killed."""
    state = "asleep" if worker.is_asleep else worker.state or ""
    text = state if worker.standing == "alive" else worker.standing
    return Styled(text, STANDING_STYLES.get(worker.standing, ""))
