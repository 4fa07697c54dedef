"""The commands of `holdfast schedules`."""

from __future__ import annotations

import json
import shlex
from datetime import datetime, timedelta
from itertools import islice
from typing import Annotated, Any, cast

import typer

from holdfast.cli.connection import DB, opened
from holdfast.cli.options import Reason, WideOption, matching, output_options
from holdfast.cli.render import AsJson, data, data_json, say
from holdfast.cli.schedules.page import mapping, read_moment, show_list, show_past, show_schedule
from holdfast.cli.start import read_input
from holdfast.cli.table import data_table
from holdfast.cron import NoTicks
from holdfast.durations import duration
from holdfast.errors import BadInput, NotFound
from holdfast.handlers.schedules import read_when
from holdfast.kernel import db, schedule_calls
from holdfast.kernel.call import Call
from holdfast.kernel.query import as_mapping, clock, query
from holdfast.kernel.schedule_calls import Missed, Overlap, Target, When
from holdfast.models import Json
from holdfast.reads import schedules as reads
from holdfast.reads import startable
from holdfast.reads.schedules import ScheduleDetail

MOST_TICKS = 1000  # of one backfill, as the database has it
app = typer.Typer(help="Schedules: tasks and flows that start at set times.", no_args_is_help=True)


def names(incomplete: str) -> list[str]:
    """Complete the name of a schedule."""
    return matching(reads.names(), incomplete)


Name = Annotated[str, typer.Argument(help="The schedule.", autocompletion=names)]
Tenant = Annotated[str, typer.Option("--tenant", help="The tenant that it belongs to.")]
Moment = Annotated[str | None, typer.Option(help="A time such as 2027-03-01T02:00; without an offset in --timezone.")]


@app.command("list", epilog="Example: holdfast schedules list --json")
@output_options
def list_(
    *,
    tenant: Annotated[str | None, typer.Option("--tenant", help="Only this tenant.")] = None,
    wide: WideOption = False,
    as_json: AsJson = False,
) -> None:
    """List schedules, the one that fires next first, 200 at most."""
    with opened() as connection:
        schedules, now = query(connection, reads.schedules(tenant=tenant)), clock(connection)
    if as_json:
        data_json({"schedules": [mapping(schedule) for schedule in schedules]})
        return
    show_list(schedules, now, wide=wide)
    if not schedules:
        say("no schedules yet: holdfast schedules add, or hf.schedule(…) in an app")


@app.command(epilog="Example: holdfast schedules show report")
@output_options
def show(name: Name, *, tenant: Tenant = "default", wide: WideOption = False, as_json: AsJson = False) -> None:
    """Show a schedule: its next five ticks, what became of the last ones, and who changed it."""
    with opened() as connection:
        schedule, now = _one(connection, name, tenant), clock(connection)
        ticks = query(connection, reads.ticks(name, tenant))
        changes = query(connection, reads.changes(name, tenant))
    if as_json:
        past = {"ticks": [as_mapping(tick) for tick in ticks], "changes": [as_mapping(change) for change in changes]}
        data_json({"schedule": mapping(schedule), **past})
        return
    show_schedule(schedule)
    show_past(ticks, changes, now, wide=wide)


@app.command(epilog="Example: holdfast schedules add report report --cron '0 2 * * *' --timezone Europe/Berlin")
@output_options
def add(
    name: Annotated[str, typer.Argument(help="The schedule; a schedule of that name is replaced.")],
    target: Annotated[
        str | None, typer.Argument(help="The task or flow that it starts; without it only the times change.")
    ] = None,
    *,
    given: Annotated[
        str,
        typer.Option("--input", "-i", metavar="JSON", help="Its arguments as a JSON object; - reads it from stdin."),
    ] = "{}",
    cron: Annotated[str | None, typer.Option("--cron", help="Five fields: '0 2 * * *'.")] = None,
    every: Annotated[str | None, typer.Option("--every", help="An interval: 90s, 1h.")] = None,
    at: Annotated[str | None, typer.Option("--at", help="Once, at a time: 2027-03-01T02:00.")] = None,
    timezone: Annotated[str, typer.Option("--timezone", help="Of the cron, and of times without an offset.")] = "UTC",
    starts_at: Moment = None,
    ends_at: Moment = None,
    missed: Annotated[str, typer.Option("--missed", help="skip, one or all, of ticks that nobody fired.")] = "one",
    missed_window: Annotated[
        str | None, typer.Option("--missed-window", help="How old a tick may be that is fired late: 2h.")
    ] = None,
    overlap: Annotated[
        str, typer.Option("--overlap", help="allow, skip or cancel, while the last tick's work is not over.")
    ] = "allow",
    spread: Annotated[str, typer.Option("--spread", help="Shift the ticks by a fixed time below this: 60s.")] = "0",
    options: Annotated[
        str, typer.Option("--options", metavar="JSON", help='Options of the start: {"queue": "night"}.')
    ] = "{}",
    face: Annotated[str | None, typer.Option("--face", help="work or flow, if both have the name.")] = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Create or replace a schedule of a task or flow that a worker has defined, or change the times of a schedule."""
    when = read_when(
        cron=cron,
        every=every,
        at=read_moment("at", at, timezone),
        timezone=timezone,
        starts_at=read_moment("starts-at", starts_at, timezone),
        ends_at=read_moment("ends-at", ends_at, timezone),
        spread=spread,
        error=BadInput,
    )
    if target is None:
        _retimed(name, tenant, when, as_json=as_json)
        return
    arguments = Json(json.dumps(read_input(given)))
    with opened() as connection:
        face_name = startable.find(
            target, {each: by.names(connection) for each, by in startable.starters(face).items()}
        )
        call = schedule_calls.define_schedule(
            name,
            Target(face_name, target, arguments, read_input(options, "--options"), tenant),
            when,
            missed=cast("Missed", missed),
            missed_window=None if missed_window is None else duration(missed_window, "missed-window"),
            overlap=cast("Overlap", overlap),
        )
        db.run(connection, call)
        schedule = _one(connection, name, tenant)
    if as_json:
        data_json({"schedule": mapping(schedule)})
        return
    show_schedule(schedule)
    say(f"schedule {name} is defined; any worker fires its ticks")


@app.command(epilog="Example: holdfast schedules pause report --reason 'stocktaking'")
@output_options
def pause(name: Name, *, reason: Reason = None, tenant: Tenant = "default", as_json: AsJson = False) -> None:
    """Keep a schedule from firing; what its ticks have started continues."""
    _change(schedule_calls.pause_schedule(name, reason=reason, tenant=tenant), name, "paused", as_json=as_json)
    say(f"to resume it: holdfast schedules resume {shlex.quote(name)}")


@app.command(epilog="Example: holdfast schedules resume report")
@output_options
def resume(name: Name, *, reason: Reason = None, tenant: Tenant = "default", as_json: AsJson = False) -> None:
    """End the pause of a schedule; the ticks of the pause do not come."""
    _change(schedule_calls.resume_schedule(name, reason=reason, tenant=tenant), name, "resumed", as_json=as_json)


@app.command(epilog="Example: holdfast schedules run report")
@output_options
def run(name: Name, *, reason: Reason = None, tenant: Tenant = "default", as_json: AsJson = False) -> None:
    """Start now what a schedule starts, and print the ids."""
    with opened() as connection:
        (ids,) = db.run(connection, schedule_calls.run_schedule(name, reason=reason, tenant=tenant))
    if as_json:
        data_json({"schedule": name, "ids": ids})
        return
    for each in ids:
        data(each)
    say(f"started; to follow it: holdfast runs watch {ids[0]}")


@app.command(epilog="Example: holdfast schedules backfill report --from 2027-03-01 --until 2027-03-08 --dry-run")
@output_options
def backfill(
    name: Name,
    *,
    start: Annotated[str, typer.Option("--from", help="The first time, such as 2027-03-01 or 2027-03-01T02:00.")],
    until: Annotated[
        str | None, typer.Option("--until", help="The end, which is not included; by default now.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the ticks, and start nothing.")] = False,
    reason: Reason = None,
    tenant: Tenant = "default",
    as_json: AsJson = False,
) -> None:
    """Fire the ticks of a past time that have started nothing, up to 1000; times are in the schedule's time zone."""
    with opened() as connection:
        schedule, now = _one(connection, name, tenant), clock(connection)
        first = cast("datetime", read_moment("from", start, schedule.timezone))
        end = min(read_moment("until", until, schedule.timezone) or now, now)
        try:
            ticks = list(islice(reads.ticks_between(schedule, first, end), MOST_TICKS + 1))
        except NoTicks as error:
            raise BadInput(str(error), where="cron", next="define the schedule again") from None
        if len(ticks) > MOST_TICKS:
            raise BadInput(
                f"more than {MOST_TICKS} ticks lie between {first} and {end}",
                where="--until",
                next="take a shorter time",
            )
        fired = [] if dry_run else db.run(
            connection, schedule_calls.backfill_schedule(name, ticks, reason=reason, tenant=tenant)
        )  # fmt: skip
    if as_json:
        listed = [{"at": tick} for tick in ticks] if dry_run else [as_mapping(tick) for tick in fired]
        data_json({"schedule": name, "dry_run": dry_run, "ticks": listed})
        return
    if dry_run:
        data_table(("tick",), [(tick,) for tick in ticks])
        say(f"{len(ticks)} ticks; those that have started something are left alone")
        return
    data_table(("tick", "started"), [(tick.at, ", ".join(tick.ids)) for tick in fired])
    say(f"{len(fired)} of {len(ticks)} ticks fired")


@app.command(epilog="Example: holdfast schedules remove report")
@output_options
def remove(name: Name, *, reason: Reason = None, tenant: Tenant = "default", as_json: AsJson = False) -> None:
    """Remove a schedule; one that an app defines comes back with its next worker."""
    with opened() as connection:
        (is_removed,) = db.run(connection, schedule_calls.forget_schedule(name, reason=reason, tenant=tenant))
    if not is_removed:
        raise _missing(name)
    _said(name, "removed", as_json=as_json)


def _retimed(name: str, tenant: str, when: When, *, as_json: bool) -> None:
    """Change the times of a schedule; its target and its policies stay."""
    with opened() as connection:
        old = _one(connection, name, tenant)
        what = Target(old.face, old.target, Json(old.input), json.loads(old.options), tenant)
        call = schedule_calls.define_schedule(
            name, what, when, missed=cast("Missed", old.missed), overlap=cast("Overlap", old.overlap),
            missed_window=None if old.missed_window is None else timedelta(seconds=old.missed_window),
        )  # fmt: skip
        db.run(connection, call)
        schedule = _one(connection, name, tenant)
    if as_json:
        data_json({"schedule": mapping(schedule)})
        return
    show_schedule(schedule)
    say(f"the time of schedule {name} has changed")


def _one(connection: DB, name: str, tenant: str) -> ScheduleDetail:
    rows = query(connection, reads.schedules(name, tenant=tenant))
    if not rows:
        raise _missing(name)
    return rows[0]


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no schedule {name}", where="name", next="holdfast schedules list")


def _change(call: Call[Any], name: str, event: str, *, as_json: bool) -> None:
    with opened() as connection:
        db.run(connection, call)
    _said(name, event, as_json=as_json)


def _said(name: str, event: str, *, as_json: bool) -> None:
    if as_json:
        data_json({"schedule": name, "event": event})
    say(f"schedule {name} is {event}")
