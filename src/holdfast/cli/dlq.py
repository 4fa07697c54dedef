"""`holdfast dlq`: steps that failed for good, their errors, and how to retry or resolve them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta
from typing import Annotated

import typer

from holdfast.cli.bulk import act_on_each, deal_with_all
from holdfast.cli.connection import DB, opened
from holdfast.cli.options import LimitOption, QueueOption, Reason, SinceOption, TenantOption, WideOption, output_options
from holdfast.cli.options import ids as complete_ids
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.run_page import state_cell
from holdfast.cli.table import NEVER, SAME, Column, data_table
from holdfast.errors import BadInput
from holdfast.kernel import calls
from holdfast.kernel.query import as_mapping, clock, moment_ago
from holdfast.reads import dead_letter
from holdfast.reads.dead_letter import Scope, Verb
from holdfast.reads.retry import retry_call
from holdfast.reads.run_detail import parse_id

app = typer.Typer(help="The dead letter queue: steps that failed for good.", no_args_is_help=True)

REPORT_COLUMNS = (
    Column("count"),
    Column("kind", NEVER, rank=1, least=8),
    Column("error", rank=2, least=10),
    Column("message", rank=3, least=16, folds=True),
    Column("first", rank=8),
    Column("last", NEVER, rank=6),
    Column("next step", NEVER, rank=4),
)
LIST_COLUMNS = (
    Column("id"),
    Column("kind", NEVER, rank=1, least=8),
    Column("queue", "default", rank=7, least=8),
    Column("tenant", "default", rank=8, least=8),
    Column("state", SAME, rank=9),
    Column("tries", rank=6),
    Column("died", NEVER, rank=4),
    Column("error", rank=3, least=10),
    Column("message", rank=5, least=16),
)
KindOption = Annotated[str | None, typer.Option("--kind", help="Only steps of this kind.")]
SomeIds = Annotated[list[str] | None, typer.Argument(help="Steps' numbers.", autocompletion=complete_ids)]
AllOption = Annotated[bool, typer.Option("--all", help="All dead steps.")]
YesOption = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


@app.command(epilog="Example: holdfast dlq report --since 1d")
@output_options
def report(
    *,
    kind: KindOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """Group dead steps by kind and error: how many, since when, and an example of each."""
    with opened() as connection:
        faults = dead_letter.report(connection, _scope(connection, kind, queue, tenant, since))
        now = clock(connection)
    groups = faults.groups
    if as_json:
        data_json({"groups": [asdict(g) | {"next": f"holdfast runs show {g.sample_id}"} for g in groups]})
    else:
        rows = [
            (g.count, g.kind, g.error_type, g.fingerprint, g.first_at, g.last_at, f"holdfast runs show {g.sample_id}")
            for g in groups
        ]
        data_table(REPORT_COLUMNS, rows, now=now, wide=wide)
    if faults.is_partial:
        say(f"these are the newest {dead_letter.LOOK_AT:,}; there may be more")
    say("then: holdfast dlq retry --kind KIND, or holdfast dlq resolve --kind KIND" if groups else "no dead steps")


@app.command("list", epilog="Example: holdfast dlq list --kind mail --since 2h")
@output_options
def list_(
    *,
    kind: KindOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    limit: LimitOption = 50,
    before: Annotated[
        str | None, typer.Option("--before", help="Continue after this id, which the last page printed.")
    ] = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List dead steps, newest first."""
    with opened() as connection:
        scope = _scope(connection, kind, queue, tenant, since)
        steps = dead_letter.page(connection, scope, limit=limit, below=before)
        now = clock(connection)
    rows = steps.rows
    if as_json:
        data_json({"steps": [as_mapping(row) for row in rows], "next": steps.next})
    else:
        shown = [
            (r.id, r.kind, r.queue, r.tenant, state_cell(r), r.attempt, r.finished_at, r.error_type, r.message)
            for r in rows
        ]
        data_table(LIST_COLUMNS, shown, now=now, wide=wide)
    if steps.next is not None:
        say(f"next page: add --before {steps.next}")
    elif not rows:
        say("no dead steps")


@app.command(epilog="Example: holdfast dlq retry --kind mail --reason 'the server is back'")
@output_options
def retry(
    ids: SomeIds = None,
    *,
    kind: KindOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    everything: AllOption = False,
    reason: Reason = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Retry dead steps, by their ids or all that match a filter."""
    if ids:
        _refuse_filter(kind, queue, tenant, since, everything)
        act_on_each(ids, lambda db, subject: retry_call(db, parse_id(subject), reason), as_json=as_json)
        return
    _by_filter("retry", (kind, queue, tenant, since), everything=everything, reason=reason, yes=yes, as_json=as_json)


@app.command(epilog="Example: holdfast dlq resolve 42 --reason 'sent by hand'")
@output_options
def resolve(
    ids: SomeIds = None,
    *,
    kind: KindOption = None,
    queue: QueueOption = None,
    tenant: TenantOption = None,
    since: SinceOption = None,
    everything: AllOption = False,
    reason: Reason = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Mark dead steps as resolved by hand; the steps that wait for them continue."""
    if ids:
        _refuse_filter(kind, queue, tenant, since, everything)
        act_on_each(ids, lambda _, subject: calls.resolve(subject, reason), as_json=as_json)
        return
    _by_filter("resolve", (kind, queue, tenant, since), everything=everything, reason=reason, yes=yes, as_json=as_json)


Filter = tuple[str | None, str | None, str | None, timedelta | None]


def _by_filter(verb: Verb, filters: Filter, *, everything: bool, reason: str | None, yes: bool, as_json: bool) -> None:
    if not everything and not any(filters):
        raise BadInput(f"there is nothing to {verb}", next="pass ids, a filter such as --kind mail, or --all")
    with opened() as connection:
        scope = _scope(connection, *filters)
        deal_with_all(connection, verb, scope, reason=reason, yes=yes, as_json=as_json)


def _refuse_filter(*filters: object) -> None:
    if any(filters):
        raise BadInput("both ids and a filter are given", next="pass only one of them")


def _scope(connection: DB, kind: str | None, queue: str | None, tenant: str | None, since: timedelta | None) -> Scope:
    return Scope(kind, queue, tenant, None if since is None else moment_ago(connection, since))
