"""`holdfast ops`: runs of projects and environments; queueing, listing and showing them."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import LimitOption, SinceOption, TenantOption, WideOption, output_options, parse_duration
from holdfast.cli.render import AsJson, data, data_json, data_pairs, folded, heading, plain, say
from holdfast.cli.table import NEVER, SAME, Column, data_table
from holdfast.errors import BadInput
from holdfast.kernel import db
from holdfast.kernel.call import check_priority
from holdfast.kernel.query import JsonText, as_mapping, clock, moment_ago
from holdfast.ops import calls, reads
from holdfast.ops.cli import logs, manual, places, webhook
from holdfast.ops.cli import work as working
from holdfast.ops.cli.parts import Actor, RunId, as_document, event_document, event_lines, runs, status_cell
from holdfast.ops.folds import Folds
from holdfast.ops.rows import Run, RunsWanted

app = typer.Typer(help="Runs that people and programs queue, watch and cancel.", no_args_is_help=True)
app.command(epilog=logs.EXAMPLE)(output_options(logs.logs))
app.command(epilog="Example: holdfast ops wait RUN --timeout 20m")(output_options(logs.wait))
app.command(epilog='Example: holdfast ops cancel RUN --reason "wrong branch"')(output_options(manual.cancel))
app.command(epilog='Example: holdfast ops retry RUN --reason "the registry is back"')(output_options(manual.retry))
app.command(epilog='Example: holdfast ops rollback RUN --reason "errors doubled"')(output_options(manual.rollback))
app.command(epilog='Example: holdfast ops approve RUN --reason "reviewed"')(output_options(manual.approve))
app.command(epilog='Example: holdfast ops reject RUN --reason "not today"')(output_options(manual.reject))
app.command(epilog="Example: holdfast ops artifacts RUN --json")(output_options(places.artifacts))
app.command(epilog="Example: holdfast ops projects shop --repository acme/shop")(output_options(places.projects))
app.command(epilog=places.ENVIRONMENTS_EXAMPLE)(output_options(places.environments))
app.command(epilog="Example: holdfast ops monitor --json")(output_options(places.monitor))
app.command(epilog=working.EXAMPLE)(output_options(working.work))
app.command()(output_options(webhook.webhook))

SHOWN_EVENTS = 10
COLUMNS = (
    Column("id"),
    Column("status", NEVER, rank=1),
    Column("kind", SAME, rank=4, least=8),
    Column("project", SAME, rank=3, least=8),
    Column("env", NEVER, rank=2, least=6),
    Column("sha", rank=5, least=8),
    Column("ref", rank=6, least=8),
    Column("queued", NEVER, rank=4),
    Column("finished", rank=5),
    Column("by", rank=7, least=8),
    Column("worker", rank=8, least=8),
    Column("approval", rank=3),
    Column("tenant", "default", rank=9),
)


@app.command(epilog='Example: holdfast ops queue shop --env staging --sha "$(git rev-parse HEAD)" --ref main --wait')
@output_options
def queue(
    project: Annotated[str, typer.Argument(help="The project.")],
    *,
    env: Annotated[str, typer.Option("--env", help="Its environment, such as staging.")],
    sha: Annotated[str | None, typer.Option("--sha", help="The commit to build or deploy.")] = None,
    ref: Annotated[str | None, typer.Option("--ref", help="The branch or tag.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="What to run; by default deploy.")] = None,
    key: Annotated[str | None, typer.Option("--key", help="Reusing the key returns the existing run.")] = None,
    metadata: Annotated[str | None, typer.Option("--metadata", help="More about the run, as a JSON object.")] = None,
    priority: Annotated[int, typer.Option("--priority", help="0 to 9; higher runs first.")] = 0,
    delay: Annotated[
        timedelta | None,
        typer.Option("--delay", parser=parse_duration, metavar="DURATION", help="Run it no earlier than in 10m, …"),
    ] = None,
    ttl: Annotated[
        timedelta | None,
        typer.Option(
            "--ttl", parser=parse_duration, metavar="DURATION", help="Cancel it if it waits longer than 1h, …"
        ),
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")] = "default",
    actor: Actor = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait for its end, as `ops wait` does.")] = False,
    as_json: AsJson = False,
) -> None:
    """Queue a run of a project's environment, and print its id."""
    check_priority(priority)
    details = _object(metadata)
    with opened() as connection:
        due_at = None if delay is None else clock(connection) + delay
        call = calls.queue_run(project, env, git_sha=sha, git_ref=ref, metadata=details, key=key, kind=kind,
                               priority=priority, due_at=due_at, ttl=ttl, actor=actor, tenant=tenant)  # fmt: skip
        (run,) = db.run(connection, call)
    if wait:
        say(f"queued {run.run_id}")
        logs.wait(run.run_id, as_json=as_json)
        return
    if as_json:
        data_json({"run_id": run.run_id, "status": run.status, "queued_at": run.queued_at})
    else:
        data(run.run_id)
    say(f"to follow it: holdfast ops logs -f {run.run_id}")


@app.command("list", epilog="Example: holdfast ops list --status failed --project shop --since 1d")
@output_options
def list_(
    *,
    status: Annotated[
        list[str] | None, typer.Option("--status", help=f"{', '.join(reads.STATUSES)}. May be repeated.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="Only runs of this project.")] = None,
    env: Annotated[str | None, typer.Option("--env", help="Only runs of this environment.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Only runs of this kind.")] = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    limit: LimitOption = 50,
    before: Annotated[
        str | None, typer.Option("--before", help="List runs older than this one.", autocompletion=runs)
    ] = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first."""
    statuses = reads.check_statuses(status)
    with opened() as connection:
        moment = None if since is None else moment_ago(connection, since)
        wanted = RunsWanted(statuses, project, env, kind, tenant, moment)
        below = None if before is None else reads.run_of(connection, before)
        listed, now = reads.newest(connection, wanted, below, limit=limit), clock(connection)
    more = listed[-1].run_id if len(listed) == limit else None
    if as_json:
        data_json({"runs": [as_document(run) for run in listed], "next": more})
        return
    data_table(COLUMNS, [_cells(run) for run in listed], now=now, wide=wide)
    if not listed:
        say("no such run; to queue one: holdfast ops queue PROJECT --env ENV")
    elif more is not None:
        say(f"there may be more: --before {more}")


@app.command(epilog="Example: holdfast ops show RUN")
@output_options
def show(run: RunId, *, as_json: AsJson = False) -> None:
    """Show a run: its input, its status, its artifacts and its last events."""
    with opened() as connection:
        row = reads.run_of(connection, run)
        approval = reads.approval_of(connection, row.run_id)
        artifacts = reads.artifacts_of(connection, row.run_id)
        events = reads.last_events(connection, row.step_id, limit=SHOWN_EVENTS)
    if as_json:
        data_json({
            **as_document(row),
            "approval": None if approval is None else as_mapping(approval),
            "artifacts": [as_mapping(artifact) for artifact in artifacts],
            "events": [event_document(event) for event in events],
        })  # fmt: skip
        return
    fields = {name: value for name, value in as_document(row).items() if not isinstance(value, JsonText)}
    data_pairs(fields)
    _show_metadata(row)
    if artifacts:
        heading("artifacts")
        for artifact in artifacts:
            data(plain(f"{artifact.type}  {artifact.url}  {artifact.digest or ''}".rstrip()))
    heading("last events")
    folds = Folds()
    for event in events:
        for line in event_lines(event, folds, with_time=True):
            data(line)
    say(_next_action(row))


def _show_metadata(run: Run) -> None:
    metadata: dict[str, Any] = json.loads(run.metadata)
    if metadata:
        heading("metadata")
    for name, value in metadata.items():
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        first, *rest = folded(text, lines=20)
        data(f"{plain(name)}: {first}" if not rest else f"{plain(name)}:")
        for line in [first, *rest] if rest else []:
            data(f"  {line}")


def _next_action(run: Run) -> str:
    if run.approval == "pending":
        return f"it waits for an approval: holdfast ops approve {run.run_id} --reason …"
    if not run.is_over:
        return f"to follow it: holdfast ops logs -f {run.run_id}; to stop it: holdfast ops cancel {run.run_id}"
    if run.status == "success":
        return f"to go back to the sha before it: holdfast ops rollback {run.run_id}"
    return (
        f"to see all of its events: holdfast ops logs {run.run_id}; to queue it again: holdfast ops retry {run.run_id}"
    )


def _cells(run: Run) -> tuple[object, ...]:
    return (
        run.run_id, status_cell(run.status), run.kind, run.project_id, run.env, (run.git_sha or "")[:12], run.git_ref,
        run.queued_at, run.finished_at, run.queued_by, run.claimed_by, run.approval, run.tenant,
    )  # fmt: skip


def _object(given: str | None) -> dict[str, Any]:
    if given is None:
        return {}
    try:
        value = json.loads(given)
    except (ValueError, RecursionError) as error:
        raise BadInput(
            f"--metadata is not JSON: {error}", where="--metadata", next="""use '{"author": "ann"}'"""
        ) from None
    if not isinstance(value, dict):
        raise BadInput(f"--metadata must be an object, got {given[:80]}", where="--metadata", next="use {…}")
    return value
