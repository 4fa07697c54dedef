"""`holdfast rules reconcile`, `drift`, `history` and `status`: whether channels still show what runs wrote."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any
from uuid import UUID

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import LimitOption, Reason, WideOption, parse_duration
from holdfast.cli.render import AsJson, data, data_json, data_pairs, plain, say
from holdfast.cli.table import data_table
from holdfast.errors import WaitTimedOut
from holdfast.kernel import db
from holdfast.kernel.query import clock
from holdfast.rules import pass_handle, reads, reconcile_calls
from holdfast.rules.cli.manual import LOOK_EACH
from holdfast.rules.cli.parts import Actor, RunId, camel, moment, parse_run, run_document, status_text
from holdfast.rules.language.money import shown
from holdfast.rules.pass_handle import MismatchRow, ReconciliationRow
from holdfast.rules.rows import PlannedTime

EXAMPLES = {
    "reconcile": "Example: holdfast rules reconcile RUN --wait",
    "drift": "Example: holdfast rules drift --json",
    "history": "Example: holdfast rules history SKU-1042",
    "status": "Example: holdfast rules status RUN",
}


def reconcile(
    run: RunId,
    *,
    correct: Annotated[bool, typer.Option("--correct", help="Plan a run that writes the expected prices.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends; exit 3 if it finds a mismatch.")] = False,
    timeout: Annotated[
        timedelta | None, typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="How long to wait.")
    ] = None,
    reason: Reason = None,
    actor: Actor = None,
    as_json: AsJson = False,
) -> None:
    """Check whether the channel still shows the prices that a run wrote. Nothing is written there."""
    run_id = parse_run(run)
    with opened() as connection:
        call = reconcile_calls.reconcile(run_id, correct=correct, reason=reason, actor=actor)
        (planned,) = db.run(connection, call)
        row = _looked(connection, run_id, planned.no)
        until = None if timeout is None else time.monotonic() + timeout.total_seconds()
        while wait and row.finished_at is None:
            if until is not None and time.monotonic() >= until:
                raise WaitTimedOut(f"pass {row.no} of run {run_id} is {row.status}, not over within {timeout}",
                                   where=str(run_id), next=f"see it with: holdfast rules status {run_id}")  # fmt: skip
            time.sleep(LOOK_EACH)
            row = _looked(connection, run_id, planned.no)
    if as_json:
        data_json(document(row))
    else:
        data(_sentence(row))
    if not wait:
        say(f"to see what it finds: holdfast rules drift {run_id}")
    elif row.mismatches:
        raise typer.Exit(3)


def drift(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Only differences of this rule run.")] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Include those that later passes no longer found.")] = False,
    limit: LimitOption = 50,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List the prices that differ from what runs wrote, as the last passes found them."""
    run_id = None if run is None else parse_run(run)
    with opened() as connection:
        if run_id is not None:
            reads.run_of(connection, run_id)
        mismatches = pass_handle.mismatches(connection, run_id, only_current=not every, most=limit)
        now = clock(connection)
    if as_json:
        data_json([document(each) for each in mismatches])
        return
    rows = [
        (each.item_id, shown(each.expected, each.currency), _actual(each), each.channel, each.first_seen_at,
         each.last_seen_at, each.rule_run_id)
        for each in mismatches
    ]  # fmt: skip
    data_table(("item", "expected", "actual", "channel", "first seen", "last seen", "run"), rows, now=now, wide=wide)
    if not mismatches:
        say("no known price differs from what a run wrote")


def history(
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The item's id.")],
    *,
    channel: Annotated[str | None, typer.Option("--channel", help="Only changes on this channel.")] = None,
    limit: LimitOption = 50,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List the changes of an item's price by runs, newest first."""
    with opened() as connection:
        found = pass_handle.history(connection, item, channel=channel, most=limit)
        now = clock(connection)
    if as_json:
        data_json([document(each) for each in found])
        return
    rows = [
        (each.changed_at, _amount(each.old_json), _amount(each.new_json), each.source, each.effect, each.channel,
         each.rule_id, each.rule_run_id)
        for each in found
    ]  # fmt: skip
    data_table(("changed", "old", "new", "source", "effect", "channel", "rule", "run"), rows, now=now, wide=wide)
    if not found:
        say(f"no run changed the price of {plain(item)}")


def status(run: RunId, *, as_json: AsJson = False) -> None:
    """Show the progress of a run: its targets, planned times, limit and passes, and the commands possible now."""
    run_id = parse_run(run)
    with opened() as connection:
        row = reads.run_of(connection, run_id)
        passes = pass_handle.passes_of(connection, run_id)
        reasons = pass_handle.failed_by_reason(connection, run_id)
        limit = pass_handle.limit_of(connection, row.channel)
        times = reads.planned_times(connection, run_id)
    due = [each for each in passes if each.finished_at is None]
    counts = row.counts
    if as_json:
        lists = {"times": [document(each) for each in times], "passes": [document(each) for each in passes]}
        data_json({**run_document(row), "reasons": reasons, "limit": limit, **lists})
        return
    data_pairs({
        "run": row.id,
        "status": status_text(row),
        "applied": f"{counts['applied'] - counts['rolledBack']:,} of {counts['included']:,}",
        "failed": f"{counts['failed']:,}",
        "stale": f"{reasons.get('stale', 0) + reasons.get('conflict', 0):,}",
        "unknown": f"{reasons.get('outcome_unknown', 0):,}",
        "rolled back": f"{counts['rolledBack']:,}",
        "limit": _limit(limit),
        **{f"{each.what} at": _planned(each) for each in times},
        "passes due": ", ".join(f"{each.kind} {moment(each.due_at)}" for each in due) or None,
        "last pass": next((_sentence(each) for each in reversed(passes) if each.finished_at is not None), None),
    })  # fmt: skip
    for action in row.actions:
        say(f"then: holdfast rules {action.replace('_', '-')} {row.id}")


def _looked(connection: DB, run_id: UUID, no: int) -> ReconciliationRow:
    return next(each for each in pass_handle.passes_of(connection, run_id) if each.no == no)


def document(row: Any) -> dict[str, Any]:
    """Return a row as JSON prints it; ids are text."""
    return {name: _plain(value) for name, value in camel(asdict(row)).items()}


def _plain(value: Any) -> Any:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case Decimal():
            return float(value)
        case _:
            return value


def _sentence(found: ReconciliationRow) -> str:
    accuracy = "" if found.accuracy is None else f", {found.accuracy} % as written"
    return (
        f"pass {found.no} ({found.kind}) {found.status}: {found.total_checked:,} checked, {found.mismatches:,} differ, "
        f"{found.superseded:,} superseded, {found.unverifiable:,} unverifiable, {found.unknown:,} unknown{accuracy}"
    )


def _actual(row: MismatchRow) -> str:
    if row.actual is None or row.actual_currency != row.currency:
        return f"{row.actual} {row.actual_currency}"
    if row.difference == 0 or row.actual == row.expected:
        return f"compare at {shown(row.actual_compare_at, row.currency)}"
    return shown(row.actual, row.currency)


def _amount(form: dict[str, Any]) -> str:
    return f"{shown(form['unit_amount'], form['currency'])} {form['currency']}"


def _planned(planned: PlannedTime) -> str:
    waits = None if planned.waits is None else f"waits: {planned.waits}"
    return ", ".join(part for part in (moment(planned.at), planned.state, planned.error, waits) if part is not None)


def _limit(limit: dict[str, Any] | None) -> str | None:
    if limit is None:
        return None
    parts = [f"{name} {value}" for name, value in limit.items() if value not in (None, False)]
    return ", ".join(parts) or None
