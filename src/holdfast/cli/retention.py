"""`holdfast retention`: shows and changes how long finished tasks and runs are kept, and removes old ones."""

from __future__ import annotations

import re
import time
from datetime import timedelta
from typing import Annotated, Any

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import Reason, WideOption, output_options, parse_duration
from holdfast.cli.render import AsJson, data_json, say
from holdfast.cli.table import Column, data_table
from holdfast.errors import BadInput, NotFound
from holdfast.kernel import db, retention_calls
from holdfast.kernel.query import as_mapping, clock, query, query_one
from holdfast.kernel.retention_calls import Prunable, Sweep, What
from holdfast.reads import retention as reads
from holdfast.reads.retention import Rule, RuleChange, SweepState
from holdfast.reads.run_page import span_text

app = typer.Typer(help="Retention: how long finished tasks and runs are kept.", no_args_is_help=True)

COLUMNS = (
    Column("what"),
    Column("tenant", "*", rank=4),
    Column("machine", rank=3),
    Column("queue", rank=3),
    Column("outcome", rank=2),
    Column("kept", rank=1),
    Column("set", rank=6),
)
COUNT_COLUMNS = ("what", "rule", "rows", "steps")
_CALENDAR = re.compile(r"([1-9][0-9]{0,3})\s*(mo|months?|y|years?)")
CHUNK = 2000
BUSY_WAIT = 0.2  # seconds between tries while a worker sweeps
Keep = Annotated[
    str, typer.Argument(help="A duration (7d, 12h), months or years (6mo, 1y), forever, or none.", show_default=False)
]
Outcome = Annotated[str | None, typer.Option("--outcome", help="succeeded, failed, cancelled, partial or undone.")]
Machine = Annotated[str | None, typer.Option("--machine", help="Of this machine, such as work.task or flow.task.")]
Queue = Annotated[str | None, typer.Option("--queue", help="Tasks of this queue; runs have none.")]
Journal = Annotated[bool, typer.Option("--journal", help="The months of the journal and the notes.")]
Ticks = Annotated[bool, typer.Option("--ticks", help="The ticks of schedules.")]
Tenant = Annotated[str | None, typer.Option("--tenant", help="Of this tenant; * for all.")]


@app.command(epilog="Example: holdfast retention show --json")
@output_options
def show(*, wide: WideOption = False, as_json: AsJson = False) -> None:
    """Show the rules, the last and the next sweep, and who changed the rules."""
    with opened() as connection:
        rules, changes = query(connection, reads.rules()), query(connection, reads.changes())
        state, now = query_one(connection, reads.sweep_state()), clock(connection)
    if as_json:
        listed = {"rules": [as_mapping(rule) for rule in rules], "changes": [as_mapping(each) for each in changes]}
        data_json({**listed, "sweep": None if state is None else as_mapping(state)})
        return
    rows = [
        (r.what, r.tenant, r.machine, r.queue, r.outcome, _kept(r), "default" if r.is_default else r.set_at)
        for r in rules
    ]
    data_table(COLUMNS, rows, now=now, wide=wide)
    if state is not None:
        for line in _sweep_lines(state, now):
            say(line)
    for change in changes:
        say(_change_line(change))


@app.command("set", epilog="Example: holdfast retention set 7d --queue bulk --outcome succeeded")
@output_options
def set_(
    keep: Keep,
    *,
    outcome: Outcome = None,
    machine: Machine = None,
    queue: Queue = None,
    tenant: Tenant = None,
    journal: Journal = False,
    ticks: Ticks = False,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Set how long tasks and runs are kept after their end; the most specific rule applies."""
    rule = {"outcome": outcome, "machine": machine, "queue": queue, "tenant": tenant}
    call = retention_calls.set_retention(read_keep(keep), **rule, what=_what(journal, ticks), reason=reason)
    with opened() as connection:
        db.run(connection, call)
    if as_json:
        data_json({"event": "set", "keep": keep})
    say("the rule is set; count what it removes: holdfast retention run --dry-run")


@app.command(epilog="Example: holdfast retention remove --queue bulk")
@output_options
def remove(
    *,
    outcome: Outcome = None,
    machine: Machine = None,
    queue: Queue = None,
    tenant: Tenant = None,
    journal: Journal = False,
    ticks: Ticks = False,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Remove a rule that was set, so that less specific ones or the defaults apply."""
    call = retention_calls.forget_retention(
        outcome=outcome, machine=machine, queue=queue, tenant=tenant, what=_what(journal, ticks), reason=reason
    )
    with opened() as connection:
        (is_removed,) = db.run(connection, call)
    if not is_removed:
        raise NotFound("there is no such rule", where="rule", next="holdfast retention show")
    if as_json:
        data_json({"event": "removed"})
    say("the rule is removed")


@app.command(epilog="Example: holdfast retention run --dry-run")
@output_options
def run(
    *,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count what would be removed.")] = False,
    most: Annotated[
        int,
        typer.Option("--most", min=1, max=100_000_000, help="The most of each kind that a dry run looks at."),
    ] = 1_000_000,
    timeout: Annotated[
        timedelta | None,
        typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="Stop after 30s, 10m, …"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Remove now what its rules no longer keep, as workers do from time to time."""
    with opened() as connection:
        if dry_run:
            _show_counts(db.run(connection, retention_calls.prunable(most=most)), most, as_json=as_json)
            return
        removed, months, is_through = _sweep(connection, timeout)
    if as_json:
        data_json({**removed, "months": months, "is_through": is_through})
    counts = ", ".join(f"{count:,} {name}" for name, count in removed.items())
    say(f"removed {counts}" + (f"; dropped {', '.join(months)}" if months else ""))
    if not is_through:
        say("stopped before the end; a worker, or the same command, continues")


def _what(journal: bool, ticks: bool) -> What:
    if journal and ticks:
        raise typer.BadParameter("--journal and --ticks are two rules: change one after the other")
    return "journal" if journal else "ticks" if ticks else "runs"


def read_keep(text: str) -> timedelta | str | None:
    """Parse how long something is kept; months and years are the database's, because they vary in length."""
    word = text.strip().lower()
    if word == "forever":
        return None
    if word in {"none", "0"}:
        return timedelta()
    if found := _CALENDAR.fullmatch(word):
        return f"{found[1]} {'months' if found[2].startswith('mo') else 'years'}"
    try:
        return parse_duration(word)
    except typer.BadParameter:
        raise BadInput(
            f"keep must be a duration, months, years, forever or none, got {text!r}",
            where="keep",
            next="use 7d, 12h, 6mo, 1y, forever or none",
        ) from None


def _sweep(connection: DB, timeout: timedelta | None) -> tuple[dict[str, int], list[str], bool]:
    """Sweep from the first row to the last; wait for a worker that sweeps."""
    until = None if timeout is None else time.monotonic() + timeout.total_seconds()
    removed = dict.fromkeys(("steps", "runs", "keys", "ticks"), 0)
    months: list[str] = []
    is_afresh = True
    while True:
        (chunk,) = db.run(connection, retention_calls.sweep_now(batch=CHUNK, afresh=is_afresh))
        is_afresh = is_afresh and chunk.is_through is None
        removed = {name: count + _count(chunk, name) for name, count in removed.items()}
        if chunk.is_through:
            break
        if until is not None and time.monotonic() >= until:
            return removed, months, False
        if chunk.is_through is None:
            time.sleep(BUSY_WAIT)
    for _ in range(chunk.months):
        (month,) = db.run(connection, retention_calls.drop_month())
        if month is None:
            say("a month of the journal is in use or not due yet; `holdfast doctor` names the session that uses it")
            break
        months.append(month)
    return removed, months, True


def _count(chunk: Sweep, name: str) -> int:
    count: int = getattr(chunk, name)
    return count


def _show_counts(found: list[Prunable], most: int, *, as_json: bool) -> None:
    is_all = all(each.is_all for each in found)
    if as_json:
        data_json({"prunable": [as_mapping(each) for each in found], "is_all": is_all})
        return
    data_table(COUNT_COLUMNS, [(e.what, e.rule, e.rows, e.steps) for e in found])
    if not found:
        say("a sweep would remove nothing now")
    say("not counted: rows that faces keep for themselves, and rule runs that never began")
    if not is_all:
        say(f"there may be more: only the oldest {most:,} tasks, runs and ticks were looked at; see --most")


def _kept(rule: Rule) -> str:
    return rule.rule.rpartition(": ")[2]


def _sweep_lines(state: SweepState, now: Any) -> list[str]:
    if state.ended_at is None and state.begins_at > now:
        lines = [f"the first sweep begins in {span_text(state.begins_at - now)}, a day after the migration"]
    elif state.next_at is None:
        lines = ["a sweep is under way" if state.began_at else "a sweep is due; workers begin it"]
    else:
        lines = [
            f"the next sweep begins in {span_text(state.next_at - now)}" if state.next_at > now else "a sweep is due"
        ]
    if state.began_at is not None:
        counts = f"{state.steps:,} steps, {state.runs:,} runs, {state.keys:,} keys and {state.ticks:,} ticks"
        lines.append(f"the sweep that began {span_text(now - state.began_at)} ago removed {counts}")
    if state.blocked_month is not None and state.blocked_at is not None:
        since = span_text(now - state.blocked_at)
        lines.append(f"{state.blocked_month} is in use and could not be dropped for {since}: see holdfast doctor")
    return lines


def _change_line(change: RuleChange) -> str:
    parts = (change.what, change.tenant, change.machine, change.queue, change.outcome)
    subject = " ".join(part for part in parts if part not in {None, "*"})
    what = "removed" if change.event == "removed" else f"set to {change.keep or 'forever'}"
    return f"{change.at:%Y-%m-%d %H:%M:%S} {subject} {what} by {change.actor}" + (
        f": {change.reason}" if change.reason else ""
    )
