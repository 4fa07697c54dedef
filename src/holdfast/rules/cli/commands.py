"""`holdfast rules`: defining, listing, showing and explaining rules and their runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.cli.connection import opened
from holdfast.cli.options import LimitOption, TenantOption, WideOption, output_options
from holdfast.cli.render import AsJson, data, data_json, data_pairs, say
from holdfast.cli.table import NEVER, SAME, Column, data_table
from holdfast.kernel import db
from holdfast.kernel.query import clock
from holdfast.rules import calls, reads
from holdfast.rules.chosen import check_status
from holdfast.rules.cli import manual, passes, preview, rollback, schedule
from holdfast.rules.cli.parts import (
    Actor,
    RunId,
    moment,
    parse_run,
    plan_line,
    print_lines,
    refusal_document,
    refusal_line,
    run_document,
    signs,
    status_cell,
    status_text,
    target_document,
    target_line,
    unmatched_lines,
)
from holdfast.rules.language.read_file import read_rule
from holdfast.rules.language.write_json import to_json
from holdfast.rules.plan import explained
from holdfast.rules.rows import RuleRunRow, StateRow

app = typer.Typer(help="Bulk changes that are previewed, applied and explained.", no_args_is_help=True)
app.command(epilog=preview.EXAMPLE)(output_options(preview.preview))
app.command(epilog="Example: holdfast rules apply RUN --plan 7f3a9c1e --wait")(output_options(manual.apply))
app.command(epilog='Example: holdfast rules pause RUN --reason "the shop is slow"')(output_options(manual.pause))
app.command(epilog="Example: holdfast rules resume RUN")(output_options(manual.resume))
app.command(epilog='Example: holdfast rules stop RUN --reason "wrong rule"')(output_options(manual.stop))
app.command("retry-failed", epilog="Example: holdfast rules retry-failed RUN --class TIMEOUT")(
    output_options(manual.retry_failed)
)
app.command(epilog=rollback.EXAMPLE)(output_options(rollback.rollback))
app.command(epilog=schedule.EXAMPLE)(output_options(schedule.schedule))
for _command in (passes.reconcile, passes.drift, passes.history, passes.status):
    app.command(epilog=passes.EXAMPLES[_command.__name__])(output_options(_command))
app.command("retry-all", epilog="Example: holdfast rules retry-all RUN")(output_options(manual.retry_all))

COLUMNS = (
    Column("id"),
    Column("status", NEVER, rank=1),
    Column("rule", SAME, rank=2, least=8),
    Column("channel", SAME, rank=3, least=6),
    Column("targets", rank=4),
    Column("applied", rank=4),
    Column("failed", rank=3),
    Column("created", NEVER, rank=5),
    Column("plan", rank=6),
    Column("source", "api", rank=7),
    Column("tenant", "default", rank=9),
)


@app.command(epilog="Example: holdfast rules define summer.json")
@output_options
def define(
    file: Annotated[Path, typer.Argument(help="The rule as JSON, or a list of prices as CSV.", metavar="FILE")],
    *,
    tenant: Annotated[str, typer.Option("--tenant", help="The tenant.")] = "default",
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Store a rule under its name, and print its version."""
    rule = read_rule(file)
    with opened() as connection:
        (version,) = db.run(connection, calls.define_rule(to_json(rule), actor, tenant))
    if as_json:
        data_json({"ruleId": rule.name, "version": version})
    else:
        data(f"{rule.name} {version}")
    say(f"to preview it: holdfast rules preview {rule.name} --channel CHANNEL --app MODULE")


@app.command("list", epilog="Example: holdfast rules list --status PARTIAL")
@output_options
def list_(
    *,
    rules: Annotated[bool, typer.Option("--rules", help="List the rules that are defined, not the runs.")] = False,
    status: Annotated[str | None, typer.Option("--status", help="Only runs with this status.")] = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Only runs of this rule.")] = None,
    limit: LimitOption = 50,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List runs, newest first, or rules."""
    with opened() as connection:
        if rules:
            defined, now = reads.rules(connection, rule), clock(connection)
        else:
            check_status(connection, "rules.run", status)
            runs, now = reads.newest_runs(connection, status=status, rule=rule, most=limit), clock(connection)
            states = reads.states(connection, "rules.run")
    if rules:
        rows = [(each.rule_id, each.version, each.defined_at, each.defined_by, each.tenant_id) for each in defined]
        if as_json:
            keys = ("ruleId", "version", "definedAt", "definedBy", "tenantId")
            documents = [dict(zip(keys, row, strict=True)) for row in rows]
            data_json([{**d, "definition": r.definition} for d, r in zip(documents, defined, strict=True)])
        else:
            data_table(("rule", "version", "defined", "by", "tenant"), rows, now=now, wide=wide)
        return
    if as_json:
        data_json([run_document(run) for run in runs])
        return
    data_table(COLUMNS, [_cells(run, states) for run in runs], now=now, wide=wide)
    if not runs:
        say("no such run; to make one: holdfast rules preview RULE --channel CHANNEL --app MODULE")


@app.command(epilog="Example: holdfast rules show RUN --json")
@output_options
def show(run: RunId, *, as_json: AsJson = False) -> None:
    """Show a run: its plan, its counts, and what can be done now."""
    with opened() as connection:
        row = reads.run_of(connection, parse_run(run))
    if as_json:
        data_json(run_document(row))
        return
    counts = row.counts
    data_pairs({
        "run": row.id,
        "status": status_text(row),
        "rule": f"{row.rule_id}, version {row.rule_version}",
        "channel": row.channel,
        "source": row.source,
        "targets": f"{counts['included']:,} of {counts['targets']:,} included",
        "applied": f"{counts['applied']:,}",
        "failed": f"{counts['failed']:,}",
        "left": f"{counts['left']:,}",
        "refused": f"{counts['refused']:,}",
        "reason": row.reason,
        "error": row.error,
        "created": moment(row.created_at),
        "finished": None if row.finished_at is None else moment(row.finished_at),
    })  # fmt: skip
    print_lines([*unmatched_lines(row), plan_line(row)])
    for action in row.actions:
        say(f"then: holdfast rules {action.replace('_', '-')} {row.id}")


@app.command(epilog="Example: holdfast rules targets RUN --status FAILED")
@output_options
def targets(
    run: RunId,
    *,
    status: Annotated[str | None, typer.Option("--status", help="Only targets with this status.")] = None,
    refused: Annotated[bool, typer.Option("--refused", help="List the items that were refused instead.")] = False,
    limit: LimitOption = 50,
    after: Annotated[int, typer.Option("--after", help="List targets after this number.")] = 0,
    as_json: AsJson = False,
) -> None:
    """List a run's targets with their prices before and after."""
    run_id = parse_run(run)
    with opened() as connection:
        reads.run_of(connection, run_id)
        if refused:
            refusals = reads.refusals_page(connection, run_id, after=after, most=limit)
            lines = [refusal_line(each) for each in refusals]
            documents: list[Any] = [refusal_document(each) for each in refusals]
            last = refusals[-1].id if len(refusals) == limit else None
        else:
            check_status(connection, "rules.target", status)
            page = reads.targets_page(connection, run_id, after=after, most=limit, status=status)
            sign_of = signs(reads.states(connection, "rules.target"))
            lines = [target_line(each, sign_of[each.status]) for each in page]
            documents = [target_document(each) for each in page]
            last = page[-1].id if len(page) == limit else None
    if as_json:
        data_json({"targets": documents, "next": None if last is None else str(last)})
        return
    for line in lines:
        data(line)
    if last is not None:
        say(f"there may be more: --after {last}")


@app.command(epilog="Example: holdfast rules explain RUN SKU-1042")
@output_options
def explain(
    run: RunId,
    item: Annotated[str, typer.Argument(help="The item's id, or the target's number.", metavar="ITEM")],
    *,
    as_json: AsJson = False,
) -> None:
    """Show every step of the calculation of one price."""
    run_id = parse_run(run)
    with opened() as connection:
        row = reads.run_of(connection, run_id)
        target = reads.target_of(connection, run_id, item)
        sign_of = signs(reads.states(connection, "rules.target"))
    explanation = explained(row, target)
    if as_json:
        steps = [{"name": step.name, "detail": step.detail, "value": step.value} for step in explanation.steps]
        data_json({"target": target_document(target), "rule": row.plan["rule"], "steps": steps})
        return
    data(target_line(target, sign_of[target.status]))
    data_table(("step", "detail", "value"), [(step.name, step.detail, step.value) for step in explanation.steps])


@app.command(epilog="Example: holdfast rules channels --json")
@output_options
def channels(*, tenant: TenantOption = None, as_json: AsJson = False) -> None:
    """List the channels that workers registered."""
    with opened() as connection:
        known = [each for each in reads.channels(connection) if tenant is None or each.tenant_id in {tenant, "*"}]
    if as_json:
        data_json([
            {"channel": each.channel, "tenantId": each.tenant_id, "kind": each.kind, "about": each.about,
             "batch": each.batch, "requestTimeout": each.request_timeout.total_seconds(),
             "targetTimeout": each.target_timeout.total_seconds(), "queue": each.queue, "openRuns": each.open_runs}
            for each in known
        ])  # fmt: skip
        return
    rows = [(each.channel, each.kind, each.batch, each.queue, each.open_runs, each.tenant_id) for each in known]
    data_table(("channel", "kind", "batch", "queue", "open runs", "tenant"), rows)
    if not known:
        say("no channel yet; a worker registers those of its app when it connects")


def _cells(run: RuleRunRow, states: Mapping[str, StateRow]) -> tuple[Any, ...]:
    counts = run.counts
    return (run.id, status_cell(run.status, states), run.rule_id, run.channel, counts["targets"], counts["applied"],
            counts["failed"], run.created_at, run.plan_hash[:8], run.source, run.tenant_id)  # fmt: skip
