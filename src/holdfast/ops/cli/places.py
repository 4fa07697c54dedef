"""`holdfast ops artifacts`, `projects`, `environments` and `monitor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Annotated, Any, NamedTuple

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import TenantOption, WideOption, parse_duration
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.table import NEVER, Column, data_table
from holdfast.errors import BadInput
from holdfast.kernel import db
from holdfast.kernel.query import as_mapping, clock
from holdfast.ops import calls, reads
from holdfast.ops.cli.parts import RunId

ENVIRONMENTS_EXAMPLE = "Example: holdfast ops environments shop production --branch 'release/*' --approval"


class Listing(NamedTuple):
    """A list as it is printed: its name in JSON, its columns, and what is said of an empty one."""

    name: str
    columns: tuple[Column, ...]
    empty: str


ARTIFACTS = Listing("artifacts", (
    Column("type"), Column("url", NEVER, least=20), Column("digest", least=12), Column("bytes", rank=6),
    Column("created", NEVER, rank=7), Column("id", NEVER, rank=8),
), "the run has no artifact")  # fmt: skip
PROJECTS = Listing("projects", (
    Column("project"), Column("repository", least=12), Column("environments", NEVER), Column("created", NEVER, rank=7),
    Column("by", rank=8), Column("tenant", "default", rank=9),
), "no project yet: the first run of a project registers it")  # fmt: skip
ENVIRONMENTS = Listing("environments", (
    Column("project"), Column("env", NEVER), Column("type"), Column("branch", least=8),
    Column("approval", default=False), Column("on_push", "queue"), Column("kind", "deploy"), Column("at_once"),
    Column("queue_ttl"), Column("id", NEVER, rank=7), Column("tenant", "default", rank=9),
), "no environment yet: the first run in an environment registers it")  # fmt: skip


def artifacts(run: RunId, *, wide: WideOption = False, as_json: AsJson = False) -> None:
    """List what a run produced."""
    with opened() as connection:
        artifacts = reads.artifacts_of(connection, reads.run_of(connection, run).run_id)
        now = clock(connection)
    rows = [(a.type, a.url, a.digest, a.size_bytes, a.created_at, a.artifact_id) for a in artifacts]
    _show(ARTIFACTS, artifacts, rows, now, wide=wide, as_json=as_json)


def projects(
    project: Annotated[str | None, typer.Argument(help="Only this project, or the one to define.")] = None,
    *,
    repository: Annotated[
        str | None, typer.Option("--repository", help="Its repository, owner/name; a webhook's pushes select it.")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant of the project to define.")] = "default",
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List the projects, or one of them; with --repository, define it first and list all."""
    if project is None and repository is not None:
        raise BadInput("--repository needs a project", where="--repository", next="name the project before it")
    with opened() as connection:
        if project is not None and repository is not None:
            db.run(connection, calls.define_project(project, repository, tenant))
        projects, now = reads.projects(connection), clock(connection)
    if repository is None:
        projects = [each for each in projects if project in (None, each.project_id)]
    rows = [(p.project_id, p.repository, p.environments, p.created_at, p.created_by, p.tenant) for p in projects]
    _show(PROJECTS, projects, rows, now, wide=wide, as_json=as_json)


def environments(
    project: Annotated[str | None, typer.Argument(help="Only environments of this project.")] = None,
    env: Annotated[str | None, typer.Argument(help="Only this environment, or the one to define.")] = None,
    *,
    type_: Annotated[str | None, typer.Option("--type", help="dev, staging or prod.")] = None,
    branch: Annotated[str | None, typer.Option("--branch", help="Pushes that queue a run: main, release/*, …")] = None,
    approval: Annotated[
        bool | None, typer.Option("--approval/--no-approval", help="Its runs wait for an approval.", show_default=False)
    ] = None,
    on_push: Annotated[
        str | None,
        typer.Option(
            "--on-push", help="What a push does to older runs: queue (the default), cancel_queued or cancel_all."
        ),
    ] = None,
    concurrency: Annotated[int | None, typer.Option("--concurrency", min=1, help="Runs at the same time.")] = None,
    queue_ttl: Annotated[
        timedelta | None,
        typer.Option("--queue-ttl", parser=parse_duration, metavar="DURATION", help="How long a run may wait."),
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help="The kind of run that a push queues; by default deploy.")
    ] = None,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant of the environment to define.")] = "default",
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List environments, or define one: pass its project, its name and all of its settings.

    Settings that are left out get their defaults. Without any setting the environment is only listed.
    """
    options = {"kind_of_place": type_, "branch": branch, "approval": approval, "on_push": on_push,
               "concurrency": concurrency, "queue_ttl": queue_ttl, "kind": kind}  # fmt: skip
    settings: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if settings and (project is None or env is None):
        raise BadInput("settings need a project and an environment", where="ENV", next="name both before the settings")
    with opened() as connection:
        if project is not None and env is not None and settings:
            db.run(connection, calls.define_environment(project, env, **settings, tenant=tenant))
        environments, now = reads.environments(connection, project), clock(connection)
    environments = [each for each in environments if env in (None, each.name)]
    rows = [
        (e.project_id, e.name, e.type, e.branch_pattern, e.needs_approval, e.on_push, e.kind, e.concurrency,
         e.queue_ttl, e.env_id, e.tenant)
        for e in environments
    ]  # fmt: skip
    _show(ENVIRONMENTS, environments, rows, now, wide=wide, as_json=as_json)


def monitor(
    *,
    only_read: Annotated[bool, typer.Option("--metrics", help="Only print the metrics; cancel nothing.")] = False,
    tenant: TenantOption = None,
    as_json: AsJson = False,
) -> None:
    """Cancel stale runs, and those that waited too long for a worker or an approval; or print the metrics of runs.

    A schedule does this every five minutes. With --json it prints {"cancelled": n}.
    """
    with opened() as connection:
        if only_read:
            metrics = reads.metrics(connection)
        else:
            swept = db.run(connection, calls.sweep_runs(tenant))
    if only_read:
        _show_metrics(asdict(metrics), as_json=as_json)
        return
    for each in swept:
        say(f"Cancelled stale run: {each.run_id} ({each.reason})")
    if as_json:
        data_json({"cancelled": len(swept)})
    else:
        data_table(("cancelled",), [(len(swept),)])


def _show(
    listing: Listing, items: Sequence[Any], rows: Sequence[tuple[Any, ...]], now: datetime, *, wide: bool, as_json: bool
) -> None:
    if as_json:
        data_json({listing.name: [as_mapping(each) for each in items]})
        return
    data_table(listing.columns, rows, now=now, wide=wide)
    if not items:
        say(listing.empty)


def _show_metrics(metrics: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        data_json(metrics)
        return
    success = metrics["success"]
    rows: list[tuple[object, ...]] = [("queued runs", metrics["queued_count"])]
    rows += [(f"active runs of {worker['claimed_by']}", worker["active_runs"]) for worker in metrics["workers"]]
    rows += [("succeeded in 24 h", success["success_count"]), ("failed in 24 h", success["failed_count"])]
    rows += [("success rate in %", success["success_rate"])]
    rows += [(f"seconds until {each['status']}", each["avg_duration_seconds"]) for each in metrics["durations"]]
    data_table(("what", "value"), rows)
