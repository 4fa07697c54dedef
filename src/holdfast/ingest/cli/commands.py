"""`holdfast ingest`: feeds, their runs, watermarks and quarantined records."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from holdfast.cli import watch as watching
from holdfast.cli.app_loader import load_app
from holdfast.cli.connection import opened
from holdfast.cli.options import LimitOption, Reason, matching, output_options, parse_duration
from holdfast.cli.render import AsJson, data, data_json, data_pairs, say
from holdfast.cli.table import data_table
from holdfast.errors import BadInput, NotFound
from holdfast.ingest import calls, reads
from holdfast.ingest.cli import page, runs
from holdfast.ingest.plan import plan_run
from holdfast.kernel import db
from holdfast.kernel.query import as_mapping, clock

app = typer.Typer(help="Feeds: partitioned pulls from a source into a table.", no_args_is_help=True)


def _feeds(incomplete: str) -> list[str]:
    return matching(reads.names(), incomplete)


FeedName = Annotated[str, typer.Argument(metavar="FEED", help="The feed.", autocompletion=_feeds)]
AppOption = Annotated[str, typer.Option("--app", help="The app that defines the feed, as module:name.")]
Timeout = Annotated[
    timedelta | None, typer.Option("--timeout", parser=parse_duration, metavar="DURATION", help="Give up after 10m, …")
]
Moment = Annotated[datetime, typer.Option(formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d"])]


@app.command("list", epilog="Example: holdfast ingest list --json")
@output_options
def list_feeds(*, as_json: AsJson = False) -> None:
    """List the feeds, their watermarks and the state of their newest runs."""
    with opened() as connection:
        rows = reads.feeds(connection)
    if as_json:
        data_json([as_mapping(row) for row in rows])
    else:
        columns = ("feed", "state", "watermark", "source", "into", "run")
        data_table(columns, [(r.feed, r.state, r.watermark, r.source, r.target, r.run_id) for r in rows])


@app.command(epilog="Example: holdfast ingest run orders --wait")
@output_options
def run(
    feed: FeedName,
    *,
    full: Annotated[bool, typer.Option("--full", help="Read everything, and delete what is gone.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it ends.")] = False,
    timeout: Timeout = None,
    as_json: AsJson = False,
) -> None:
    """Start a run: a full one the first time, later only of what changed."""
    with opened() as connection:
        (run_id,) = db.run(connection, calls.start(feed, "full" if full else None))
        runs.started(connection, run_id, wait=wait, timeout=timeout, as_json=as_json)


@app.command(epilog="Example: holdfast ingest backfill orders --since 2024-01-01 --until 2024-02-01")
@output_options
def backfill(feed: FeedName, *, since: Moment, until: Moment, as_json: AsJson = False) -> None:
    """Read a chosen window again; the watermark stays."""
    with opened() as connection:
        (run_id,) = db.run(connection, calls.start(feed, None, _zoned(since), _zoned(until)))
        runs.started(connection, run_id, wait=False, timeout=None, as_json=as_json)


@app.command(epilog="Example: holdfast ingest status orders")
@output_options
def status(feed: FeedName, *, as_json: AsJson = False) -> None:
    """Show the newest run of a feed: how far it is, what failed, and what to do next."""
    with opened() as connection:
        run = reads.newest_run(connection, feed)
        planned = reads.planning(connection, feed)
        unplanned = reads.failed_plan(connection, feed)
        failed = [] if run is None else reads.failed_partitions(connection, run.run_id)
    if as_json:
        document = None if run is None else {**as_mapping(run), "failed": [as_mapping(part) for part in failed]}
        failed_plan = None if unplanned is None else as_mapping(unplanned)
        data_json({"feed": feed, "planning": planned, "failed_plan": failed_plan, "run": document})
        return
    if planned is not None:
        data(f"{feed}  planning  {planned}")
    elif unplanned is not None:
        data(f"{feed}  could not be planned: {unplanned.message}")
        data(f"  next:   holdfast ingest run {feed}    (after the fix)")
    if run is not None:
        data("\n".join(page.lines(run, failed)))
    elif planned is None and unplanned is None:
        data(f"{feed}  has no runs; start one: holdfast ingest run {feed}")


@app.command(epilog="Example: holdfast ingest watch orders --timeout 10m")
@output_options
def watch(
    feed: FeedName,
    *,
    timeout: Timeout = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", help="Print a line of JSON per change.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch the newest run of a feed until it ends, also one that is being planned."""
    with opened() as connection:
        run_id = reads.planning(connection, feed)
        if run_id is None:
            run_id = runs.newest(connection, feed).run_id
        else:
            runs.wait_for_plan(connection, run_id, timeout)
        watching.watch(connection, run_id, timeout=timeout, form=watching.form(jsonl=jsonl, as_json=as_json))


@app.command(epilog='Example: holdfast ingest retry orders --reason "the source is back"')
@output_options
def retry(
    feed: FeedName,
    *,
    partition: Annotated[list[str] | None, typer.Option("--partition", help="Only this one; may be repeated.")] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Retry the failed partitions of the newest run, each from where it stopped."""
    runs.act(feed, lambda run_id: calls.retry_partitions(run_id, partition or None, reason), as_json=as_json)


@app.command("resume-consolidation", epilog='Example: holdfast ingest resume-consolidation orders --reason "fixed"')
@output_options
def resume_consolidation(feed: FeedName, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Consolidate the newest run again, after the fix; quarantined records are mapped again."""
    runs.act(feed, lambda run_id: calls.resume_consolidation(run_id, reason), as_json=as_json)


@app.command(epilog='Example: holdfast ingest force orders --reason "the rest comes tomorrow"')
@output_options
def force(
    feed: FeedName,
    *,
    advance_watermark: Annotated[
        bool,
        typer.Option("--advance-watermark", help="Also move the watermark: the next run does not read what failed."),
    ] = False,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Consolidate what was read by a run with failed partitions; the watermark stays."""
    runs.act(feed, lambda run_id: calls.force(run_id, reason, advance_watermark=advance_watermark), as_json=as_json)


@app.command(epilog='Example: holdfast ingest cancel orders --reason "wrong source"')
@output_options
def cancel(feed: FeedName, *, reason: Reason = None, as_json: AsJson = False) -> None:
    """Cancel the active run of a feed, even while it is being planned."""
    with opened() as connection:
        planned = reads.planning(connection, feed)
        run_id = planned or runs.newest(connection, feed).run_id
        (state,) = db.run(connection, calls.cancel_run(run_id, reason))
    runs.print_state(run_id, state, as_json=as_json)


@app.command(epilog='Example: holdfast ingest watermark orders --set 2024-01-01T00:00:00+00:00 --reason "again"')
@output_options
def watermark(
    feed: FeedName,
    *,
    at: Annotated[
        datetime | None,
        typer.Option(
            "--set", formats=["%Y-%m-%dT%H:%M:%S%z", "%Y-%m-%d"], help="Set it to this time, forward or back."
        ),
    ] = None,
    reason: Reason = None,
    as_json: AsJson = False,
) -> None:
    """Show the watermark of a feed, or set it."""
    with opened() as connection:
        if at is not None:
            if reason is None:
                raise BadInput("--set needs a reason", where="--reason", next='add --reason "…"')
            db.run(connection, calls.set_watermark(feed, _zoned(at), reason))
        document = reads.watermark(connection, feed)
    if document is None:
        raise NotFound(f"feed {feed} has no watermark yet", where=feed, next=f"run it: holdfast ingest run {feed}")
    data(document)
    if not as_json:
        say("the document's JSON; --set moves it")


@app.command(epilog="Example: holdfast ingest quarantine orders --json")
@output_options
def quarantine(feed: FeedName, *, limit: LimitOption = 50, as_json: AsJson = False) -> None:
    """List the records of a feed that could not be stored or mapped, newest first."""
    with opened() as connection:
        reads.newest_run(connection, feed)  # raises if there is no such feed
        rows = reads.quarantined(connection, feed, limit)
    if as_json:
        data_json([as_mapping(row) for row in rows])
    else:
        data_table(("key", "stage", "reason", "at", "run"), [(r.key, r.stage, r.reason, r.at, r.run_id) for r in rows])


@app.command(epilog="Example: holdfast ingest plan orders --app shop:hf")
@output_options
def plan(feed: FeedName, *, named: AppOption, as_json: AsJson = False) -> None:
    """Count the source of a feed and draw its partitions; start nothing."""
    hf = load_app(named)
    known = _of_app(hf, feed)
    if known.reader.has("check"):
        known.reader.call("check")
    with opened() as connection:
        now = clock(connection)
    start = calls.StartToPlan(None, feed, None, None, None, known.watermark, now, "")
    planned = plan_run(known.reader, known.settings, start)
    parts, window = planned.parts, planned.window
    warnings: list[str] = known.reader.call("warnings") if known.reader.has("warnings") else []
    hf.close()
    if as_json:
        drawn = [{"min": part.low, "max": part.high, "estimated": part.estimated} for part in parts]
        data_json({"since": window.since, "until": window.until, "partitions": drawn, "warnings": warnings})
        return
    most = max((part.estimated or 0 for part in parts), default=0)
    for place, part in enumerate(parts):
        data(f"partition-{place:<3} {watching.bar(part.estimated or 0, max(most, 1))} {part.estimated or '?':>10}")
    data_pairs({"partitions": len(parts), "since": window.since, "until": window.until})
    for warning in warnings:
        say(warning)


@app.command(epilog="Example: holdfast ingest ddl orders --app shop:hf")
@output_options
def ddl(feed: FeedName, *, named: AppOption, as_json: AsJson = False) -> None:
    """Print the statements that create what is missing in the target table."""
    hf = load_app(named)
    known = _of_app(hf, feed)
    with opened() as connection:
        statements = known.target.ddl(connection)
    hf.close()
    if as_json:
        data_json(statements)
    else:
        data("\n".join(f"{statement};" for statement in statements))


def _of_app(hf: Any, feed: str) -> Any:
    found = hf.ingest.find(feed)
    if found is None:
        known = ", ".join(sorted(each.name for each in hf.ingest)) or "none"
        raise NotFound(f"the app has no feed {feed}", where=feed, next=f"it has: {known}")
    return found


def _zoned(at: datetime) -> datetime:
    return at if at.utcoffset() is not None else at.replace(tzinfo=UTC)
