"""`holdfast flow`: the flows that are defined, their runs, and starting one."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import LimitOption, SinceOption, TenantOption, WideOption, output_options, parse_duration
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.run_page import state_cell
from holdfast.cli.table import NEVER, SAME, Column, data_table
from holdfast.flow import run_list, task_page
from holdfast.flow.cli import graph, manual, page
from holdfast.flow.cli import start as starting
from holdfast.flow.cli.completion import flows, runs
from holdfast.flow.graph_view.drawing import progress
from holdfast.flow.run_list import STATES, ListedTask, TaskPage, TasksWanted
from holdfast.kernel.query import clock, moment_ago
from holdfast.reads.run_detail import parse_id
from holdfast.reads.run_list import LOOK_AT

app = typer.Typer(help="Flows (steps that wait for steps) and their runs.", no_args_is_help=True)
app.command(epilog=graph.EXAMPLES)(output_options(graph.graph))
app.command(epilog='Example: holdfast flow retry RUN --reason "the shop is back"')(output_options(manual.retry))
app.command(epilog=manual.RESOLVE_EXAMPLE)(output_options(manual.resolve))
app.command(epilog='Example: holdfast flow cancel RUN --reason "ordered twice"')(output_options(manual.cancel))

Named = Annotated[str, typer.Argument(help="The flow's name.", autocompletion=flows)]
NameOption = Annotated[str | None, typer.Option("--name", help="Only of this flow.", autocompletion=flows)]
NamespaceOption = Annotated[str | None, typer.Option("--namespace", help="Only of this namespace.")]
RunArgument = Annotated[
    str, typer.Argument(metavar="RUN", help="A run's UUID, or the number of one of its steps.", autocompletion=runs)
]
FLOW_COLUMNS = (
    Column("name"),
    Column("version", NEVER, rank=3),
    Column("namespace", "default", rank=8, least=8),
    Column("steps", NEVER, rank=5),
    Column("runs", NEVER, rank=2),
    Column("open", 0, rank=2),
    Column("failed", 0, rank=1),
    Column("defined", NEVER, rank=6),
    Column("description", rank=7, least=12),
    Column("tenant", "*", rank=9),
)
RUN_COLUMNS = (
    Column("id"),
    Column("state", NEVER, rank=1),
    Column("done", NEVER, rank=3),
    Column("name", NEVER, rank=2, least=10),
    Column("version", SAME, rank=8),
    Column("namespace", "default", rank=7, least=8),
    Column("tenant", "default", rank=8, least=8),
    Column("created", NEVER, rank=4),
    Column("finished", rank=5),
    Column("by", rank=6, least=8),
    Column("reason", rank=6, least=10),
)


@app.command("list", epilog="Example: holdfast flow list --namespace shop")
@output_options
def list_(
    *,
    name: NameOption = None,
    namespace: NamespaceOption = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List the flows that workers have defined, with the open and failed runs among the newest."""
    with opened() as connection:
        flows, now = run_list.definitions(connection, name=name, namespace=namespace), clock(connection)
    if as_json:
        data_json({"flows": [asdict(each) for each in flows], "counted": run_list.COUNTED})
        return
    rows = [
        (d.name, d.version, d.namespace, d.steps, d.tasks, d.open, d.failed, d.defined_at, d.description, d.tenant)
        for d in flows
    ]
    data_table(FLOW_COLUMNS, rows, now=now, wide=wide)
    if not flows:
        say("no flow is defined yet: a worker defines its flows when it starts (holdfast worker --app …)")
    elif sum(d.tasks for d in flows) >= run_list.COUNTED:
        say(f"runs are counted among the newest {run_list.COUNTED:,} runs")


@app.command("tasks", hidden=True)
@app.command("runs", epilog="Example: holdfast flow runs --name order --failed --since 2h")
@output_options
def runs_(
    *,
    state: Annotated[list[str] | None, typer.Option("--state", help=f"{', '.join(STATES)}. May be repeated.")] = None,
    name: NameOption = None,
    namespace: NamespaceOption = None,
    tenant: TenantOption = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed or have failed steps.")] = False,
    since: SinceOption = None,
    limit: LimitOption = 50,
    before: Annotated[
        str | None, typer.Option("--before", help="Continue after this id, which the last page printed.")
    ] = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List the runs of flows, newest first."""
    states, below = run_list.check_states(state), run_list.begins_below(before)
    with opened() as connection:
        wanted = TasksWanted(states, name, namespace, tenant, _moment(connection, since), failed)
        runs, now = run_list.newest_tasks(connection, wanted, below, limit=limit), clock(connection)
    if as_json:
        data_json({"tasks": [asdict(row) for row in runs.rows], "next": None if runs.next is None else str(runs.next)})
    else:
        data_table(RUN_COLUMNS, [_cells(row) for row in runs.rows], now=now, wide=wide)
    _say_how_to_go_on(runs, wanted)


@app.command(epilog="Example: holdfast flow start order order_id=123 express=true --wait")
@output_options
def start(
    name: Named,
    fields: Annotated[
        list[str] | None, typer.Argument(help="Fields of the context: key=value, the value as JSON or as text.")
    ] = None,
    *,
    context: Annotated[
        str | None, typer.Option("--context", help="The whole context as JSON; - reads it from stdin.")
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", help="The flow's namespace.")] = "default",
    version: Annotated[
        str | None, typer.Option("--version", help="Its version; by default the one defined last.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", help="Reusing a key with the same context returns the existing run.")
    ] = None,
    skip: Annotated[list[str] | None, typer.Option("--skip", help="A skippable step to skip. May be repeated.")] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="For this tenant.")] = "default",
    tag: Annotated[list[str] | None, typer.Option("--tag", help="A tag. May be repeated.")] = None,
    initiator: Annotated[str | None, typer.Option("--initiator", help="Who requested it.")] = None,
    reason: Annotated[str | None, typer.Option("--reason", help="Why; stored with the run.")] = None,
    app_name: Annotated[
        str | None, typer.Option("--app", help="Check the context with the types of this app: module:name.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait until it ends: exit code 0 complete, 1 failed or cancelled.")
    ] = False,
    timeout: Annotated[
        timedelta | None,
        typer.Option(
            "--timeout", parser=parse_duration, metavar="DURATION", help="Stop waiting after 30s, 10m, …: exit code 8."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Start a run of the flow's latest registered version, and print its id."""
    order = starting.Order(
        name, starting.read_context(fields or [], context), namespace, version, key, tenant, tuple(skip or ()),
        starting.about(tag, initiator, reason),
    )  # fmt: skip
    with opened() as connection:
        task_id = starting.by_app(app_name, order) if app_name else starting.by_definition(connection, order)
        starting.report(connection, task_id, wait=wait or timeout is not None, timeout=timeout, as_json=as_json)


@app.command(epilog="Example: holdfast flow show RUN --step charge")
@output_options
def show(
    run: RunArgument,
    *,
    step: Annotated[
        str | None, typer.Option("--step", help="One step, by its name: input, result, error and history.")
    ] = None,
    history: Annotated[bool, typer.Option("--history", help="The history of the run and its steps.")] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=10_000, help="How many of the latest entries of the history.")
    ] = 200,
    as_json: AsJson = False,
) -> None:
    """Show the state of a run, its failures, the possible actions, and its steps in the order of the plan."""
    with opened() as connection:
        if step is not None:
            page.show_step(task_page.read_step(connection, parse_id(run), step), as_json=as_json)
        else:
            shown = task_page.read(connection, parse_id(run), history=limit if history else 0)
            page.show_page(shown, as_json=as_json)


def _moment(connection: DB, since: timedelta | None) -> datetime | None:
    return None if since is None else moment_ago(connection, since)


def _cells(run: ListedTask) -> tuple[object, ...]:
    done = progress(run.succeeded, run.total, run.failed)
    return (
        run.id, state_cell(run), done, run.name, run.version, run.namespace, run.tenant, run.created_at,
        run.finished_at, run.initiator, run.reason,
    )  # fmt: skip


def _say_how_to_go_on(found: TaskPage, wanted: TasksWanted) -> None:
    if not found.rows and found.next is None:
        everything = wanted == TasksWanted()
        say("no run has been started yet: holdfast flow start NAME" if everything else "no run matches these filters")
    if found.looked_until is not None:
        say(f"searched only the newest {LOOK_AT:,} runs, back to {found.looked_until:%Y-%m-%d %H:%M:%S}Z")
    if found.next is not None:
        say(f"next page: add --before {found.next}")
