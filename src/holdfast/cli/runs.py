"""`holdfast runs`: lists and shows runs and tasks, and acts on them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from holdfast.cli import run_page as page
from holdfast.cli import watch as following
from holdfast.cli.bulk import act_on_each
from holdfast.cli.connection import opened
from holdfast.cli.options import (
    Id,
    Ids,
    LimitOption,
    QueueOption,
    Reason,
    RunIds,
    SinceOption,
    TenantOption,
    WideOption,
    output_options,
    parse_duration,
)
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.table import NEVER, SAME, Column, data_table
from holdfast.errors import Pruned
from holdfast.kernel import calls
from holdfast.kernel.query import clock, moment_ago
from holdfast.reads import run_list, run_page
from holdfast.reads.retry import retry_call
from holdfast.reads.run_detail import parse_id
from holdfast.reads.run_list import Asked, Page, Wanted

app = typer.Typer(help="Runs and single tasks: list, follow, pause, retry and cancel them.", no_args_is_help=True)

COLUMNS = (
    Column("id"),
    Column("what", SAME, rank=9),
    Column("name", NEVER, rank=2, least=10),
    Column("state", NEVER, rank=1),
    Column("standing", "over", rank=4),
    Column("queue", "default", rank=7, least=8),
    Column("tenant", "default", rank=8, least=8),
    Column("tries", (0, 1), rank=6),
    Column("done", rank=5),
    Column("created", NEVER, rank=4),
    Column("finished", rank=7),
    Column("error", rank=3, least=12),
)
StateOption = Annotated[
    list[str] | None,
    typer.Option("--state", help='A state, or a standing: due, held, later, "no handler". May be repeated.'),
]
NameOption = Annotated[str | None, typer.Option("--name", "--kind", help="Only runs or tasks of this name.")]
FailedOption = Annotated[bool, typer.Option("--failed", help="Only those that failed for good or have failed steps.")]
BeforeOption = Annotated[
    str | None, typer.Option("--before", help="Continue after this id, which the last page printed.")
]


@app.command("list", epilog="Example: holdfast runs list --failed --since 2h")
@output_options
def list_(
    *,
    state: StateOption = None,
    name: NameOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    failed: FailedOption = False,
    since: SinceOption = None,
    limit: LimitOption = 50,
    before: BeforeOption = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List runs and tasks, newest first."""
    with opened() as connection:
        wanted = Wanted(
            states=run_list.check_states(connection, state),
            name=name,
            queue=queue,
            tenant=tenant,
            is_failed=failed,
            since=None if since is None else moment_ago(connection, since),
        )
        listed = run_list.newest(connection, wanted, run_list.position_of(connection, before), limit=limit)
        now = clock(connection)
    if as_json:
        data_json({"runs": listed.rows, "next": None if listed.next is None else str(listed.next)})
    else:
        data_table(COLUMNS, [_cells(row) for row in listed.rows], styles=page.STANDINGS, now=now, wide=wide)
    _say_how_to_go_on(listed, wanted)


@app.command(epilog="Example: holdfast runs show 42")
@output_options
def show(
    id: Id,  # noqa: A002 - the word is the same in SQL
    *,
    story: Annotated[
        int, typer.Option("--story", min=0, max=100_000, help="How many of the latest entries of the history.")
    ] = 50,
    as_json: AsJson = False,
) -> None:
    """Show the state and history of a run or a step, and the commands that are possible now.

    Of what retention removed, the history is shown as long as the journal has it.
    """
    subject = parse_id(id)
    with opened() as connection:
        try:
            shown = run_page.read(connection, subject, story=story)
        except Pruned:
            left = run_page.read_pruned(connection, subject, story=story)
            page.show_pruned(left, as_json=as_json)
            return
    page.show(shown, as_json=as_json)


@app.command(epilog="Example: holdfast runs watch 42 --timeout 10m")
@output_options
def watch(
    id: Id,  # noqa: A002 - the word is the same in SQL
    *,
    timeout: Annotated[
        timedelta | None,
        typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="Stop following after 30s, 10m, …"),
    ] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print one JSON object per change.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object, at the end.")] = False,
) -> None:
    """Follow a run or a step until it ends: 0 succeeded, 1 failed or cancelled, 3 some steps failed, 8 timed out."""
    subject = parse_id(id)
    with opened() as connection:
        following.watch(connection, subject, timeout=timeout, form=following.form(jsonl=jsonl, as_json=as_json))


@app.command(epilog='Example: holdfast runs cancel 42 --reason "ordered twice"')
@output_options
def cancel(ids: Ids, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Cancel runs or steps; a worker that holds one is notified."""
    act_on_each(ids, lambda _, subject: calls.cancel(subject, reason), as_json=as_json)


@app.command(epilog='Example: holdfast runs retry 42 43 --reason "the shop is back"')
@output_options
def retry(ids: Ids, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Retry failed steps, or all failed steps of a run, with a fresh budget of tries."""
    act_on_each(ids, lambda db, subject: retry_call(db, parse_id(subject), reason), as_json=as_json)


@app.command(epilog='Example: holdfast runs pause 0198c0de-… --reason "the shop is down"')
@output_options
def pause(ids: RunIds, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Pause runs: workers begin no more of their steps, and running handlers finish."""
    act_on_each(ids, lambda _, subject: calls.pause_run(subject, reason), as_json=as_json)


@app.command(epilog="Example: holdfast runs resume 0198c0de-…")
@output_options
def resume(ids: RunIds, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Resume paused runs."""
    act_on_each(ids, lambda _, subject: calls.resume_run(subject, reason), as_json=as_json)


@app.command(epilog='Example: holdfast runs stop 0198c0de-… --reason "wrong prices"')
@output_options
def stop(ids: RunIds, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """End runs early; `holdfast runs retry` continues with the steps that were not tried."""
    act_on_each(ids, lambda _, subject: calls.stop_run(subject, reason), as_json=as_json)


def _cells(row: Asked) -> list[object]:
    done = (
        None
        if row.total is None
        else f"{row.succeeded}/{row.total}" + (f" ({row.failed} failed)" if row.failed else "")
    )
    shown: dict[str, object] = asdict(row) | {"done": done, "state": page.state_cell(row)}
    names = (
        "id",
        "what",
        "name",
        "state",
        "standing",
        "queue",
        "tenant",
        "attempt",
        "done",
        "created_at",
        "finished_at",
        "error",
    )
    return [shown[name] for name in names]


def _say_how_to_go_on(found: Page, wanted: Wanted) -> None:
    if not found.rows and found.next is None:
        say("nothing has been started yet" if wanted == Wanted() else "nothing matches these filters")
    if found.looked_until is not None:
        say(f"searched only the newest {run_list.LOOK_AT:,}, back to {found.looked_until:%Y-%m-%d %H:%M:%S}Z")
    if found.next is not None:
        say(f"next page: add --before {found.next}")
